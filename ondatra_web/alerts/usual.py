"""What a sync usually does: a short memory beside it, kept by whoever judges its runs."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from statistics import median

from ondatra_web.models import Run, Sync, SyncUsual

#: Runs that are remembered, and how many must be before anything is usual.
MOST, LEAST = 20, 5
#: Fewer rows or seconds off are never told, nothing at all apart.
LEAST_ROWS, LEAST_SECONDS = 10, 600.0
#: So many times the usual spread is no news.
SPREADS = 3
MEASURED = {"source": 0, "planned": 1, "deleted": 2, "seconds": 3}
DONE = (Run.Status.COMPLETED, Run.Status.COMPLETED_WITH_REJECTS)


def of_syncs(syncs: Iterable[Sync]) -> dict[int, SyncUsual]:
    """By sync, locked until the transaction ends; made where there is none."""
    ids = sorted({sync.pk for sync in syncs})
    known = SyncUsual.objects.select_for_update().filter(sync__in=ids).order_by("pk")
    found = {u.sync_id: u for u in known}
    if len(found) < len(ids):
        SyncUsual.objects.bulk_create((SyncUsual(sync_id=i) for i in ids if i not in found), ignore_conflicts=True)
        found = {u.sync_id: u for u in known.all()}
    return found


def save(rows: Iterable[SyncUsual]) -> None:
    fields = ["counts", "due", "failed_in_row", "failing_since", "last_began", "schedule", "schedule_from"]
    SyncUsual.objects.bulk_update(rows, fields, batch_size=200)


def is_ordinary(run: Run) -> bool:
    """Whether it did all that its sync does, so that its counts are like those of others."""
    return run.status in DONE and run.staged and not (run.options.get("retry_of") or run.options.get("limit"))


def seconds(run: Run) -> float:
    return (run.ended_at - run.started_at).total_seconds() if run.ended_at and run.started_at else 0.0


def remember(usual: SyncUsual, run: Run, due: int) -> None:
    """Adds a run that has been judged."""
    if is_ordinary(run):
        told = [run.source_count, run.planned, run.deleted, round(seconds(run), 1)]
        usual.counts = [*usual.counts, told][-MOST:]
    if run.status != Run.Status.CANCELLED:
        usual.due = [*usual.due, due][-MOST:]
        began = run.created_at
        usual.last_began = max(usual.last_began, began) if usual.last_began else began


def middle(usual: SyncUsual, measure: str) -> float | None:
    """The median of the runs before; None where they are too few."""
    values = _values(usual, measure)
    return median(values) if len(values) >= LEAST else None


def is_off(usual: SyncUsual, measure: str, value: float) -> bool:
    """Whether a count differs by more than it does from run to run."""
    values = _values(usual, measure)
    center = median(values)
    if not value and center:
        return True
    spread = median(abs(v - center) for v in values)
    return abs(value - center) > max(SPREADS * spread, LEAST_ROWS - 1)


def _values(usual: SyncUsual, measure: str) -> Sequence[float]:
    place = MEASURED[measure]
    return [counts[place] for counts in usual.counts]


def growths(usual: SyncUsual, due: int) -> int:
    """How many runs in a row, this one included, left more rows due than the one before."""
    told, found = [*usual.due, due], 0
    for before, after in zip(reversed(told[:-1]), reversed(told[1:]), strict=True):
        if after <= before:
            break
        found += 1
    return found
