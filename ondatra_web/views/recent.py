"""Syncs as lists show them: the last run, and a bar for each run before it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from django.db.models import F, Sum, Window
from django.db.models.functions import RowNumber

from ondatra_web.models import Chunk, Run, Sync
from ondatra_web.runs import waiting

RECENT = 20
#: Pixels from one bar to the next, and of the tallest.
STEP, TALLEST = 7, 20


@dataclass(frozen=True)
class Bar:
    """One run in a row of bars, in pixels from the top left."""

    x: int
    height: int
    tone: str  # ok, p (partly), f (failed), n (nothing to do)
    title: str

    @property
    def y(self) -> int:
        return TALLEST - self.height


@dataclass(frozen=True)
class Listed:
    """One sync in a list, with what its last runs did."""

    sync: Sync
    last: Run | None
    bars: tuple[Bar, ...]
    due: int
    refused: int  # records that are not at the destination, over all runs

    @property
    def bars_width(self) -> int:
        return STEP * len(self.bars)

    @property
    def bars_label(self) -> str:
        bad = sum(b.tone == "f" for b in self.bars)
        part = sum(b.tone == "p" for b in self.bars)
        return (
            f"Last {len(self.bars)} runs: {len(self.bars) - bad - part} went through, {part} with rejects, {bad} failed"
        )


def listed(syncs: Sequence[Sync]) -> list[Listed]:
    """Two queries, however many syncs and runs there are."""
    ids = [s.pk for s in syncs]
    number = Window(RowNumber(), partition_by=[F("sync_id")], order_by=F("id").desc())
    recent = (
        Run.objects.filter(sync_id__in=ids, dry_run=False)
        .exclude(status=Run.Status.SKIPPED)
        .defer("metadata", "options")
        .annotate(number=number)
        .filter(number__lte=RECENT)
        .order_by("id")
    )
    runs: defaultdict[int, list[Run]] = defaultdict(list)
    for run in recent:
        runs[run.sync_id].append(run)
    due = dict(Chunk.objects.filter(sync_id__in=ids, due_rows__gt=0).values_list("sync_id").annotate(Sum("due_rows")))
    refused = waiting.refused(syncs)
    return [
        Listed(s, runs[s.pk][-1] if runs[s.pk] else None, _bars(runs[s.pk]), due.get(s.pk, 0), refused.get(s.pk, 0))
        for s in syncs
    ]


def _bars(runs: Iterable[Run]) -> tuple[Bar, ...]:
    settled = [r for r in runs if r.status not in Run.ACTIVE]
    most = max((r.planned for r in settled), default=0) or 1
    tones = {
        Run.Status.FAILED: "f",
        Run.Status.HELD: "p",
        Run.Status.COMPLETED_WITH_REJECTS: "p",
        Run.Status.CANCELLED: "n",
    }
    return tuple(
        Bar(
            STEP * position,
            4 + round(14 * (r.planned / most) ** 0.5),
            tones.get(Run.Status(r.status), "ok" if r.planned else "n"),
            f"run {r.pk}: {r.get_status_display()}, {r.planned:,} to send",
        )
        for position, r in enumerate(settled)
    )
