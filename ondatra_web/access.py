"""Each kind of row fetched with its rights checked: one function a kind. What a person may not see is not there (404);
what is there and not allowed is told with who can help (403).

A right is the least role that has it. What a person is in a workspace says the workspace's own role, else the
organization's. Lists may be narrowed to one organization: the one that the person chose.
"""

from __future__ import annotations

from typing import TypeVar

from django.contrib.auth.models import AbstractBaseUser, AnonymousUser
from django.core.exceptions import PermissionDenied
from django.db.models import OuterRef, QuerySet, Subquery
from django.db.models.functions import Coalesce
from django.http import Http404, HttpRequest

from ondatra_web.models import (
    Alert,
    AlertChannel,
    AlertDelivery,
    AlertRule,
    ApiToken,
    Export,
    Invitation,
    Membership,
    ModelState,
    Organization,
    Role,
    Run,
    SavedFilter,
    Sync,
    Workspace,
    WorkspaceRole,
)

Person = AbstractBaseUser | AnonymousUser
Row = TypeVar("Row", Invitation, ApiToken)

SEE, PAYLOADS, OPERATE, ADMINISTER = Role.METADATA_VIEWER, Role.VIEWER, Role.OPERATOR, Role.ADMIN
#: What a right is called where somebody lacks it.
_TOLD = {
    SEE: "look at {}",
    PAYLOADS: "read the records of {}",
    OPERATE: "start, stop or change {}",
    ADMINISTER: "administer {}",
}
#: Where a session keeps the organization that a person chose.
CHOSEN = "organization"


def _id(user: Person) -> int:
    """0 for someone who is not signed in: nobody's id."""
    return int(user.pk or 0)


# organizations


def organizations_of(user: Person) -> QuerySet[Organization]:
    return Organization.objects.filter(membership__user_id=_id(user)).order_by("pk")


def organization_for(user: Person, organization_id: int, right: Role = SEE) -> Organization:
    """Raises Http404, and PermissionDenied where only an admin may."""
    try:
        found = organizations_of(user).get(pk=organization_id)
    except Organization.DoesNotExist:
        raise Http404(f"there is no organization {organization_id} of yours") from None
    if right == ADMINISTER and not administers(user, found):
        raise _denied(right, found.name)
    return found


def administers(user: Person, organization: Organization) -> bool:
    return Membership.objects.filter(user_id=_id(user), organization=organization, role=Role.ADMIN).exists()


def chosen_organization(request: HttpRequest) -> Organization | None:
    """The organization whose lists a person looks at: the one last chosen, else the first; None without any."""
    if not hasattr(request, "_organizations"):
        request._organizations = list(organizations_of(request.user))  # type: ignore[attr-defined]
    known: list[Organization] = request._organizations  # type: ignore[attr-defined]
    chosen = request.session.get(CHOSEN)
    return next((o for o in known if o.pk == chosen), known[0] if known else None)


def own_organization(request: HttpRequest, right: Role = SEE) -> Organization:
    """The same for pages that are about it. Raises Http404, PermissionDenied."""
    found = chosen_organization(request)
    if found is None:
        raise Http404("you belong to no organization: an admin of one can invite you")
    return organization_for(request.user, found.pk, right)


def membership_for(user: Person, membership_id: int) -> Membership:
    """A membership of an organization that the person administers, or the person's own. Raises Http404,
    PermissionDenied."""
    try:
        found = Membership.objects.select_related("user", "organization").get(
            pk=membership_id, organization__in=organizations_of(user)
        )
    except Membership.DoesNotExist:
        raise Http404(f"there is no member {membership_id} in your organizations") from None
    if found.user_id != _id(user) and not administers(user, found.organization):
        raise _denied(ADMINISTER, found.organization.name)
    return found


def invitation_for(user: Person, invitation_id: int) -> Invitation:
    """Of an organization that the person administers. Raises Http404, PermissionDenied."""
    found = Invitation.objects.select_related("organization", "workspace")
    return _administered(found, user, invitation_id, "invitation")


def token_for(user: Person, token_id: int) -> ApiToken:
    """The same."""
    return _administered(ApiToken.objects.select_related("organization", "user"), user, token_id, "token")


def _administered(rows: QuerySet[Row], user: Person, row_id: int, kind: str) -> Row:
    found = rows.filter(organization__in=organizations_of(user), pk=row_id).first()
    if found is None:
        raise Http404(f"there is no {kind} {row_id} in your organizations")
    if not administers(user, found.organization):
        raise _denied(ADMINISTER, found.organization.name)
    return found


# workspaces, and what lies in them


def workspaces_of(user: Person, organization: Organization | None = None, right: Role = SEE) -> QuerySet[Workspace]:
    own = WorkspaceRole.objects.filter(membership__user_id=_id(user), workspace=OuterRef("pk")).values("role")
    usual = Membership.objects.filter(user_id=_id(user), organization=OuterRef("organization")).values("role")
    found = Workspace.objects.alias(role=Coalesce(Subquery(own), Subquery(usual))).filter(role__in=right.and_up)
    return found.filter(organization=organization) if organization else found


def syncs_of(user: Person, organization: Organization | None = None, right: Role = SEE) -> QuerySet[Sync]:
    return Sync.objects.filter(workspace__in=workspaces_of(user, organization, right))


def runs_of(user: Person, organization: Organization | None = None, right: Role = SEE) -> QuerySet[Run]:
    return Run.objects.filter(sync__workspace__in=workspaces_of(user, organization, right))


