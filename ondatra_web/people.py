"""Who belongs to an organization: invited, joined, given a role, removed; and a person's sessions. The one home of
these writes."""

from __future__ import annotations

import hashlib
import secrets
from datetime import timedelta

from django.contrib.auth import SESSION_KEY
from django.contrib.auth.base_user import AbstractBaseUser
from django.contrib.auth.models import User
from django.contrib.sessions.models import Session
from django.db import transaction
from django.utils import timezone

from ondatra_web import audit, tokens
from ondatra_web.models import ApiToken, Invitation, Membership, Organization, Role, Workspace, WorkspaceRole
from runtime.errors import ConfigError

#: How long the link of an invitation works.
INVITED_FOR = timedelta(days=7)


def invite(
    organization: Organization, role: Role, *, email: str = "", workspace: Workspace | None = None, user: User
) -> tuple[Invitation, str]:
    """The invitation, and the secret of its link, which is kept nowhere. With a workspace the role is for it alone.
    Raises ConfigError."""
    if role == Role.NONE:
        raise ConfigError("an invitation gives a role: choose one besides no access")
    if workspace is not None and workspace.organization_id != organization.pk:
        raise ConfigError(f"workspace {workspace} is another organization's: choose one of {organization}")
    secret = secrets.token_urlsafe(32)
    with transaction.atomic():
        made = Invitation.objects.create(
            organization=organization,
            workspace=workspace,
            role=role,
            email=email,
            digest=_digest(secret),
            created_by=user,
            expires_at=timezone.now() + INVITED_FOR,
        )
        _tell(made.organization_id, user, "invite", email or "by link", role, workspace)
    return made, secret


def withdraw(invitation: Invitation, *, user: User) -> None:
    """Its link works no more."""
    with transaction.atomic():
        target = invitation.email or "by link"
        _tell(invitation.organization_id, user, "withdraw_invitation", target, invitation.role, invitation.workspace)
        invitation.delete()


def invited(secret: str) -> Invitation | None:
    """The invitation of a link that still works."""
    found = Invitation.objects.select_related("organization", "workspace", "created_by")
    return found.filter(digest=_digest(secret), expires_at__gt=timezone.now()).first()


def accept(secret: str, user: User) -> Membership:
    """Makes the person a member, once. Who is one already keeps the role that allows more. Raises ConfigError."""
    with transaction.atomic():
        invitation = Invitation.objects.select_for_update().filter(digest=_digest(secret)).first()
        if invitation is None or invitation.expires_at <= timezone.now():
            raise ConfigError("this invitation was used, was withdrawn or is older than a week: ask for another")
        workspace, role = invitation.workspace, Role(invitation.role)
        member, _ = Membership.objects.get_or_create(
            user=user, organization_id=invitation.organization_id, defaults={"role": Role.NONE}
        )
        so_far = WorkspaceRole.objects.filter(membership=member, workspace=workspace).first() or member
        if role not in Role(so_far.role).and_up:
            role = Role(so_far.role)
        if workspace is None:
            Membership.objects.filter(pk=member.pk).update(role=role)
        else:
            WorkspaceRole.objects.update_or_create(membership=member, workspace=workspace, defaults={"role": role})
        _tell(invitation.organization_id, user, "join", user.get_username(), role, workspace)
        invitation.delete()
    member.refresh_from_db()
    return member


def change_role(member: Membership, role: Role, *, user: User) -> None:
    """In the organization. Raises ConfigError where nobody would be admin any more."""
    with transaction.atomic():
        if role != Role.ADMIN:
            _keep_an_admin(member)
        Membership.objects.filter(pk=member.pk).update(role=role)
        _tell(member.organization_id, user, "change_role", member.user.get_username(), role)


def change_workspace_role(member: Membership, workspace: Workspace, role: Role | None, *, user: User) -> None:
    """In one workspace; None gives it the organization's again. Raises ConfigError."""
    if workspace.organization_id != member.organization_id:
        raise ConfigError(f"workspace {workspace} is another organization's: choose one of {member.organization}")
    with transaction.atomic():
        if role is None:
            WorkspaceRole.objects.filter(membership=member, workspace=workspace).delete()
        else:
            WorkspaceRole.objects.update_or_create(membership=member, workspace=workspace, defaults={"role": role})
        said = role or "as in the organization"
        _tell(member.organization_id, user, "change_role", member.user.get_username(), said, workspace)


def remove(member: Membership, *, user: User) -> None:
    """The person belongs to the organization no more, and the tokens there work no more. Raises ConfigError where
    nobody would be admin any more."""
    left = member.user_id == user.pk
    with transaction.atomic():
        _keep_an_admin(member)
        for token in ApiToken.objects.filter(user=member.user_id, organization=member.organization_id):
            tokens.revoke(token, user=user)
        action = "leave" if left else "remove_member"
        audit.write(member.organization_id, user, action, member.user.get_username(), {"role": member.role})
        member.delete()


def end_sessions(person: AbstractBaseUser, *, user: User | None, keep: str | None = None) -> int:
    """Signs the person out everywhere, but for the session with the key `keep`; how many ended. Sessions do not say
    whose they are, so that all are looked at."""
    mine = [
        session.pk
        for session in Session.objects.filter(expire_date__gt=timezone.now()).iterator()
        if session.pk != keep and session.get_decoded().get(SESSION_KEY) == str(person.pk)
    ]
    with transaction.atomic():
        Session.objects.filter(pk__in=mine).delete()
        tell_everywhere(person, user, "end_sessions", {"sessions": len(mine)})
    return len(mine)


def forget_old() -> None:
    """Sessions and invitations whose time is over."""
    Session.objects.filter(expire_date__lte=timezone.now()).delete()
    Invitation.objects.filter(expires_at__lte=timezone.now()).delete()


def tell_everywhere(person: AbstractBaseUser, user: User | None, action: str, detail: dict[str, object]) -> None:
    """What is about a person, in the audit log of each of the person's organizations."""
    for organization_id in Membership.objects.filter(user_id=person.pk).values_list("organization_id", flat=True):
        audit.write(organization_id, user, action, person.get_username(), detail)


def belongs_here_alone(member: Membership) -> bool:
    """Whether an admin may help with the password: who has rights elsewhere, or in the install, is not this admin's."""
    person = member.user
    elsewhere = Membership.objects.filter(user=person).exclude(organization=member.organization_id)
    return not (person.is_staff or person.is_superuser or elsewhere.exists())


def _keep_an_admin(member: Membership) -> None:
    members = Membership.objects.select_for_update().filter(organization=member.organization_id, role=Role.ADMIN)
    admins = set(members.filter(user__is_active=True).values_list("pk", flat=True))
    if admins == {member.pk}:
        raise ConfigError(
            f"{member.user} is the last admin of {member.organization}: make another member an admin first"
        )


def _tell(
    organization_id: int, user: User, action: str, target: str, role: str, workspace: Workspace | None = None
) -> None:
    told = {"role": str(role), **({"workspace": workspace.slug} if workspace else {})}
    audit.write(organization_id, user, action, target, told)


def _digest(secret: str) -> str:
    return hashlib.sha256(secret.encode()).hexdigest()
