"""Project folders, and what is remembered of their SQL models."""

from __future__ import annotations

import secrets

from django.db import models
from django.db.models import Q
from django.utils import timezone

from ondatra_web.models.organizations import Organization


def new_mask_key() -> str:
    return secrets.token_hex(32)


class Workspace(models.Model):
    """One project folder, its secrets and its part of the lake."""

    organization = models.ForeignKey(Organization, models.CASCADE)
    slug = models.SlugField(unique=True)
    project_dir = models.CharField(max_length=1000)
    env_file = models.CharField(max_length=1000, blank=True)
    allow_paths = models.JSONField(default=list, blank=True)
    mask_key = models.CharField(max_length=64, default=new_mask_key, editable=False)  # hex; key of @mask …:hash
    upkeep_at = models.DateTimeField(null=True, blank=True)  # when its lake is looked after next
    created_at = models.DateTimeField(default=timezone.now)

    class Meta:
        # without a key of its own anybody can compute the hash of a masked value
        constraints = [models.CheckConstraint(condition=~Q(mask_key=""), name="has_a_mask_key")]

    def __str__(self) -> str:
        return self.slug


class ModelState(models.Model):
    """What is remembered of a SQL model's table since it was last built."""

    workspace = models.ForeignKey(Workspace, models.CASCADE)
    name = models.CharField(max_length=200)
    kind = models.CharField(max_length=10)
    key = models.JSONField(default=list)
    columns = models.JSONField(default=list)  # [[name, duckdb type, spark type], …]
    table_version = models.BigIntegerField(null=True)  # Delta version that holds the result
    table_commit = models.CharField(max_length=64, blank=True)  # the id of that version's commit; empty: not known
    fingerprint = models.CharField(
        max_length=64, blank=True
    )  # of everything the result depends on; empty = always build
    rows = models.BigIntegerField(default=0)
    last_action = models.CharField(max_length=10, blank=True)  # built, unchanged, skipped, failed
    last_error = models.TextField(blank=True)
    last_run_at = models.DateTimeField(null=True)
    file = models.CharField(max_length=500, blank=True)  # relative to the project folder
    sql_as_written = models.TextField(blank=True)
    sql_as_run = models.TextField(blank=True)
    inputs = models.JSONField(default=list)  # names of the models it reads
    gone_at = models.DateTimeField(null=True, blank=True)  # its file is no longer there
    place = models.CharField(
        max_length=250, blank=True
    )  # its table's folder; empty: not built yet, or as its name says

    class Meta:
        verbose_name = "model"
        constraints = [models.UniqueConstraint(fields=["workspace", "name"], name="one_state_a_model")]

    def __str__(self) -> str:
        return self.name
