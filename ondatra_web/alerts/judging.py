"""Who looks when: every run once it has ended, and by the clock what no end of a run tells.

A run counts as judged in the transaction that changes its alerts; whoever comes next judges what a process that died
left. The number of queries does not grow with the runs and syncs that there are, only with alerts that change.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Sequence
from datetime import datetime

from django.db import transaction
from django.db.models import Exists, OuterRef, Q, Sum
from django.utils import timezone

from ondatra_web.alerts import conditions, rules, states
from ondatra_web.alerts import usual as memory
from ondatra_web.alerts.conditions import CONDITIONS, Seen
from ondatra_web.models import Alert, AlertKind, AlertRule, Chunk, Run, Sync, SyncUsual
from ondatra_web.models.runs import UNJUDGED
from runtime.errors import OndatraError
from runtime.project import schedules

log = logging.getLogger("ondatra.alerts")
#: Runs that are judged in one transaction.
MOST = 500
_SAYS_NOTHING = Q(dry_run=True) | Q(status=Run.Status.SKIPPED)


def ended() -> None:
    """After the end of a run, whoever ended it. What goes wrong here is no fault of the run's: the scheduler looks
    again."""
    try:
        judge()
    except Exception:
        log.exception("the alerts of runs that ended are looked at again by the scheduler")


def judge() -> int:
    """Looks at every run that has ended and that nobody looked at; how many there were."""
    looked = 0
    while True:
        with transaction.atomic():
            runs = list(
                Run.objects.select_for_update(of=("self",))
                .filter(UNJUDGED)
                .select_related("sync__workspace")
                .defer("metadata", "step_times")
                .order_by("pk")[:MOST]
            )
            _judge([r for r in runs if not r.dry_run and r.status not in (*Run.ACTIVE, Run.Status.SKIPPED)])
            Run.objects.filter(pk__in=[r.pk for r in runs]).update(judged=True)
        looked += len(runs)
        if len(runs) < MOST:
            return looked


def _judge(runs: Sequence[Run]) -> None:
    if not runs:
        return
    syncs = {run.sync_id: run.sync for run in runs}
    usual, holding = memory.of_syncs(syncs.values()), rules.holding(s.workspace_id for s in syncs.values())
    due, refused = _waiting(syncs)
    alerts: dict[tuple[int, str], Alert] = {(a.sync_id, a.kind): a for a in states.open_of(sync__in=syncs)}
    why, touched = states.reasons(runs), dict[int, Alert]()
    for run in runs:
        seen = Seen(run, usual[run.sync_id], due.get(run.sync_id, 0), refused.get(run.sync_id, 0))
        _count_failures(seen)
        for kind in CONDITIONS:
            look_at = _look_at(seen, kind, holding, why)
            if look_at is None:
                continue
            after = states.after(look_at, alerts.pop((run.sync_id, kind), None))
            if after is not None:
                alerts[run.sync_id, kind] = touched[after.pk] = after
        memory.remember(seen.usual, run, seen.due)
    memory.save(usual.values())
    states.refresh(alert for alert in touched.values() if alert.resolved_at is None)


def _look_at(seen: Seen, kind: AlertKind, holding: rules.Holding, why: states.Reasons) -> states.Look | None:
    """What the run says of a kind; None where it says nothing, or nobody wants to hear of it."""
    run = seen.run
    if run.status == Run.Status.CANCELLED and kind != AlertKind.HELD:
        return None
    rule = holding.of(run.sync, kind)
    told = CONDITIONS[kind](seen, rule) if rule is not None else None
    if rule is None or told is None:
        return None
    return states.Look(run.sync, rule, rules.level(rule, told.value), told, run, why.get(run.pk, ()))


def _count_failures(seen: Seen) -> None:
    usual, run = seen.usual, seen.run
    if run.status == Run.Status.FAILED:
        usual.failing_since = usual.failing_since if usual.failed_in_row else seen.began
        usual.failed_in_row += 1
    elif run.status in memory.DONE:
        usual.failed_in_row, usual.failing_since = 0, None


def _waiting(sync_ids: Iterable[int]) -> tuple[dict[int, int], dict[int, int]]:
    """By sync: rows due, and records that were refused and are not at the destination."""
    ids = list(sync_ids)
    due = Chunk.objects.filter(sync__in=ids, due_rows__gt=0).values_list("sync_id").annotate(Sum("due_rows"))
    refused = Chunk.objects.filter(sync__in=ids, rejected_rows__gt=0, rejected_records__gt=0).values_list("sync_id")
    return dict(due.order_by()), dict(refused.annotate(Sum("rejected_records")).order_by())


# by the clock


def look() -> None:
    """What time alone brings about: lateness, runs that work too long, held runs that nobody sees to."""
    now = timezone.now()
    for part in (_close_archived, _look_at_schedules, _look_at_working, _look_at_held):
        with transaction.atomic():
            part(now)


def _close_archived(now: datetime) -> None:
    for alert in states.open_of(sync__archived_at__isnull=False):
        states.resolve(alert, "the file of its sync is gone")


def _look_at_schedules(now: datetime) -> None:
    syncs = list(Sync.objects.filter(archived_at=None).exclude(schedule="").select_related("workspace"))
    usual, holding = memory.of_syncs(syncs), rules.holding(s.workspace_id for s in syncs)
    alerts = {a.sync_id: a for a in states.open_of(kind=AlertKind.LATE)}
    changed = []
    for sync in syncs:
        known = usual[sync.pk]
        if _schedule_changed(sync, known, now):
            changed.append(known)
        rule, alert = holding.of(sync, AlertKind.LATE), alerts.pop(sync.pk, None)
        if rule is not None:
            _look_at_schedule(sync, known, rule, alert, now)
    memory.save(changed)
    for alert in alerts.values():
        states.resolve(alert, "its sync has no schedule any more")


def _schedule_changed(sync: Sync, known: SyncUsual, now: datetime) -> bool:
    """Lateness counts from when a schedule was first seen, or began again after a pause."""
    schedule = "" if sync.paused_at else sync.schedule
    if known.schedule == schedule:
        return False
    known.schedule, known.schedule_from = schedule, now
    return True


def _look_at_schedule(sync: Sync, known: SyncUsual, rule: AlertRule, alert: Alert | None, now: datetime) -> None:
    if not known.schedule:
        if alert is not None:
            states.resolve(alert, "its sync is paused")
        return
    begins = [at for at in (known.schedule_from, known.last_began) if at is not None]
    try:
        due_at = schedules.next_time(known.schedule, max(begins))
    except OndatraError:
        return  # the check of the project names it
    told = conditions.late(due_at, now) if due_at < now else conditions.OVER
    level = rules.level(rule, told.value)
    if level != (alert.level if alert else ""):
        states.after(states.Look(sync, rule, level, told), alert)


def _look_at_working(now: datetime) -> None:
    """Only upwards: that a run was quick after all is seen at its end."""
    runs = list(Run.objects.filter(status__in=Run.AT_WORK, dry_run=False).select_related("sync__workspace"))
    usual, holding = memory.of_syncs(r.sync for r in runs), rules.holding(r.sync.workspace_id for r in runs)
    alerts = {a.sync_id: a for a in states.open_of(kind=AlertKind.DURATION, sync__in=[r.sync_id for r in runs])}
    for run in runs:
        rule, alert = holding.of(run.sync, AlertKind.DURATION), alerts.get(run.sync_id)
        began = run.started_at or run.created_at
        if rule is None or run.options.get("retry_of"):
            continue
        took = (now - began).total_seconds()
        told = conditions.lasted(usual[run.sync_id], rule, took, began, so_far=True)
        level = rules.level(rule, told.value) if told is not None else ""
        if told is not None and level and _rank(level) > _rank(alert.level if alert else ""):
            states.after(states.Look(run.sync, rule, level, told, run), alert)


def _look_at_held(now: datetime) -> None:
    later = Run.objects.filter(sync=OuterRef("sync"), pk__gt=OuterRef("pk"), ended_at__isnull=False)
    held = Run.objects.filter(status=Run.Status.HELD, judged=True, dry_run=False).exclude(
        Exists(later.exclude(_SAYS_NOTHING))
    )
    runs = list(held.select_related("sync__workspace").order_by("pk"))
    holding = rules.holding(r.sync.workspace_id for r in runs)
    alerts = {a.sync_id: a for a in states.open_of(kind=AlertKind.HELD, sync__in=[r.sync_id for r in runs])}
    for run in runs:
        rule, alert = holding.of(run.sync, AlertKind.HELD), alerts.get(run.sync_id)
        if rule is None:
            continue
        told = conditions.waits(run, now)
        level = rules.level(rule, told.value)
        if level != (alert.level if alert else ""):
            states.after(states.Look(run.sync, rule, level, told, run), alert)


def _rank(level: str) -> int:
    return ("", "warning", "critical").index(level)
