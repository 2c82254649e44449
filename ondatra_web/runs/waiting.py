"""What of a sync waits: rows due again, dead letters, rows of open jobs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Any

import numpy as np
from django.db.models import QuerySet, Sum
from django.utils import timezone

from ondatra_web.models import UNDELIVERED, Chunk, Sync
from runtime.columns import RECORD
from runtime.staging import chunks, states


def chunks_of(sync: Sync) -> QuerySet[Chunk]:
    """The chunks of which something waits, oldest first."""
    return of_syncs([sync]).order_by("pk")


def of_syncs(syncs: Iterable[Sync]) -> QuerySet[Chunk]:
    """The chunks of these syncs of which something waits."""
    return Chunk.objects.filter(UNDELIVERED, sync__in=syncs)


def counted(sync: Sync) -> dict[str, int]:
    """Records that wait: `due`, `rejected` and `blocked`, which are in open jobs."""
    tally = dict.fromkeys(("due", "rejected", "blocked"), 0)
    for chunk in chunks_of(sync):
        whole = states.unpack(bytes(chunk.states))
        record = np.asarray(chunks.read_column(chunk.url, RECORD), dtype=bool)
        for name, mask in (
            ("due", states.due(whole)),
            ("rejected", whole == states.REJECTED),
            ("blocked", whole == states.BLOCKED),
        ):
            tally[name] += int((record & mask).sum())
    return tally


def summed(sync: Sync) -> dict[str, int]:
    """The same of rows, old images included, as the database knows them: no staged file is opened."""
    found = of_syncs([sync]).aggregate(due=Sum("due_rows"), rejected=Sum("rejected_rows"), blocked=Sum("blocked_rows"))
    return {name: rows or 0 for name, rows in found.items()}


def with_refused(syncs: Iterable[Sync]) -> QuerySet[Chunk]:
    """The chunks of these syncs with records that were refused in any run and are not at the destination since."""
    return of_syncs(syncs).filter(rejected_records__gt=0)


def refused(syncs: Iterable[Sync]) -> dict[int, int]:
    """By sync the records that were refused in any run and are not at the destination since; without those of which
    there are none."""
    found = with_refused(syncs).order_by("sync_id").values_list("sync_id")
    return dict(found.annotate(Sum("rejected_records")))


def forget(sync: Sync) -> None:
    """Should be called in a transaction: what waits is taken as delivered, dead letters, jobs and finalize included."""
    for chunk in chunks_of(sync):
        whole = states.unpack(bytes(chunk.states))
        save_states(chunk.pk, np.where(whole == states.DONE, states.DONE, states.SUPERSEDED).astype(np.uint8))
    sync.job_set.filter(ended_at=None).update(ended_at=timezone.now())
    sync.finalize_due = False
    sync.save(update_fields=["finalize_due"])


def save_states(chunk_id: int, whole: np.ndarray[Any, Any], runs_failed: np.ndarray[Any, Any] | None = None) -> None:
    """Writes a chunk's states and what is counted from them."""
    tally = Counter({int(state): int(n) for state, n in zip(*np.unique(whole, return_counts=True), strict=True)})
    fields: dict[str, Any] = {
        "states": states.pack(whole),
        "due_rows": sum(tally[s] for s in (states.UNTRIED, states.REFUSED, states.UNKNOWN)),
        "blocked_rows": tally[states.BLOCKED],
        "rejected_rows": tally[states.REJECTED],
        "rejected_records": _records(chunk_id, whole == states.REJECTED) if tally[states.REJECTED] else 0,
    }
    if runs_failed is not None:
        fields["runs_failed"] = states.pack(runs_failed)
    Chunk.objects.filter(pk=chunk_id).update(**fields)


def _records(chunk_id: int, mask: np.ndarray[Any, Any]) -> int:
    """How many of these rows of a chunk are records; its file is opened only where some of its rows are none."""
    chunk = Chunk.objects.only("url", "rows", "records").get(pk=chunk_id)
    if chunk.records == chunk.rows:
        return int(mask.sum())
    return int((np.asarray(chunks.read_column(chunk.url, RECORD), dtype=bool) & mask).sum())
