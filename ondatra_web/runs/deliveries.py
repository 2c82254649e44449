"""What a run delivers, in order: of new chunks all, of waiting ones what is due."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from ondatra_web.models import Chunk, Delivery, Run, Sync
from ondatra_web.runs.claims import selected_of
from ondatra_web.runs.waiting import save_states
from runtime.columns import RECORD
from runtime.staging import chunks, states
from runtime.staging.chunks import WaitingChunk
from runtime.staging.request import Staged, StagedChunk
from runtime.staging.units import unit_starts


def planned(run: Run, sync: Sync, staged: Staged | None, columns: Sequence[Any]) -> list[Delivery]:
    """Deletes first, rows never tried before rows that failed, then by age. Not saved yet; the chunks are."""
    _supersede(staged)
    found = [(tried, delivery) for tried, delivery in _waiting(run, sync)]
    for made in staged.chunks if staged else ():
        chunk = new_chunk(run, sync, made, columns)
        if not made.waits:  # newer changes of rows whose job is open wait without a delivery until the job has ended
            found.append((False, of_new(run, chunk)))
    found.sort(key=lambda pair: (pair[1].phase, pair[0], pair[1].chunk_id))
    return [delivery for _, delivery in found]


def numbered(deliveries: Sequence[Delivery], batch_size: int) -> Sequence[Delivery]:
    """The same in this order, each with the number of its first call."""
    first = 1
    for ordinal, delivery in enumerate(deliveries):
        delivery.ordinal, delivery.first_call = ordinal, first
        first += -(-delivery.rows // batch_size)
    return deliveries


def new_chunk(run: Run, sync: Sync, made: StagedChunk, columns: Sequence[Any]) -> Chunk:
    state = states.BLOCKED if made.waits else states.UNTRIED
    return Chunk.objects.create(
        sync=sync,
        staged_by=run,
        url=made.url,
        rows=made.rows,
        records=made.records,
        phase=made.phase,
        change_counts=made.change_counts,
        columns=columns,
        table_version=sync.mark,
        states=states.pack(np.full(made.rows, state, dtype=np.uint8)),
        due_rows=0 if made.waits else made.rows,
        blocked_rows=made.rows if made.waits else 0,
    )


def of_new(run: Run, chunk: Chunk) -> Delivery:
    """All of a chunk that the run staged."""
    return Delivery(run=run, chunk=chunk, phase=chunk.phase, rows=chunk.rows, records=chunk.records)


def of_waiting(run: Run, chunk: Chunk, mask: states.Mask) -> Delivery:
    """These rows of a chunk that an earlier run staged."""
    return Delivery(
        run=run,
        chunk=chunk,
        phase=chunk.phase,
        carried=True,
        rows=int(mask.sum()),
        records=_records(chunk, mask),
        positions=None if mask.all() else states.pack_mask(mask),
    )


def _supersede(staged: Staged | None) -> None:
    for chunk_id, positions in (staged.superseded if staged else {}).items():
        whole = states.unpack(bytes(Chunk.objects.get(pk=chunk_id).states))
        whole[positions] = states.SUPERSEDED
        save_states(chunk_id, whole)


def _waiting(run: Run, sync: Sync) -> Iterable[tuple[bool, Delivery]]:
    """With each whether all of it was tried before; append keeps its order, whatever failed."""
    for chunk in Chunk.objects.filter(sync=sync).exclude(due_rows=0, blocked_rows=0).order_by("pk"):
        whole = states.unpack(bytes(chunk.states))
        if WaitingChunk(chunk.pk, chunk.url, whole).waits:
            continue
        due = states.due(whole) | (whole == states.BLOCKED)  # rows of an open job: it is asked first
        tried = sync.kind != "append" and bool((whole[due] != states.UNTRIED).all())
        yield tried, of_waiting(run, chunk, due)


def _records(chunk: Chunk, mask: states.Mask) -> int:
    """How many records stand among these rows of a chunk."""
    if mask.all():
        return chunk.records
    flags = chunks.read_column(chunk.url, RECORD)
    return int(np.asarray(flags, dtype=bool)[mask].sum())


# a limit


def limited(deliveries: Iterable[Delivery], most: int | None) -> int:
    """Cuts the deliveries to so many records, at the bounds of units; how many records are left out."""
    left_out = 0
    for delivery in deliveries if most is not None else ():
        assert most is not None
        if delivery.records > most:
            left_out += delivery.records
            _cut(delivery, most)
            left_out -= delivery.records
        most -= delivery.records
    return left_out


def _cut(delivery: Delivery, most: int) -> None:
    """To its first units that hold at most so many records."""
    chunk, selected = delivery.chunk, selected_of(delivery)
    table = chunks.read_chunk(chunk.url, selected)
    starts = unit_starts(table, chunk.sync.kind)
    records = np.asarray(table.column(RECORD).to_pylist(), dtype=np.int64)

    upto = np.cumsum(np.add.reduceat(records, starts)) if len(starts) else np.array([], dtype=np.int64)
    units = int(np.searchsorted(upto, most, side="right"))
    rows = int(starts[units]) if units < len(starts) else table.num_rows

    kept = np.zeros(chunk.rows, dtype=bool)
    kept[np.flatnonzero(selected)[:rows]] = True
    delivery.positions, delivery.rows = states.pack_mask(kept), rows
    delivery.records = int(upto[units - 1]) if units else 0
