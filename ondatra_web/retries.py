"""Sending chosen records again: rejected or due rows of a run, whole units, always as they stand now in their chunks."""
from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from django.db import transaction
from django.utils import timezone

from ondatra_web import records as web_records
from ondatra_web import workers
from ondatra_web.models import Chunk, Delivery, Run, Sync
from runtime import exports, staging, states
from runtime.calls import unit_starts
from runtime.errors import ConfigError
from runtime.records import Filter

#: What a person may send again by hand; rows of an open job wait for its end.
CHOSEN = (states.UNTRIED, states.REFUSED, states.REJECTED, states.UNKNOWN)


@dataclass(frozen=True)
class Plan:
    """What a retry would send: a mask of rows for each chunk. `left_out` are records delivered since, or gone."""

    matched: int
    records: int
    masks: Mapping[int, np.ndarray[Any, Any]]

    @property
    def left_out(self) -> int:
        return max(self.matched - self.records, 0)


def plan(run: Run, chosen: Filter) -> Plan:
    """Finds the undelivered rows of the records that the filter selects. Raises ConfigError, StoreError."""
    chosen = web_records.with_masked(chosen, run)
    parts = [batch.column(0).to_numpy(zero_copy_only=False) for batch in exports.selected(web_records.files_of(run), chosen, "row_id")]
    wanted = np.unique(np.concatenate(parts)) if parts else np.array([], dtype=np.int64)
    matched = sum(len(p) for p in parts)
    masks, records = {}, 0
    for chunk in Chunk.objects.filter(sync=run.sync).exclude(due_rows=0, rejected_rows=0).order_by("pk"):
        mask, found = _undelivered(chunk, run.sync.kind, wanted)
        if found:
            masks[chunk.pk] = mask
            records += found
    return Plan(matched, records, masks)


def _undelivered(chunk: Chunk, kind: str, wanted: np.ndarray[Any, Any]) -> tuple[np.ndarray[Any, Any], int]:
    """The rows of the units of which a wanted row is undelivered, and how many records they are."""
    table = staging.read_chunk(chunk.url, None)
    ids = table.column("__ondatra_rowid").to_numpy(zero_copy_only=False)
    waits = np.isin(states.unpack(bytes(chunk.states)), CHOSEN)
    hit = waits & np.isin(ids, wanted)
    if not hit.any():
        return hit, 0
    starts = unit_starts(table, kind)
    lengths = np.diff(np.append(starts, len(ids)))
    whole = np.repeat(np.logical_or.reduceat(hit, starts), lengths) & waits
    return whole, int(np.asarray(table.column("__ondatra_record").to_pylist(), dtype=bool)[whole].sum())


def start(run: Run, planned: Plan, *, batch_size: int) -> Run:
    """A working run of these rows. Raises ConfigError while another run of the sync works."""
    with transaction.atomic():
        sync = Sync.objects.select_for_update().get(pk=run.sync_id)
        if Run.objects.filter(sync=sync, status__in=[Run.Status.WORKING, Run.Status.CANCELING]).exists():
            raise ConfigError(f"a run of {sync.name} is working: wait for its end, or cancel it")
        new = Run.objects.create(
            sync=sync, status=Run.Status.WORKING, trigger="retry", options={"retry_of": run.pk}, owner=workers.me(), lease=1, started_at=timezone.now(),
            source_count=sync.source_rows, invalid=sync.invalid_rows, unchanged=sync.source_rows - sync.invalid_rows, planned=planned.records,
            carried=planned.records, staged=True, table_version=sync.mark, step="push")
        first = 1
        for ordinal, (chunk_id, mask) in enumerate(planned.masks.items()):
            chunk = Chunk.objects.get(pk=chunk_id)
            flags = np.asarray(staging.read_column(chunk.url, "__ondatra_record"), dtype=bool)
            Delivery.objects.create(run=new, chunk=chunk, ordinal=ordinal, phase=chunk.phase, carried=True, positions=states.pack_mask(mask),
                                    rows=int(mask.sum()), records=int(flags[mask].sum()), first_call=first)
            first += -(-int(mask.sum()) // batch_size)
    return new