def model_states_of(user: Person, organization: Organization | None = None) -> QuerySet[ModelState]:
    return ModelState.objects.filter(workspace__in=workspaces_of(user, organization))


def may(user: Person, right: Role, workspace: Workspace) -> bool:
    return workspaces_of(user, right=right).filter(pk=workspace.pk).exists()


def workspace_for(user: Person, workspace_id: int, right: Role = SEE) -> Workspace:
    """Raises Http404, PermissionDenied."""
    try:
        found = workspaces_of(user).select_related("organization").get(pk=workspace_id)
    except Workspace.DoesNotExist:
        raise Http404(f"there is no workspace {workspace_id} in your organizations") from None
    _check(user, right, found, found.slug)
    return found


def model_state_for(user: Person, state_id: int) -> ModelState:
    """Raises Http404."""
    try:
        return model_states_of(user).select_related("workspace").get(pk=state_id)
    except ModelState.DoesNotExist:
        raise Http404(f"there is no model {state_id} in your organizations") from None


def sync_for(user: Person, sync_id: int, right: Role = SEE) -> Sync:
    """Raises Http404, PermissionDenied."""
    try:
        sync = syncs_of(user).select_related("workspace__organization", "destination__destination").get(pk=sync_id)
    except Sync.DoesNotExist:
        raise Http404(f"there is no sync {sync_id} in your organizations") from None
    _check(user, right, sync.workspace, sync.name)
    return sync


def run_for(user: Person, run_id: int, right: Role = SEE) -> Run:
    """Raises Http404, PermissionDenied."""
    try:
        run = (
            runs_of(user)
            .select_related("sync__workspace__organization", "started_by", "cancelled_by", "bucket__organization")
            .get(pk=run_id)
        )
    except Run.DoesNotExist:
        raise Http404(f"there is no run {run_id} in your organizations") from None
    _check(user, right, run.sync.workspace, run.sync.name)
    return run


def export_for(user: Person, export_id: int, right: Role = PAYLOADS) -> Export:
    """An export holds payloads; whoever made one may also change it. Raises Http404, PermissionDenied."""
    try:
        found = (
            Export.objects.filter(run__sync__workspace__in=workspaces_of(user))
            .select_related("run__sync__workspace", "created_by")
            .get(pk=export_id)
        )
    except Export.DoesNotExist:
        raise Http404(f"there is no export {export_id} in your organizations") from None
    least = PAYLOADS if found.created_by_id == _id(user) else right
    _check(user, least, found.run.sync.workspace, found.run.sync.name)
    return found


def saved_filter_for(user: Person, filter_id: int) -> SavedFilter:
    """One that the person saved. Raises Http404."""
    found = SavedFilter.objects.filter(user_id=_id(user), organization__in=organizations_of(user), pk=filter_id).first()
    if found is None:
        raise Http404(f"there is no filter {filter_id} of yours")
    return found


# alerts: who sees a sync sees its alerts, who operates it acknowledges them; who administers it says when somebody is
# called, who administers an organization says whom


def alerts_of(user: Person, organization: Organization | None = None) -> QuerySet[Alert]:
    return Alert.objects.filter(sync__workspace__in=workspaces_of(user, organization))


def alert_for(user: Person, alert_id: int, right: Role = SEE) -> Alert:
    """Raises Http404, PermissionDenied."""
    try:
        found = alerts_of(user).select_related("sync__workspace__organization", "acknowledged_by").get(pk=alert_id)
    except Alert.DoesNotExist:
        raise Http404(f"there is no alert {alert_id} in your organizations") from None
    _check(user, right, found.sync.workspace, found.sync.name)
    return found


def alert_rule_for(user: Person, rule_id: int, right: Role = SEE) -> AlertRule:
    """Raises Http404, PermissionDenied."""
    try:
        rules = AlertRule.objects.filter(workspace__in=workspaces_of(user))
        found = rules.select_related("workspace__organization", "sync").prefetch_related("channels").get(pk=rule_id)
    except AlertRule.DoesNotExist:
        raise Http404(f"there is no alert rule {rule_id} in your organizations") from None
    _check(user, right, found.workspace, found.workspace.slug)
    return found


def alert_channel_for(user: Person, channel_id: int, right: Role = SEE) -> AlertChannel:
    """Raises Http404, PermissionDenied."""
    try:
        channels = AlertChannel.objects.filter(organization__in=organizations_of(user))
        found = channels.select_related("organization").get(pk=channel_id)
    except AlertChannel.DoesNotExist:
        raise Http404(f"there is no alert channel {channel_id} in your organizations") from None
    organization_for(user, found.organization_id, right)
    return found


def alert_delivery_for(user: Person, delivery_id: int, right: Role = SEE) -> AlertDelivery:
    """Raises Http404, PermissionDenied."""
    try:
        sent = AlertDelivery.objects.filter(channel__organization__in=organizations_of(user))
        found = sent.select_related("channel__organization").get(pk=delivery_id)
    except AlertDelivery.DoesNotExist:
        raise Http404(f"there is no message {delivery_id} in your organizations") from None
    organization_for(user, found.channel.organization_id, right)
    return found


def _check(user: Person, right: Role, workspace: Workspace, name: str) -> None:
    if right != SEE and not may(user, right, workspace):
        raise _denied(right, name)


def _denied(right: Role, name: str) -> PermissionDenied:
    return PermissionDenied(
        f"your role does not let you {_TOLD[right].format(name)}: an admin of the organization can make you "
        f"{'an' if right in (OPERATE, ADMINISTER) else 'a'} {right.label.lower()}"
    )
