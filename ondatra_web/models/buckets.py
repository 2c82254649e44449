"""Where an organization keeps its records, if not in the install's own store."""

from __future__ import annotations

from django.db import models
from django.db.models import Q
from django.utils import timezone

from ondatra_web.models.organizations import Organization


class Bucket(models.Model):
    """A bucket of an organization's own for the records of its runs, with the credentials that reach it. Runs name the
    one that they were written to."""

    organization = models.ForeignKey(Organization, models.CASCADE)
    bucket = models.CharField(max_length=255)
    prefix = models.CharField(max_length=500, blank=True)
    region = models.CharField(max_length=50)
    endpoint = models.CharField(max_length=500, blank=True)  # empty: AWS
    role_arn = models.CharField(max_length=300, blank=True)
    access_key = models.CharField(max_length=200, blank=True)
    secret = models.TextField(blank=True, editable=False)  # the secret key, encrypted
    in_use = models.BooleanField(default=False)  # new runs are written there
    retention_days = models.IntegerField(null=True, blank=True)  # null: nothing is ever removed
    saved_at = models.DateTimeField(default=timezone.now)
    checked_at = models.DateTimeField(null=True, blank=True)
    problem = models.TextField(blank=True)  # what the last check found

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["endpoint", "bucket"], name="one_owner_a_bucket"),
            models.UniqueConstraint(fields=["organization"], condition=Q(in_use=True), name="one_bucket_in_use"),
        ]

    def __str__(self) -> str:
        return self.url

    @property
    def url(self) -> str:
        return f"s3://{self.bucket}/{self.prefix}".rstrip("/")
