"""Records as Arrow: what push() answered, in the one schema of all record files."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa

from runtime.columns import CHANGE_TYPE, ROWID
from runtime.model import Kind
from runtime.push.statuses import parted
from runtime.staging.units import KEYED
from runtime.tracking import payloads
from runtime.tracking.cells import payloads_of, same, strings
from runtime.tracking.identifiers import identifier_column
from runtime.tracking.info import RunInfo
from runtime.tracking.schema import MOMENT, OPERATIONS, SCHEMA, STATUSES

Numbers = Sequence[int] | np.ndarray[Any, Any]


class LaterRows(Sequence[dict[str, Any]]):
    """Rows that are made when one is asked for: most records come from columns alone."""

    def __init__(self, n: int, make: Callable[[], Sequence[dict[str, Any]]]) -> None:
        self._n, self._make = n, make
        self._made: Sequence[dict[str, Any]] | None = None

    def __len__(self) -> int:
        return self._n

    def __getitem__(self, place: Any) -> Any:
        if self._made is None:
            self._made = self._make()
        return self._made[place]


@dataclass(frozen=True)
class RecordBatch:
    """The rows of one chunk that push() answered, in delivery order, with their answers; sequences of equal length but
    for `messages`."""

    rows: Sequence[dict[str, Any]]
    records: Sequence[bool] | np.ndarray[Any, Any]  # false: an old image that only accompanies
    keys: Sequence[str | None] | pa.Array
    outcomes: Sequence[str] | pa.DictionaryArray  # ok, warn, error, reject
    attempts: Numbers
    batch_numbers: Numbers
    started: Numbers  # microseconds since 1970 UTC
    ended: Numbers
    digest: str
    chunk_id: int
    messages: Mapping[int, str] = field(default_factory=dict)  # position -> what its answer said
    source: pa.Table | None = (
        None  # the rows as they lie in the chunk file, where there is one: what is a column already is not made again
    )


def companions(batch: RecordBatch) -> np.ndarray[Any, Any]:
    """Of the rows of `record_table` those that only accompany a record, such as the old image of an update: they are
    written where they are not ok, and not counted."""
    records = np.asarray(batch.records, dtype=np.bool_)
    return ~records[_recorded(records, _kinds(batch))]


def _kinds(batch: RecordBatch) -> pa.DictionaryArray:
    if isinstance(batch.outcomes, pa.DictionaryArray):
        return batch.outcomes
    return pa.array(batch.outcomes, pa.string()).dictionary_encode()


def _recorded(records: np.ndarray[Any, Any], kinds: pa.DictionaryArray) -> np.ndarray[Any, Any]:
    return records | ~_is(kinds, "ok")


def record_table(info: RunInfo, batch: RecordBatch) -> pa.Table:
    """The records as Arrow, columns at a time: record rows, and companions that are not ok. Columns of few words are
    dictionaries (WORDS), the others as in SCHEMA."""
    records = np.asarray(batch.records, dtype=np.bool_)
    kinds = _kinds(batch)
    picked = np.flatnonzero(_recorded(records, kinds))
    whole = len(picked) == len(records)
    rows = batch.rows if whole else LaterRows(len(picked), lambda: [batch.rows[i] for i in picked.tolist()])
    old = _previous(info, batch, records)

    def of_picked(column: Any) -> Any:
        return (
            column
            if whole
            else column.take(pa.array(picked))
            if isinstance(column, pa.Array)
            else np.asarray(column)[picked]
        )

    row_ids = _column(batch, ROWID, of_picked, rows).cast(pa.int64())
    changes, kinds = (
        _column(batch, CHANGE_TYPE, of_picked, rows).cast(pa.string()).dictionary_encode(),
        of_picked(kinds),
    )
    keys = batch.keys if isinstance(batch.keys, pa.Array) else strings(batch.keys)
    made = {
        "identifier": identifier_column(info, rows, of_picked(keys), row_ids),
        "record_payload": _payload_column(info, batch, rows, picked),
        "operation": _words(changes, lambda change: _operation(info.kind, change)),
        "status": _words(kinds, STATUSES.__getitem__),
        "status_message": strings(_messages(info, batch, picked.tolist()))
        if batch.messages
        else pa.nulls(len(rows), pa.string()),
        "batch_started_at": _moments(of_picked(batch.started)),
        "batch_ended_at": _moments(of_picked(batch.ended)),
        "sync_configuration_id": same(info.sync_id, len(rows)),
        "sync_run_id": same(info.run_id, len(rows)),
        "row_id": row_ids,
        "change_type": changes,
        "outcome": kinds,
        "attempt": pa.array(of_picked(batch.attempts), pa.int32()),
        "batch_number": pa.array(of_picked(batch.batch_numbers), pa.int32()),
        "previous_payload": pa.array([old.get(i) for i in picked.tolist()], pa.string())
        if old
        else pa.nulls(len(rows), pa.string()),
    }
    return pa.table([made[name] for name in SCHEMA.names], names=SCHEMA.names)


def _is(given: pa.DictionaryArray, word: str) -> np.ndarray[Any, Any]:
    """A mask of the places where the word stands."""
    words = given.dictionary.to_pylist()
    return (
        np.asarray(given.indices.to_numpy() == words.index(word)) if word in words else np.zeros(len(given), dtype=bool)
    )


def _column(batch: RecordBatch, name: str, of_picked: Callable[[Any], Any], rows: Sequence[dict[str, Any]]) -> pa.Array:
    """One column of the picked rows, which `rows` are."""
    if batch.source is None:
        return pa.array([row[name] for row in rows])
    return of_picked(batch.source.column(name).combine_chunks())


def _words(given: pa.DictionaryArray, word: Callable[[str], str]) -> pa.DictionaryArray:
    """A column of few different words from another such column."""
    said = [word(text) for text in given.dictionary.to_pylist()]
    few = list(dict.fromkeys(said))  # each once, or Parquet does not take them as they are
    places = np.array([few.index(text) for text in said], dtype=np.int32)
    return pa.DictionaryArray.from_arrays(
        given.indices if len(few) == len(said) else pa.array(places[given.indices.to_numpy()]),
        pa.array(few, pa.string()),
    )


def _moments(micros: Numbers) -> pa.Array:
    return pa.array(np.asarray(micros, dtype=np.int64)).cast(MOMENT)


def _operation(kind: Kind, change: str) -> str:
    if kind in ("merge", "tracked"):
        return "delete" if change == "delete" else "upsert"
    if kind == "scd2":
        return "append" if change == "insert" else "update"
    return OPERATIONS[kind]


def _payload_column(
    info: RunInfo, batch: RecordBatch, rows: Sequence[dict[str, Any]], picked: np.ndarray[Any, Any]
) -> pa.Array | pa.ChunkedArray:
    """The payloads of the picked rows, which `rows` are."""
    if batch.source is not None and not info.masks:
        source = batch.source if len(picked) == batch.source.num_rows else batch.source.take(pa.array(picked))
        if (whole := payloads.column(info.columns, rows, source)) is not None:
            return whole
    return strings(payloads_of(info, rows))


def _previous(info: RunInfo, batch: RecordBatch, records: np.ndarray[Any, Any]) -> dict[int, str]:
    """Position of a record -> the payload of the one old row that it stands against."""
    companions = np.flatnonzero(~records)
    if info.kind not in KEYED or not len(companions):
        return {}
    keys = batch.keys.to_pylist() if isinstance(batch.keys, pa.Array) else batch.keys
    pairs: list[tuple[int, int]] = []
    done = -1
    for i in map(int, companions):
        if i <= done:
            continue
        first, end = i, i + 1
        while first > 0 and keys[first - 1] == keys[i]:
            first -= 1
        while end < len(keys) and keys[end] == keys[i]:
            end += 1
        done = end - 1
        old = [j for j in range(first, end) if not records[j]]
        new = [j for j in range(first, end) if records[j]]
        if len(old) == 1 and len(new) > 1:  # scd2: the closed version stands against its own old image
            new = [j for j in new if batch.rows[j][CHANGE_TYPE] == "update_postimage"]
        if len(old) == len(new) == 1:
            pairs.append((new[0], old[0]))
    texts = payloads_of(info, [batch.rows[old] for _, old in pairs])
    return {new: text for (new, _), text in zip(pairs, texts, strict=True)}


def _messages(info: RunInfo, batch: RecordBatch, picked: Sequence[int]) -> list[str | None]:
    """Messages without the masked values of the rows of their call."""
    said = [batch.messages.get(i) or None for i in picked]
    if not info.masks:
        return said
    calls: dict[int, list[int]] = {}
    for i, number in enumerate(batch.batch_numbers):
        calls.setdefault(number, []).append(i)
    place = {i: at for at, i in enumerate(picked)}
    for members in calls.values():
        spoken = [(place[i], text) for i in members if i in place and (text := said[place[i]])]
        scrub = info.masks.scrubber(batch.rows[i] for i in members) if spoken else None
        if not scrub:
            continue

        few = scrub.within(text for _, text in spoken)
        for at, text in spoken:
            whole, mark = parted(text)
            said[at] = scrub(whole, cut=True) + mark if mark else few(text)
    return said
