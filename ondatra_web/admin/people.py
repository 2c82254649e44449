"""Who comes in, and what they did."""

from __future__ import annotations

from typing import Any

from django.contrib import admin
from django.contrib.auth.admin import GroupAdmin, UserAdmin
from django.contrib.auth.models import Group, User
from django.db.models import Q
from django.http import HttpRequest

from ondatra_web import audit, models, people, tokens
from ondatra_web.admin.columns import link, told
from ondatra_web.admin.deeds import Deed
from ondatra_web.admin.looking import Edit, Look, is_id

admin.site.unregister([User, Group])


def _asks_sessions(person: User) -> list[str]:
    return [f"{person} is signed out everywhere at once, and signs in again with the password."]


def _end_sessions(person: User, user: Any) -> str:
    return f"{people.end_sessions(person, user=user):,} sessions of {person} are ended."


def _revoke(token: models.ApiToken, user: Any) -> str:
    tokens.revoke(token, user=user)
    return f"{token.name} is revoked."


def _make_admin(member: models.Membership, user: Any) -> str:
    people.change_role(member, models.Role.ADMIN, user=user)
    return f"{member.user} is an admin of {member.organization}."


def _remove(member: models.Membership, user: Any) -> str:
    people.remove(member, user=user)
    return f"{member.user} belongs to {member.organization} no more."


@admin.register(User)
class PersonAdmin(Edit, UserAdmin):  # type: ignore[type-arg]
    list_display = ("username", "email", "is_active", "is_staff", "is_superuser", "last_login")
    list_filter = ("is_active", "is_staff")
    ordering = ("username",)
    search_help_text = "The beginning of a name or address, or an id"
    readonly_fields = ("last_login", "date_joined")
    below = (
        ("Memberships", "membership", "user"),
        ("API tokens", "apitoken", "user"),
        ("Audit log", "auditlog", "user"),
    )
    deeds = (Deed("sessions", "End all sessions", _asks_sessions, _end_sessions, lambda person: person.last_login),)

    def get_fields(self, request: HttpRequest, obj: Any = None) -> Any:
        return UserAdmin.get_fields(self, request, obj)

    def get_fieldsets(self, request: HttpRequest, obj: Any = None) -> Any:
        sets = super().get_fieldsets(request, obj)
        return [*sets, ("See", {"fields": ["see"]})] if obj else sets

    def found(self, term: str) -> Q | None:
        named = Q(username__istartswith=term) | Q(email__istartswith=term)
        return named | Q(pk=int(term)) if is_id(term) else named


@admin.register(Group)
class RightsGroupAdmin(Edit, GroupAdmin):
    """What staff may do here."""

    list_display = ("name",)
    ordering = ("name",)

    def get_fields(self, request: HttpRequest, obj: Any = None) -> Any:
        return ("name", "permissions")


@admin.register(models.Organization)
class OrganizationAdmin(Edit):
    list_display = ("name", "id", "created_at")
    search_help_text = "Part of a name, or an id"
    fields = ("name", "external_id", "created_at")
    readonly_fields = ("external_id", "created_at")
    below = (
        ("Workspaces", "workspace", "organization"),
        ("Memberships", "membership", "organization"),
        ("Invitations", "invitation", "organization"),
        ("API tokens", "apitoken", "organization"),
        ("Buckets", "bucket", "organization"),
        ("Audit log", "auditlog", "organization"),
    )

    def get_fields(self, request: HttpRequest, obj: Any = None) -> Any:
        return super().get_fields(request, obj) if obj else ("name",)

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """With it would go everything that was ever sent for it."""
        return False

    def found(self, term: str) -> Q | None:
        named = Q(name__icontains=term)
        return named | Q(pk=int(term)) if is_id(term) else named

    def save_model(self, request: HttpRequest, obj: models.Organization, form: Any, change: bool) -> None:
        super().save_model(request, obj, form, change)
        audit.write(obj.pk, _who(request), "save_organization", obj.name, {})


@admin.register(models.Membership)
class MembershipAdmin(Look):
    """Made here for an organization that has nobody; else its admins invite people and give them roles."""

    person = link("user", "person")
    organization = link("organization", "organization")
    list_display = ("id", person, organization, "role")
    list_select_related = ("user", "organization")
    list_filter = ("role",)
    raw_id_fields = ("user", "organization")
    fields = ("user", "organization", "role")
    search_help_text = "The whole name of a person, or an id"
    below = (("Roles in workspaces", "workspacerole", "membership"),)
    deeds = (
        Deed(
            "admin",
            "Make an admin",
            lambda member: [f"{member.user} may do everything in {member.organization}."],
            _make_admin,
            lambda member: member.role != models.Role.ADMIN,
        ),
        Deed(
            "remove",
            "Remove from the organization",
            lambda member: [f"{member.user} loses every role in {member.organization}, and the tokens there."],
            _remove,
        ),
    )

    def has_add_permission(self, request: HttpRequest) -> bool:
        return request.user.has_perm("ondatra_web.add_membership")

    def get_readonly_fields(self, request: HttpRequest, obj: Any = None) -> Any:
        return self.get_fields(request, obj) if obj else ()

    def found(self, term: str) -> Q | None:
        named = Q(user__username=term)
        return named | Q(pk=int(term)) if is_id(term) else named

    def save_model(self, request: HttpRequest, obj: models.Membership, form: Any, change: bool) -> None:
        super().save_model(request, obj, form, change)
        audit.write(obj.organization_id, _who(request), "join", str(obj.user), {"role": obj.role})


@admin.register(models.WorkspaceRole)
class WorkspaceRoleAdmin(Look):
    membership = link("membership", "membership")
    workspace = link("workspace", "workspace")
    list_display = ("id", membership, workspace, "role")
    list_select_related = ("membership__user", "membership__organization", "workspace")
    columns = (membership, workspace, "role")


@admin.register(models.Invitation)
class InvitationAdmin(Look):
    organization = link("organization", "organization")
    workspace = link("workspace", "workspace")
    list_display = ("id", "email", organization, workspace, "role", "created_by", "expires_at")
    list_select_related = ("organization", "workspace", "created_by")
    columns = ("email", organization, workspace, "role", "created_by", "created_at", "expires_at")


def _who(request: HttpRequest) -> User | None:
    return request.user if isinstance(request.user, User) else None


@admin.register(models.ApiToken)
class ApiTokenAdmin(Look):
    person = link("user", "person")
    organization = link("organization", "organization")
    list_display = ("name", "id", person, organization, told("scopes", "scopes"), "last_used_at", "expires_at")
    list_select_related = ("user", "organization")
    search_help_text = "The whole name of a person, or an id"
    columns = ("name", person, organization, told("scopes", "scopes"), "created_at", "last_used_at", "expires_at")
    deeds = (
        Deed(
            "revoke",
            "Revoke it",
            lambda token: [f"Whatever uses {token} of {token.user} in {token.organization} stops working at once."],
            _revoke,
        ),
    )

    def found(self, term: str) -> Q | None:
        named = Q(user__username=term)
        return named | Q(pk=int(term)) if is_id(term) else named


@admin.register(models.AuditLog)
class AuditLogAdmin(Look):
    """Without its details, which may name records: the product's page has them for who may see these."""

    person = link("user", "person")
    organization = link("organization", "organization")
    list_display = ("at", "who", "action", "target", organization)
    list_select_related = ("user", "organization")
    search_help_text = "The whole name of a person"
    columns = ("at", "who", person, "action", "target", organization)

    def found(self, term: str) -> Q | None:
        person = User.objects.filter(username=term).first()
        return Q(user_id=person.pk) if person else None
