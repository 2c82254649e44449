"""Organizations, and what people do in them."""

from __future__ import annotations

import uuid

from django.conf import settings
from django.db import models
from django.utils import timezone


def new_external_id() -> str:
    return f"ondatra-{uuid.uuid4().hex}"


class Organization(models.Model):
    """The tenant; its id is [ORG_ID] in the store's folders."""

    name = models.CharField(max_length=200)
    external_id = models.CharField(
        max_length=40, default=new_external_id, editable=False
    )  # what the trust policy of its bucket's role asks for
    created_at = models.DateTimeField(default=timezone.now)

    def __str__(self) -> str:
        return self.name


class Membership(models.Model):
    """Who sees an organization, and what they may do there."""

    class Role(models.TextChoices):
        OWNER = "owner"
        MEMBER = "member"
        VIEWER = "viewer"

    user = models.ForeignKey(settings.AUTH_USER_MODEL, models.CASCADE)
    organization = models.ForeignKey(Organization, models.CASCADE)
    role = models.CharField(max_length=10, choices=Role.choices, default=Role.MEMBER)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["user", "organization"], name="one_membership")]

    def __str__(self) -> str:
        return f"{self.user} in {self.organization}"


class ApiToken(models.Model):
    """A bearer token of the HTTP API; only its SHA-256 is kept."""

    organization = models.ForeignKey(Organization, models.CASCADE)
    user = models.ForeignKey(settings.AUTH_USER_MODEL, models.CASCADE)
    name = models.CharField(max_length=100)
    digest = models.CharField(max_length=64, unique=True)
    scopes = models.JSONField(default=list)  # of ondatra_web.api.tokens.SCOPES
    expires_at = models.DateTimeField(null=True, blank=True)
    created_at = models.DateTimeField(default=timezone.now)
    last_used_at = models.DateTimeField(null=True, blank=True)

    def __str__(self) -> str:
        return self.name


class AuditLog(models.Model):
    """What people did."""

    organization = models.ForeignKey(Organization, models.CASCADE)
    user = models.ForeignKey(settings.AUTH_USER_MODEL, models.SET_NULL, null=True)
    action = models.CharField(max_length=50)
    target = models.CharField(max_length=200)
    detail = models.JSONField(default=dict)
    at = models.DateTimeField(default=timezone.now)

    def __str__(self) -> str:
        return f"{self.action} {self.target}"
