"""Each kind of row fetched with its rights checked. What a person may not see is not there: 404, never 403."""

from __future__ import annotations

from django.contrib.auth.models import AbstractBaseUser, AnonymousUser
from django.core.exceptions import PermissionDenied
from django.db.models import QuerySet
from django.http import Http404

from ondatra_web.models import Export, Membership, ModelState, Organization, Run, Sync

Person = AbstractBaseUser | AnonymousUser


def _id(user: Person) -> int:
    """0 for someone who is not signed in: nobody's id."""
    return int(user.pk or 0)


def organizations_of(user: Person) -> QuerySet[Organization]:
    return Organization.objects.filter(membership__user_id=_id(user))


def syncs_of(user: Person) -> QuerySet[Sync]:
    return Sync.objects.filter(workspace__organization__membership__user_id=_id(user))


def runs_of(user: Person) -> QuerySet[Run]:
    return Run.objects.filter(sync__workspace__organization__membership__user_id=_id(user))


def model_states_of(user: Person) -> QuerySet[ModelState]:
    return ModelState.objects.filter(workspace__organization__membership__user_id=_id(user))


def model_state_for(user: Person, state_id: int) -> ModelState:
    """Raises Http404."""
    try:
        return model_states_of(user).select_related("workspace").get(pk=state_id)
    except ModelState.DoesNotExist:
        raise Http404(f"there is no model {state_id} in your organizations") from None


def organization_for(user: Person, organization_id: int, *, write: bool = False) -> Organization:
    """Raises Http404, and PermissionDenied for a change by somebody who does not own it."""
    try:
        found = organizations_of(user).get(pk=organization_id)
    except Organization.DoesNotExist:
        raise Http404(f"there is no organization {organization_id} of yours") from None
    if write and not owns(user, found):
        raise PermissionDenied(f"only an owner of {found.name} may change its store")
    return found


def owns(user: Person, organization: Organization) -> bool:
    return Membership.objects.filter(user_id=_id(user), organization=organization, role=Membership.Role.OWNER).exists()


def sync_for(user: Person, sync_id: int, *, write: bool = False) -> Sync:
    """Raises Http404, and PermissionDenied where the person may only look."""
    try:
        sync = syncs_of(user).select_related("workspace__organization", "destination__destination").get(pk=sync_id)
    except Sync.DoesNotExist:
        raise Http404(f"there is no sync {sync_id} in your organizations") from None
    if write:
        _check_writes(user, sync)
    return sync


def run_for(user: Person, run_id: int, *, write: bool = False) -> Run:
    """Raises Http404, and PermissionDenied where the person may only look."""
    try:
        run = (
            runs_of(user)
            .select_related("sync__workspace__organization", "started_by", "cancelled_by", "bucket__organization")
            .get(pk=run_id)
        )
    except Run.DoesNotExist:
        raise Http404(f"there is no run {run_id} in your organizations") from None
    if write:
        _check_writes(user, run.sync)
    return run


def export_for(user: Person, export_id: int, *, write: bool = False) -> Export:
    """Raises Http404, and PermissionDenied for a change of another's by somebody who may only look."""
    try:
        found = (
            Export.objects.filter(run__sync__workspace__organization__membership__user_id=_id(user))
            .select_related("run__sync__workspace", "created_by")
            .get(pk=export_id)
        )
    except Export.DoesNotExist:
        raise Http404(f"there is no export {export_id} in your organizations") from None
    if write and found.created_by_id != _id(user):
        _check_writes(user, found.run.sync)
    return found


def may_write(user: Person, sync: Sync) -> bool:
    """Whether the person may start and stop runs, not just look."""
    return (
        Membership.objects.filter(user_id=_id(user), organization_id=sync.workspace.organization_id)
        .exclude(role=Membership.Role.VIEWER)
        .exists()
    )


def _check_writes(user: Person, sync: Sync) -> None:
    if not may_write(user, sync):
        raise PermissionDenied(f"you may look at {sync.name} but not start or stop it: an owner can make you a member")
