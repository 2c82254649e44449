"""What a person chose to send again: which rows still lie undelivered, which can be sent in their newest state, which
cannot."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from django.db.models import Q

from ondatra_web.models import Chunk, Delivery, Run
from ondatra_web.runs import waiting
from ondatra_web.tracking import records as web_records
from runtime.columns import KEY, RECORD, ROWID
from runtime.records import exports
from runtime.records.filter import Filter
from runtime.staging import chunks as chunk_files
from runtime.staging import states
from runtime.staging.units import KEYED, unit_starts

#: What a person may send again by hand; rows of an open job wait for its end.
CHOSEN = (states.UNTRIED, states.REFUSED, states.REJECTED, states.UNKNOWN)
#: So many identifiers of superseded records are listed.
LISTED = 20


@dataclass(frozen=True)
class Plan:
    """What a retry would send.

    `masks` are the undelivered rows of each chunk, `records` how many records they are. `again` are the keys (row ids
    where the kind has no units) of delivered rows that were chosen by identifier: they go in the state that the table
    holds. `superseded` were delivered since or are gone, `blocked` are in open jobs, `invalid` can never be sent.
    """

    matched: int
    records: int
    masks: Mapping[int, np.ndarray[Any, Any]]
    again: tuple[Any, ...] = ()
    superseded: int = 0
    listed: tuple[str, ...] = ()
    blocked: int = 0
    invalid: int = 0

    @property
    def empty(self) -> bool:
        return not (self.masks or self.again)


def told(plan: Plan, run: Run) -> list[str]:
    """The preview, line by line."""
    if not plan.matched:
        return [f"No record of run {run.pk} matches"]
    lines = [
        f"{_many(plan.matched, 'record', 'records')} of run {run.pk} {'matches' if plan.matched == 1 else 'match'}; "
        f"{_many(plan.records, 'is', 'are')} undelivered and would be sent again"
    ]
    if plan.again:
        lines.append(
            f"{_many(len(plan.again), 'was', 'were')} delivered and would be sent again as the row is now, unless it "
            f"is gone"
        )
    if plan.superseded:
        more = ", …" if plan.superseded > len(plan.listed) else ""
        lines.append(
            f"{_many(plan.superseded, 'is', 'are')} superseded (delivered since, or gone): "
            f"{', '.join(plan.listed)}{more}"
        )
    if plan.blocked:
        lines.append(f"{_many(plan.blocked, 'waits', 'wait')} for the end of an open job")
    if plan.invalid:
        lines.append(
            f"{_many(plan.invalid, 'is', 'are')} invalid: a key that is NULL or occurs more than once cannot be sent"
        )
    return lines


def _many(n: int, one: str, more: str) -> str:
    return f"{n:,} {one if n == 1 else more}"


def plan(run: Run, chosen: Filter) -> Plan:
    """What of the records that the filter selects can be sent again. Raises ConfigError, StoreError."""
    chosen = web_records.with_masked(chosen, run)
    found = _matching(run, chosen)
    valid = found.filter(pc.is_valid(found.column("row_id")))
    things = _Things(run, valid.column("row_id"))
    masks: dict[int, np.ndarray[Any, Any]] = {}
    records = 0
    sent, blocked = [], []
    for chunk in waiting.chunks_of(run.sync):
        table = chunk_files.read_columns(chunk.url, [ROWID, KEY, RECORD])
        state = states.unpack(bytes(chunk.states))
        hit = things.within(table)
        blocked.append(things.of(table, hit & (state == states.BLOCKED)))
        mask = _whole_units(table, run.sync.kind, hit, np.isin(state, CHOSEN))
        if mask.any():
            masks[chunk.pk] = mask
            records += int(np.asarray(table.column(RECORD).to_numpy(), dtype=bool)[mask].sum())
            sent.append(things.of(table, mask))
    of_record = things.of_records(valid.column("row_id"))
    goes, waits = _among(of_record, sent), _among(of_record, blocked)
    rest = ~(goes | waits)
    again = tuple(pc.unique(of_record.filter(pa.array(rest))).drop_null().to_pylist()) if chosen.exact else ()
    left = valid.filter(pa.array(rest & ~_among(of_record, [pa.array(again, of_record.type)])))
    names = dict.fromkeys(str(i) for i in left.column("identifier").slice(0, LISTED * 5).to_pylist())
    return Plan(
        found.num_rows,
        records,
        masks,
        again,
        left.num_rows,
        tuple(names)[:LISTED],
        int((waits & ~goes).sum()),
        found.num_rows - valid.num_rows,
    )


def _matching(run: Run, chosen: Filter) -> pa.Table:
    batches = list(
        exports.selected(web_records.asked_files(run, chosen), chosen, "identifier, CAST(row_id AS BIGINT) AS row_id")
    )
    schema = pa.schema([("identifier", pa.string()), ("row_id", pa.int64())])
    return pa.Table.from_batches([b.cast(schema) for b in batches], schema)


def _whole_units(
    table: pa.Table, kind: str, hit: np.ndarray[Any, Any], waits: np.ndarray[Any, Any]
) -> np.ndarray[Any, Any]:
    """The undelivered rows of every unit of which one was chosen."""
    if not (hit & waits).any():
        return np.zeros(len(waits), dtype=bool)
    starts = unit_starts(table, kind)
    lengths = np.diff(np.append(starts, len(waits)))
    return np.asarray(np.repeat(np.logical_or.reduceat(hit & waits, starts), lengths) & waits)


def _among(of_record: pa.ChunkedArray, some: Sequence[pa.Array]) -> np.ndarray[Any, Any]:
    if not some or not len(of_record):
        return np.zeros(len(of_record), dtype=bool)
    flat = pa.concat_arrays(
        [a for part in some for a in (part.chunks if isinstance(part, pa.ChunkedArray) else [part])]
        or [pa.array([], of_record.type)]
    )
    return np.asarray(pc.is_in(of_record, value_set=flat.drop_null()).to_numpy(), dtype=bool)


class _Things:
    """Names what the chosen records are about, in any run: their keys, or their row ids for kinds whose rows stand
    alone."""

    def __init__(self, run: Run, row_ids: pa.ChunkedArray) -> None:
        self.keyed = run.sync.kind in KEYED
        self.column = KEY if self.keyed else ROWID
        self.keys: dict[int, str] = {}
        self.wanted = row_ids.combine_chunks() if not self.keyed else pa.array([], pa.string())
        if self.keyed:  # the chunks have the keys as they are; records may show them masked
            sent = Q(pk__in=Delivery.objects.filter(run=run).values("chunk"))
            chunks = Chunk.objects.filter(sent | Q(staged_by=run), sync=run.sync_id).order_by("pk")
            self.keys = dict(_pairs(chunks, row_ids))
            self.wanted = pa.array(sorted(set(self.keys.values())), pa.string())

    def within(self, table: pa.Table) -> np.ndarray[Any, Any]:
        """Which rows of a chunk are about them."""
        if not len(self.wanted):
            return np.zeros(table.num_rows, dtype=bool)
        return np.asarray(
            pc.is_in(table.column(self.column).cast(self.wanted.type), value_set=self.wanted).to_numpy(), dtype=bool
        )

    def of(self, table: pa.Table, mask: np.ndarray[Any, Any]) -> pa.ChunkedArray:
        return table.column(self.column).cast(self.wanted.type).filter(pa.array(mask))

    def of_records(self, row_ids: pa.ChunkedArray) -> pa.ChunkedArray:
        """What each record is about; null where its chunk is gone."""
        if not self.keyed:
            return row_ids
        return pa.chunked_array([pa.array([self.keys.get(i) for i in row_ids.to_pylist()], pa.string())])


def _pairs(chunks: Iterable[Chunk], row_ids: pa.ChunkedArray) -> Iterable[tuple[int, str]]:
    ids = row_ids.combine_chunks()
    for chunk in chunks:
        table = chunk_files.read_columns(chunk.url, [ROWID, KEY])
        some = (
            table.filter(pc.is_in(table.column(ROWID).cast(pa.int64()), value_set=ids))
            if len(ids)
            else table.slice(0, 0)
        )
        yield from zip(some.column(ROWID).to_pylist(), some.column(KEY).to_pylist(), strict=True)
