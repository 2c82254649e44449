"""What waits for a person, and why."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from django.db.models import Exists, OuterRef, Q, QuerySet, Subquery

from ondatra_web.access import Person, runs_of, syncs_of
from ondatra_web.models import MessageGroup, Organization, Run

_SETTLED = Q(dry_run=False) & ~Q(status__in=[*Run.ACTIVE, Run.Status.SKIPPED])


@dataclass(frozen=True)
class Need:
    """One thing that waits for a person."""

    run: Run
    tone: str
    label: str
    reason: str
    since: datetime | None = None


def needs_of(runs: list[Run]) -> list[Need]:
    since = failing_since(runs)
    newest: dict[int, MessageGroup] = {}
    for group in MessageGroup.objects.filter(run__in=runs).exclude(status="succeeded").order_by("rows"):
        if group.first_run_id == group.run_id or group.run_id not in newest:
            newest[group.run_id] = group
    return [_need(run, newest.get(run.pk), since.get(run.sync_id)) for run in runs]


def _need(run: Run, group: MessageGroup | None, since: datetime | None) -> Need:
    if run.status == Run.Status.HELD:
        return Need(run, "warn", "Held", run.error or "Nothing was sent.")
    said = f"{group.rows - group.beside:,} rows: {group.pattern}" if group else ""
    if run.status == Run.Status.FAILED:
        return Need(run, "bad", "Failing", run.error or said or "No reason was recorded.", since)
    return Need(run, "warn", "New reason", said)


def needing(user: Person, organization: Organization | None) -> QuerySet[Run]:
    """The last settled run of each sync, where it failed, is held, or says something that no run said before."""
    last = Run.objects.filter(_SETTLED, sync=OuterRef("pk")).order_by("-id").values("pk")[:1]
    newest = syncs_of(user, organization).filter(archived_at=None).annotate(last=Subquery(last)).values("last")
    new = MessageGroup.objects.filter(run=OuterRef("pk"), first_run=OuterRef("pk")).exclude(status="succeeded")
    return (
        runs_of(user, organization)
        .filter(pk__in=newest)
        .annotate(has_new=Exists(new))
        .filter(
            Q(status__in=[Run.Status.FAILED, Run.Status.HELD])
            | Q(has_new=True, status=Run.Status.COMPLETED_WITH_REJECTS)
        )
        .select_related("sync")
        .order_by("-id")
    )


def failing_since(runs: Sequence[Run]) -> dict[int, datetime]:
    """Sync id -> when the row of failures began that each of these runs ends."""
    good = (
        Run.objects.filter(_SETTLED, sync=OuterRef(OuterRef("sync_id")))
        .exclude(status=Run.Status.FAILED)
        .order_by("-id")
        .values("pk")[:1]
    )
    first = (
        Run.objects.filter(_SETTLED, sync=OuterRef("sync_id"), status=Run.Status.FAILED)
        .exclude(pk__lt=Subquery(good))
        .order_by("id")
    )
    found = Run.objects.filter(pk__in=[r.pk for r in runs if r.status == Run.Status.FAILED]).annotate(
        since=Subquery(first.values("created_at")[:1])
    )
    return dict(found.values_list("sync_id", "since"))
