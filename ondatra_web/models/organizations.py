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


class Role(models.TextChoices):
    """What somebody may do, from little to everything: each role may what those before it may."""

    NONE = "none", "No access"
    METADATA_VIEWER = "metadata_viewer", "Metadata viewer"  # counts, states and reasons, without payloads
    VIEWER = "viewer", "Viewer"
    OPERATOR = "operator", "Operator"
    ADMIN = "admin", "Admin"

    @property
    def and_up(self) -> list[str]:
        """This role and those that may more."""
        every = list(Role.values)
        return every[every.index(self.value) :]


class Membership(models.Model):
    """Who belongs to an organization, and what they may do in those of its workspaces that say nothing else."""

    user = models.ForeignKey(settings.AUTH_USER_MODEL, models.CASCADE)
    organization = models.ForeignKey(Organization, models.CASCADE)
    role = models.CharField(max_length=20, choices=Role.choices, default=Role.VIEWER)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["user", "organization"], name="one_membership")]

    def __str__(self) -> str:
        return f"{self.user} in {self.organization}"


class WorkspaceRole(models.Model):
    """What a member may do in one workspace, in place of the role in the organization."""

    membership = models.ForeignKey(Membership, models.CASCADE, related_name="workspace_roles")
    workspace = models.ForeignKey("Workspace", models.CASCADE)
    role = models.CharField(max_length=20, choices=Role.choices)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["membership", "workspace"], name="one_role_a_workspace")]

    def __str__(self) -> str:
        return f"{self.role} of {self.workspace}"


class Invitation(models.Model):
    """A link that makes whoever has it a member, once; only its SHA-256 is kept."""

    organization = models.ForeignKey(Organization, models.CASCADE)
    workspace = models.ForeignKey("Workspace", models.CASCADE, null=True, blank=True)  # the role is for it alone
    role = models.CharField(max_length=20, choices=Role.choices)
    email = models.EmailField(blank=True)
    digest = models.CharField(max_length=64, unique=True)
    created_by = models.ForeignKey(settings.AUTH_USER_MODEL, models.SET_NULL, null=True, related_name="+")
    created_at = models.DateTimeField(default=timezone.now)
    expires_at = models.DateTimeField()

    def __str__(self) -> str:
        return f"{self.role} in {self.organization}"


class ApiToken(models.Model):
    """A bearer token of the HTTP API; only its SHA-256 is kept."""

    organization = models.ForeignKey(Organization, models.CASCADE)
    user = models.ForeignKey(settings.AUTH_USER_MODEL, models.CASCADE)
    name = models.CharField(max_length=100)
    digest = models.CharField(max_length=64, unique=True)
    scopes = models.JSONField(default=list)  # of ondatra_web.tokens.SCOPES
    expires_at = models.DateTimeField(null=True, blank=True)
    created_at = models.DateTimeField(default=timezone.now)
    last_used_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        verbose_name = "API token"

    def __str__(self) -> str:
        return self.name


class AuditLog(models.Model):
    """What people did, newest last; lines are only added."""

    organization = models.ForeignKey(Organization, models.CASCADE)
    user = models.ForeignKey(settings.AUTH_USER_MODEL, models.SET_NULL, null=True)
    who = models.CharField(max_length=200, blank=True)  # the name at that time; of a command the system user's
    sync = models.ForeignKey("Sync", models.SET_NULL, null=True, blank=True, related_name="+")
    action = models.CharField(max_length=50)
    target = models.CharField(max_length=200)
    detail = models.JSONField(default=dict)
    at = models.DateTimeField(default=timezone.now)

    class Meta:
        verbose_name = "line of the audit log"
        verbose_name_plural = "audit log"
        indexes = [
            models.Index(fields=["organization", "-id"], name="audit_of_an_organization"),
            models.Index(fields=["organization", "at"], name="audit_by_time"),
            models.Index(fields=["organization", "who", "-id"], name="audit_by_person"),
        ]

    def __str__(self) -> str:
        return f"{self.action} {self.target}"
