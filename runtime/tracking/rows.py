"""Records as Arrow: push()'s answers, invalid rows and planned ones, in the one schema of all record files."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from pathlib import Path
from typing import Any

import numpy as np
import orjson
import pyarrow as pa

from runtime.custody.masks import Masker
from runtime.model import Column, Kind, Mask, Model
from runtime.tracking import payloads

Numbers = Sequence[int] | np.ndarray[Any, Any]
MOMENT = pa.timestamp("us", tz="UTC")
SCHEMA = pa.schema(
    [
        ("identifier", pa.string()),
        ("record_payload", pa.string()),
        ("operation", pa.string()),
        ("status", pa.string()),
        ("status_message", pa.string()),
        ("batch_started_at", MOMENT),
        ("batch_ended_at", MOMENT),
        ("sync_configuration_id", pa.string()),
        ("sync_run_id", pa.string()),
        ("row_id", pa.int64()),
        ("change_type", pa.string()),
        ("outcome", pa.string()),
        ("attempt", pa.int32()),
        ("batch_number", pa.int32()),
        ("previous_payload", pa.string()),
    ]
)
#: Columns of few words, which repeat.
WORDS = ("operation", "status", "sync_configuration_id", "sync_run_id", "change_type", "outcome")
KEYED = ("merge", "tracked", "scd2")
STATUSES = {"ok": "succeeded", "warn": "succeeded", "error": "rejected", "reject": "rejected"}
OPERATIONS: dict[Kind, str] = {
    "merge": "upsert",
    "tracked": "upsert",
    "append": "append",
    "table": "mirror",
    "partition": "mirror",
    "scd2": "append",
}
_ROWID, _CHANGE = "__ondatra_rowid", "__ondatra_change_type"


@dataclass(frozen=True)
class Places:
    """Where the records come from and go to: what metadata.json and the fact tables are joined by."""

    workspace_id: int = 0
    sync_name: str = ""
    source_type: str = "DeltaLake"
    source_id: int = 0
    source_object_id: int = 0
    destination_type: str = ""
    destination_id: int = 0
    destination_object_id: int = 0
    started_at: datetime | None = None


@dataclass(frozen=True)
class RunInfo:
    """What all files of one run share."""

    organization_id: int
    sync_id: int
    run_id: int
    kind: Kind
    model: Model
    masks: Masker
    columns: tuple[Column, ...] = ()
    places: Places = Places()

    @property
    def folder(self) -> str:
        return f"sync_tracking_datasets/{self.organization_id}/{self.sync_id}/{self.run_id}"


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


def rules_of(info: RunInfo) -> dict[str, Any]:
    """What the record files of a delivery follow, as JSON: kept at its seal, so that files that wait do not need the
    model any more."""
    m, p = info.model, info.places
    return {
        "kind": info.kind,
        "name": m.name,
        "key": list(m.key),
        "identifier": m.identifier,
        "masks": [[mask.column, mask.how] for mask in m.masks],
        "places": {**vars(p), "started_at": p.started_at.isoformat() if p.started_at else None},
    }


def by_rules(
    rules: Mapping[str, Any],
    *,
    organization_id: int,
    sync_id: int,
    run_id: int,
    columns: Sequence[Column],
    mask_key: str,
) -> RunInfo:
    """The other way round."""
    masks = tuple(Mask(column, how) for column, how in rules["masks"])
    model = Model(
        rules["name"],
        "",
        Path(),
        "",
        1,
        kind=rules["kind"],
        key=tuple(rules["key"]),
        identifier=rules["identifier"],
        masks=masks,
    )
    moment = rules["places"]["started_at"]
    places = Places(**{**rules["places"], "started_at": datetime.fromisoformat(moment) if moment else None})
    return RunInfo(organization_id, sync_id, run_id, model.kind, model, Masker(masks, mask_key), tuple(columns), places)


def with_columns(info: RunInfo, columns: Sequence[Column]) -> RunInfo:
    """The same run, once its columns are known."""
    return replace(info, columns=tuple(columns))


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

    row_ids = _column(batch, _ROWID, of_picked, rows).cast(pa.int64())
    changes, kinds = _column(batch, _CHANGE, of_picked, rows).cast(pa.string()).dictionary_encode(), of_picked(kinds)
    keys = batch.keys if isinstance(batch.keys, pa.Array) else _strings(batch.keys)
    made = {
        "identifier": _identifier_column(info, rows, of_picked(keys), row_ids),
        "record_payload": _payload_column(info, batch, rows, picked),
        "operation": _words(changes, lambda change: _operation(info.kind, change)),
        "status": _words(kinds, STATUSES.__getitem__),
        "status_message": _strings(_messages(info, batch, picked.tolist()))
        if batch.messages
        else pa.nulls(len(rows), pa.string()),
        "batch_started_at": _moments(of_picked(batch.started)),
        "batch_ended_at": _moments(of_picked(batch.ended)),
        "sync_configuration_id": _same(info.sync_id, len(rows)),
        "sync_run_id": _same(info.run_id, len(rows)),
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


def _strings(texts: Sequence[str | None]) -> pa.Array:
    """Half a surrogate pair has no UTF-8: it is shown as \\ud800."""
    try:
        return pa.array(texts, pa.string())
    except UnicodeEncodeError:
        return pa.array(
            [None if t is None else t.encode(errors="backslashreplace").decode() for t in texts], pa.string()
        )


def _moments(micros: Numbers) -> pa.Array:
    return pa.array(np.asarray(micros, dtype=np.int64)).cast(MOMENT)


def _same(number: int, rows: int) -> pa.DictionaryArray:
    return pa.DictionaryArray.from_arrays(
        pa.array(np.zeros(rows, dtype=np.int32)), pa.array([str(number)], pa.string())
    )


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
    return _strings(_payloads(info, rows))


def _payloads(info: RunInfo, rows: Sequence[dict[str, Any]]) -> list[str]:
    return payloads.texts(info.columns, info.masks, rows[:])


def _identifier_column(info: RunInfo, rows: Sequence[dict[str, Any]], keys: pa.Array, row_ids: pa.Array) -> pa.Array:
    """`_identifiers` of rows whose keys and row ids are columns."""
    key = info.model.key if info.kind in (*KEYED, "append") else ()
    if info.model.identifier or len(key) > 1 or any(name in info.masks for name in key):
        return _strings(_identifiers(info, rows, keys.to_pylist()))
    return keys if key else row_ids.cast(pa.string())


def _identifiers(info: RunInfo, rows: Sequence[dict[str, Any]], keys: Sequence[str | None]) -> list[str | None]:
    """`@identifier`, else the key (one column its text, several a JSON list), else the row id."""
    model, masks = info.model, info.masks
    if name := model.identifier:
        return [None if (v := masks.value(name, row.get(name))) is None else _text(v) for row in rows]
    if not model.key or info.kind not in (*KEYED, "append"):
        return [None if (number := row.get(_ROWID)) is None else str(number) for row in rows]
    if len(model.key) > 1:
        return [orjson.dumps([masks.value(n, row.get(n)) for n in model.key]).decode() for row in rows]
    (name,) = model.key
    return [None if k is None else masks.value(name, k) for k in keys] if name in masks else list(keys)


def _text(value: Any) -> str:
    return value if isinstance(value, str) else payloads.text(value)


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
            new = [j for j in new if batch.rows[j][_CHANGE] == "update_postimage"]
        if len(old) == len(new) == 1:
            pairs.append((new[0], old[0]))
    texts = _payloads(info, [batch.rows[old] for _, old in pairs])
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
        if spoken and (scrub := info.masks.scrubber(batch.rows[i] for i in members).within(text for _, text in spoken)):
            for at, text in spoken:
                said[at] = scrub(text)
    return said


def invalid_table(info: RunInfo, part: pa.Table, rows: Sequence[dict[str, Any]], moment: datetime) -> pa.Table:
    n = len(rows)
    status = part.column("__ondatra_status").to_pylist()
    keys = part.column("__ondatra_key").to_pylist()
    names = ", ".join(info.model.key)
    said = {
        "NULL": f"NULL in the key: {names} must not be null",
        "DUPLICATE": f"the key {names} stands more than once in the source",
    }
    ids = _identifiers(info, rows, keys)
    none = [pa.nulls(n, f.type) for f in (SCHEMA.field("row_id"), SCHEMA.field("change_type"))]
    moments = pa.repeat(pa.scalar(moment, MOMENT), n)
    operations = {"append": "append", "scd2": "append"}
    return pa.table(
        [
            pa.array(ids, pa.string()),
            pa.array(_payloads(info, rows), pa.string()),
            pa.repeat(operations.get(info.kind, OPERATIONS[info.kind]), n),
            pa.array(status, pa.string()),
            pa.array([said.get(s, "") for s in status], pa.string()),
            moments,
            moments,
            _same(info.sync_id, n),
            _same(info.run_id, n),
            *none,
            pa.repeat("invalid", n),
            pa.nulls(n, pa.int32()),
            pa.nulls(n, pa.int32()),
            pa.nulls(n, pa.string()),
        ],
        names=SCHEMA.names,
    )


def planned_table(info: RunInfo, rows: Sequence[dict[str, Any]], chunk: pa.Table) -> pa.Table:
    """What would be sent of a chunk: nothing was answered yet."""
    records = chunk.column("__ondatra_record").to_pylist()
    keys = chunk.column("__ondatra_key").cast(pa.string()).combine_chunks()
    n = len(rows)
    batch = RecordBatch(rows, records, keys, ["ok"] * n, [0] * n, [0] * n, [0] * n, [0] * n, "", 0)
    table = record_table(info, batch)
    for name, filled in (("status", "planned"), ("outcome", "planned")):
        table = table.set_column(
            table.schema.get_field_index(name), SCHEMA.field(name), pa.repeat(filled, table.num_rows)
        )
    for name in ("batch_started_at", "batch_ended_at", "attempt", "batch_number"):
        table = table.set_column(
            table.schema.get_field_index(name), SCHEMA.field(name), pa.nulls(table.num_rows, SCHEMA.field(name).type)
        )
    return table
