"""Syncs as lists show them: the last run, and a bar for each run before it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import reduce
from itertools import starmap
from operator import or_
from typing import NamedTuple

from django.db.models import OuterRef, Q, Subquery, Sum
from django.db.models.functions import Coalesce
from django.utils.safestring import SafeString

from ondatra_web.models import Chunk, Run, Sync
from ondatra_web.runs import waiting

RECENT = 20
#: Pixels from one bar to the next, and of the tallest.
STEP, TALLEST = 7, 20
TONES: dict[str, str] = {
    Run.Status.FAILED: "f",
    Run.Status.HELD: "p",
    Run.Status.COMPLETED_WITH_REJECTS: "p",
    Run.Status.CANCELLED: "n",
}
LABELS = {status.value: str(status.label) for status in Run.Status}
BAR = '<g class="{}"><title>{}</title><rect x="{}" y="{}" width="5" height="{}" rx="1" /></g>'


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


class Told(NamedTuple):
    """Of a run what its bar shows."""

    pk: int
    sync_id: int
    status: str
    planned: int


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
    def drawn(self) -> SafeString:
        """The bars of a list of syncs are a thousand, which a template takes its time for; they hold numbers and words
        of ours, so that nothing needs to be escaped."""
        return SafeString("".join(BAR.format(b.tone, b.title, b.x, b.y, b.height) for b in self.bars))

    @property
    def bars_label(self) -> str:
        bad = sum(b.tone == "f" for b in self.bars)
        part = sum(b.tone == "p" for b in self.bars)
        return (
            f"Last {len(self.bars)} runs: {len(self.bars) - bad - part} went through, {part} with rejects, {bad} failed"
        )


def listed(syncs: Sequence[Sync]) -> list[Listed]:
    """As many queries however many syncs and runs there are; of a sync with many runs the last are read."""
    ids = [s.pk for s in syncs]
    runs: defaultdict[int, list[Told]] = defaultdict(list)
    for told in _recent(ids):
        runs[told.sync_id].append(told)
    last = Run.objects.defer("metadata", "options", "rules").in_bulk([runs[pk][-1].pk for pk in ids if runs[pk]])
    due = dict(Chunk.objects.filter(sync_id__in=ids, due_rows__gt=0).values_list("sync_id").annotate(Sum("due_rows")))
    refused = waiting.refused(syncs)
    return [
        Listed(
            s,
            last.get(runs[s.pk][-1].pk) if runs[s.pk] else None,
            _bars(runs[s.pk]),
            due.get(s.pk, 0),
            refused.get(s.pk, 0),
        )
        for s in syncs
    ]


def _recent(ids: Sequence[int]) -> Iterable[Told]:
    """The last runs of each of these syncs, the oldest first."""
    shown = Run.objects.filter(dry_run=False).exclude(status=Run.Status.SKIPPED)
    first = shown.filter(sync=OuterRef("pk")).order_by("-id").values("id")[RECENT - 1 : RECENT]
    oldest = Sync.objects.filter(pk__in=ids).annotate(oldest=Coalesce(Subquery(first), 0)).values_list("pk", "oldest")
    each = [Q(sync=pk, pk__gte=run) for pk, run in oldest]
    if not each:
        return []
    rows = shown.filter(reduce(or_, each)).values_list("pk", "sync_id", "status", "planned")
    return sorted(starmap(Told, rows))


def _bars(runs: Iterable[Told]) -> tuple[Bar, ...]:
    settled = [r for r in runs if r.status not in Run.ACTIVE]
    most = max((r.planned for r in settled), default=0) or 1
    return tuple(
        Bar(
            STEP * position,
            4 + round(14 * (r.planned / most) ** 0.5),
            TONES.get(r.status, "ok" if r.planned else "n"),
            f"run {r.pk}: {LABELS[r.status]}, {r.planned:,} to send",
        )
        for position, r in enumerate(settled)
    )
