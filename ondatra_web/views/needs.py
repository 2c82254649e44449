"""What waits for a person, and why."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.db.models import Exists, F, OuterRef, Q, QuerySet, Subquery
from django.db.models.functions import Coalesce
from django.utils import timezone

from ondatra_web.access import Person, syncs_of
from ondatra_web.models import MessageGroup, Organization, Run, Sync
from ondatra_web.runs import waiting

#: What is worst comes first.
RANKS = ("Failing", "Held", "Late", "New reason", "Growing due", "Refused")
#: A run may begin so long after its time.
LATE = timedelta(minutes=5)
_SETTLED = Q(dry_run=False) & ~Q(status__in=[*Run.ACTIVE, Run.Status.SKIPPED])
#: Of the last runs that `_last` finds: failed, held, or with something that no run said before; and those after which
#: more waits than after the one before.
_TROUBLED = Q(status__in=[Run.Status.FAILED, Run.Status.HELD]) | Q(
    has_new=True, status=Run.Status.COMPLETED_WITH_REJECTS
)
_GROWING = Q(due__gt=0) & Q(due_before__gt=0) & Q(due__gt=F("due_before"))


@dataclass(frozen=True)
class Need:
    """One sync that waits for a person."""

    sync: Sync
    tone: str
    label: str
    reason: str
    todo: str
    run: Run | None = None  # the one to open
    since: datetime | None = None


@dataclass(frozen=True)
class _Found:
    """What waits for somebody, as ids: few are shown of how many there may be."""

    runs: list[tuple[int, int]]  # and their syncs, newest first
    late: list[int]
    growing: dict[int, tuple[int, int]]  # rows that wait after the last run, and after the one before
    refused: dict[int, int]  # records

    @property
    def syncs(self) -> set[int]:
        return {*(sync for _, sync in self.runs), *self.late, *self.growing, *self.refused}


def count(user: Person, organization: Organization | None) -> int:
    """Syncs that need somebody, as `needs` finds them; one question, since every page asks it."""
    syncs = _syncs(user, organization)
    last = _last(syncs).filter(_TROUBLED | _GROWING)
    refused = waiting.with_refused(syncs)
    return syncs.filter(_late_by() | Q(pk__in=refused.values("sync")) | Q(pk__in=last.values("sync"))).count()


def _found(user: Person, organization: Organization | None) -> _Found:
    syncs = _syncs(user, organization)
    growing = _last(syncs).filter(_GROWING).order_by("sync__name").values_list("sync_id", "due", "due_before")
    return _Found(
        list(_last(syncs).filter(_TROUBLED).order_by("-id").values_list("pk", "sync_id")),
        list(syncs.filter(_late_by()).order_by("next_run_at").values_list("pk", flat=True)),
        {pk: (now, before) for pk, now, before in growing},
        waiting.refused(syncs),
    )


def needs(user: Person, organization: Organization | None, most: int) -> tuple[list[Need], int]:
    """The first of them, what is worst at the beginning and each sync once, and how many there are."""
    found = _found(user, organization)
    runs = Run.objects.select_related("sync").defer("metadata", "options", "rules")
    first = runs.in_bulk([run for run, _ in found.runs[:most]])
    by_name = Sync.objects.filter(pk__in=list(found.refused)).order_by("name").values_list("pk", flat=True)[:most]
    refused = list(by_name) if found.refused else []
    syncs = Sync.objects.in_bulk({*found.late[:most], *list(found.growing)[:most], *refused})

    told: dict[int, Need] = {}
    for need in (
        *needs_of([first[run] for run, _ in found.runs[:most]]),
        *(_late(syncs[pk]) for pk in found.late[:most]),
        *(_growing(syncs[pk], *found.growing[pk]) for pk in list(found.growing)[:most]),
        *(_refused(syncs[pk], found.refused[pk]) for pk in refused),
    ):
        told.setdefault(need.sync.pk, need)
    ranked = sorted(told.values(), key=lambda need: RANKS.index(need.label))
    return ranked[:most], len(found.syncs)


def needs_of(runs: list[Run]) -> list[Need]:
    since = failing_since(runs)
    newest: dict[int, MessageGroup] = {}
    for group in MessageGroup.objects.filter(run__in=runs).exclude(status="succeeded").order_by("rows"):
        if group.first_run_id == group.run_id or group.run_id not in newest:
            newest[group.run_id] = group
    return [_need(run, newest.get(run.pk), since.get(run.sync_id)) for run in runs]


def _need(run: Run, group: MessageGroup | None, since: datetime | None) -> Need:
    if run.status == Run.Status.HELD:
        todo = "Look at what it would delete, then confirm it or cancel it."
        return Need(run.sync, "warn", "Held", run.error or "Nothing was sent.", todo, run)
    rows = group.rows - group.beside if group else 0
    said = f"{rows:,} row{'' if rows == 1 else 's'}: {group.pattern}" if group else ""
    if run.status == Run.Status.FAILED:
        todo = "Mend the cause and run it again: what was not sent goes with that run."
        return Need(run.sync, "bad", "Failing", run.error or said or "No reason was recorded.", todo, run, since)
    todo = "Look at its rows; once the cause is mended, send them again from there."
    return Need(run.sync, "warn", "New reason", said, todo, run)


def _late(sync: Sync) -> Need:
    todo = "Start a run by hand, and see that the scheduler runs: without it no schedule starts anything."
    return Need(sync, "bad", "Late", "Its time has come and no run was started.", todo, since=sync.next_run_at)


def _growing(sync: Sync, now: int, before: int) -> Need:
    told = f"{now:,} rows wait after the last run, {before:,} after the one before."
    return Need(sync, "warn", "Growing due", told, "See in its last run why rows come back, before they pile up.")


def _refused(sync: Sync, records: int) -> Need:
    told = (
        f"{records:,} records are refused and not at the destination."
        if records != 1
        else ("1 record is refused and not at the destination.")
    )
    return Need(sync, "warn", "Refused", told, "Mend the cause, then send them again from the run that was refused.")


def _syncs(user: Person, organization: Organization | None) -> QuerySet[Sync]:
    return syncs_of(user, organization).filter(archived_at=None)


def _late_by() -> Q:
    """Syncs whose time came a while ago, and nobody started them."""
    return ~Q(schedule="") & Q(paused_at=None, next_run_at__lt=timezone.now() - LATE)


def _last(syncs: QuerySet[Sync]) -> QuerySet[Any]:
    """The last settled run of each of these syncs: `has_new`, whether it says something that no run said before, `due`,
    the rows that wait after it, and `due_before`, those after the one before; None where it is the first."""
    settled = Run.objects.filter(_SETTLED).order_by("-id")
    due = F("retrying") + F("not_tried")
    new = MessageGroup.objects.filter(run=OuterRef("pk"), first_run=OuterRef("pk")).exclude(status="succeeded")
    before = settled.filter(sync=OuterRef("sync"), pk__lt=OuterRef("pk")).annotate(due=due).values("due")[:1]
    last = syncs.annotate(last=Subquery(settled.filter(sync=OuterRef("pk")).values("pk")[:1])).values("last")
    return Run.objects.filter(pk__in=last).annotate(has_new=Exists(new), due=due, due_before=Subquery(before))


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
        .filter(pk__gt=Coalesce(Subquery(good), 0))  # a bound of the index, where a sync has thousands of runs
        .order_by("id")
    )
    found = Run.objects.filter(pk__in=[r.pk for r in runs if r.status == Run.Status.FAILED]).annotate(
        since=Subquery(first.values("created_at")[:1])
    )
    return dict(found.values_list("sync_id", "since"))
