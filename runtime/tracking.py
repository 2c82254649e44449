"""Record files: one row for each thing that the destination should now hold or lose, in one schema for ever.

A file belongs to one chunk of one run. Chunk and digest of the sealed answers stand in its metadata: after a crash the
same content is accepted as written, other content is left alone and the next number taken.
"""
from __future__ import annotations

import io
import json
import logging
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Protocol
from uuid import uuid4

import numpy as np
import orjson
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from runtime import messages
from runtime.call_files import write_calls
from runtime.errors import StoreError
from runtime.masks import Masker
from runtime.model import Column, Kind, Model
from runtime.store import AlreadyThere, Store

log = logging.getLogger("ondatra.tracking")

__all__ = ["SCHEMA", "MessageGroup", "Places", "RecordBatch", "RunInfo", "WrittenFile", "metadata", "with_columns", "write", "write_calls",
           "write_invalid", "write_metadata", "write_planned"]

MOMENT = pa.timestamp("us", tz="UTC")
SCHEMA = pa.schema([
    ("identifier", pa.string()), ("record_payload", pa.string()), ("operation", pa.string()), ("status", pa.string()),
    ("status_message", pa.string()), ("batch_started_at", MOMENT), ("batch_ended_at", MOMENT),
    ("sync_configuration_id", pa.string()), ("sync_run_id", pa.string()),
    ("row_id", pa.int64()), ("change_type", pa.string()), ("outcome", pa.string()), ("attempt", pa.int32()),
    ("batch_number", pa.int32()), ("previous_payload", pa.string())])
UPDATED, DELETED, INVALID = "records_updated", "records_deleted", "records_invalid"
KEYED = ("merge", "tracked", "scd2")
STATUSES = {"ok": "succeeded", "warn": "succeeded", "error": "rejected", "reject": "rejected"}
OPERATIONS: dict[Kind, str] = {"merge": "upsert", "tracked": "upsert", "append": "append", "table": "mirror", "partition": "mirror", "scd2": "append"}
ROW_GROUP = 50_000
#: Patterns of one file that are kept apart; the rest is counted together.
MOST_GROUPS = 1_000
OTHER = "‹other messages›"
_ROWID, _CHANGE, _HASH = "__ondatra_rowid", "__ondatra_change_type", "_content_hash"


class OutcomeLike(Protocol):
    """A row's answer, as `runtime.push.Outcome` has it."""

    @property
    def kind(self) -> str: ...
    @property
    def message(self) -> str | None: ...


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


@dataclass(frozen=True)
class RecordBatch:
    """The rows of one chunk that push() answered, in delivery order, with their answers; lists of equal length."""

    rows: Sequence[dict[str, Any]]
    records: Sequence[bool]                     # false: an old image that only accompanies
    keys: Sequence[str | None]
    outcomes: Sequence[OutcomeLike]
    attempts: Sequence[int]
    batch_numbers: Sequence[int]
    started: Sequence[int]                      # microseconds since 1970 UTC
    ended: Sequence[int]
    digest: str
    chunk_id: int


@dataclass(frozen=True)
class MessageGroup:
    """Rows of one status whose messages have the same pattern."""

    status: str
    pattern: str
    rows: int
    sample_message: str
    sample_identifier: str | None


@dataclass(frozen=True)
class WrittenFile:
    """A record file as the database remembers it; `path` is its URL, `operations` counts `status|operation|change_type`."""

    batch_type: str
    number: int
    path: str
    rows: int
    size: int
    counts: dict[str, int]
    operations: dict[str, int]
    min_identifier: str | None
    max_identifier: str | None
    groups: list[MessageGroup] = field(default_factory=list)


def with_columns(info: RunInfo, columns: Sequence[Column]) -> RunInfo:
    """The same run, once its columns are known."""
    return replace(info, columns=tuple(columns))


# metadata.json

def json_type(duckdb_type: str) -> str:
    """The JSON type of a column's values in record_payload."""
    said = duckdb_type.upper()
    if said.endswith("]") or said.startswith("LIST"):
        return "array"
    if said.startswith(("STRUCT", "MAP")):
        return "object"
    if said == "BOOLEAN":
        return "boolean"
    numbers = ("TINYINT", "SMALLINT", "INTEGER", "BIGINT", "HUGEINT", "UTINYINT", "USMALLINT", "UINTEGER", "UBIGINT", "UHUGEINT", "FLOAT", "DOUBLE", "REAL")
    return "number" if said in numbers or said.startswith("DECIMAL") else "string"


def metadata(info: RunInfo) -> dict[str, Any]:
    """What metadata.json holds."""
    p = info.places
    return {
        "organization_id": info.organization_id, "workspace_id": p.workspace_id, "sync_configuration_id": info.sync_id, "sync_run_id": info.run_id,
        "sync_name": p.sync_name or info.model.name, "kind": info.kind, "source_type": p.source_type, "source_id": p.source_id,
        "source_object_id": p.source_object_id, "destination_type": p.destination_type, "destination_id": p.destination_id,
        "destination_object_id": p.destination_object_id, "operation": OPERATIONS[info.kind],
        "started_at": (p.started_at or datetime.now(UTC)).astimezone(UTC).isoformat().replace("+00:00", "Z"),
        "record_payload_schema": {c.name: "string" if c.name in info.masks else json_type(c.duckdb_type) for c in info.columns}}


def write_metadata(store: Store, info: RunInfo) -> dict[str, Any]:
    """Writes metadata.json if it is not there yet; it stands before the first row file."""
    said = metadata(info)
    with suppress(AlreadyThere):
        store.put_new(f"{info.folder}/metadata.json", orjson.dumps(said, option=orjson.OPT_INDENT_2))
    return said


# record files

def write(store: Store, info: RunInfo, batch: RecordBatch, reserve: Callable[[str], int]) -> list[WrittenFile]:
    """Writes the records of one chunk; `reserve` gives the next number of a batch type. Raises StoreError."""
    table = record_table(info, batch)
    if not table.num_rows:
        return []
    write_metadata(store, info)
    deleted = pc.equal(table.column("change_type"), "delete")
    marks = {"ondatra.chunk": str(batch.chunk_id), "ondatra.digest": batch.digest}
    parts = [(UPDATED, table.filter(pc.invert(deleted))), (DELETED, table.filter(deleted))]
    return [_write_file(store, info, kind, part, marks, reserve) for kind, part in parts if part.num_rows]


def record_table(info: RunInfo, batch: RecordBatch) -> pa.Table:
    """The records as Arrow, columns at a time: record rows, and companions that are not ok."""
    kinds = np.array([o.kind for o in batch.outcomes], dtype=object)
    records = np.asarray(batch.records, dtype=np.bool_)
    picked = np.flatnonzero(records | (kinds != "ok"))
    places = picked.tolist()
    rows = [batch.rows[i] for i in places]
    payloads, old = _payloads(info, rows), _previous(info, batch, records)
    changes = pa.array([r[_CHANGE] for r in rows], pa.string())
    said = _messages(info, batch, places)
    return pa.table([
        _strings(_identifiers(info, rows, [batch.keys[i] for i in places])), _strings(payloads),
        pa.array([_operation(info.kind, r[_CHANGE]) for r in rows], pa.string()), pa.array([STATUSES[k] for k in kinds[picked]], pa.string()),
        _strings(said), _moments(batch.started, picked), _moments(batch.ended, picked),
        *_same(info, len(rows)), pa.array([r[_ROWID] for r in rows], pa.int64()), changes, pa.array(kinds[picked], pa.string()),
        pa.array(np.asarray(batch.attempts, dtype=np.int32)[picked]), pa.array(np.asarray(batch.batch_numbers, dtype=np.int32)[picked]),
        pa.array([old.get(i) for i in places] if old else [None] * len(rows), pa.string())], schema=SCHEMA)


def _strings(texts: Sequence[str | None]) -> pa.Array:
    """Half a surrogate pair has no UTF-8: it is shown as \\ud800."""
    try:
        return pa.array(texts, pa.string())
    except UnicodeEncodeError:
        return pa.array([None if t is None else t.encode(errors="backslashreplace").decode() for t in texts], pa.string())


def _moments(micros: Sequence[int], picked: np.ndarray[Any, Any]) -> pa.Array:
    return pa.array(np.asarray(micros, dtype=np.int64)[picked]).cast(MOMENT)


def _same(info: RunInfo, rows: int) -> tuple[pa.Array, pa.Array]:
    return pa.repeat(str(info.sync_id), rows), pa.repeat(str(info.run_id), rows)


def _operation(kind: Kind, change: str) -> str:
    if kind in ("merge", "tracked"):
        return "delete" if change == "delete" else "upsert"
    if kind == "scd2":
        return "append" if change == "insert" else "update"
    return OPERATIONS[kind]


def payload_text(row: dict[str, Any]) -> str:
    """The JSON object of one row's columns."""
    try:
        return orjson.dumps(row).decode()
    except TypeError:                           # integers over 64 bits, lone surrogates
        return json.dumps(row, separators=(",", ":"))


def _payloads(info: RunInfo, rows: Sequence[dict[str, Any]]) -> list[str]:
    names = [c.name for c in info.columns] or [n for n in (rows[0] if rows else ()) if n not in (_ROWID, _CHANGE, _HASH)]
    plain = ({n: row.get(n) for n in names} for row in rows)
    return [payload_text(info.masks.row(row)) for row in plain] if info.masks else [payload_text(row) for row in plain]


def _identifiers(info: RunInfo, rows: Sequence[dict[str, Any]], keys: Sequence[str | None]) -> list[str | None]:
    """`@identifier`, else the key (one column its text, several a JSON list), else the row id."""
    model, masks = info.model, info.masks
    if name := model.identifier:
        return [None if (v := masks.value(name, row.get(name))) is None else _text(v) for row in rows]
    if not model.key or info.kind not in (*KEYED, "append"):
        return [str(row[_ROWID]) if row.get(_ROWID) is not None else None for row in rows]
    if len(model.key) > 1:
        return [orjson.dumps([masks.value(n, row.get(n)) for n in model.key]).decode() for row in rows]
    (name,) = model.key
    return [None if k is None else masks.value(name, k) for k in keys] if name in masks else list(keys)


def _text(value: Any) -> str:
    return value if isinstance(value, str) else payload_text(value)


def _previous(info: RunInfo, batch: RecordBatch, records: np.ndarray[Any, Any]) -> dict[int, str]:
    """Position of a record -> the payload of the one old row that it stands against."""
    companions = np.flatnonzero(~records)
    if info.kind not in KEYED or not len(companions):
        return {}
    keys = batch.keys
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
        if len(old) == 1 and len(new) > 1:      # scd2: the closed version stands against its own old image
            new = [j for j in new if batch.rows[j][_CHANGE] == "update_postimage"]
        if len(old) == len(new) == 1:
            pairs.append((new[0], old[0]))
    texts = _payloads(info, [batch.rows[old] for _, old in pairs])
    return {new: text for (new, _), text in zip(pairs, texts, strict=True)}


def _messages(info: RunInfo, batch: RecordBatch, picked: Sequence[int]) -> list[str | None]:
    """Messages without the masked values of the rows of their call."""
    said: list[str | None] = [batch.outcomes[i].message or None for i in picked]
    if not info.masks or not any(said):
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


# files

def to_parquet(table: pa.Table, marks: dict[str, str] | None = None) -> bytes:
    """A record file's bytes: what repeats is a dictionary, what does not is plain, and identifier has a bloom filter."""
    plain = ("identifier", "record_payload", "previous_payload", "row_id")
    sink = io.BytesIO()
    pq.write_table(table.replace_schema_metadata(marks), sink, compression="zstd", row_group_size=ROW_GROUP,
                   use_dictionary=[n for n in table.column_names if n not in plain],
                   bloom_filter_options={"identifier": {"ndv": max(1, min(table.num_rows, ROW_GROUP)), "fpp": 0.01}})
    return sink.getvalue()


def _write_file(store: Store, info: RunInfo, batch_type: str, table: pa.Table, marks: dict[str, str], reserve: Callable[[str], int]) -> WrittenFile:
    data = to_parquet(table, marks)
    while True:
        number = reserve(batch_type)
        path = f"{info.folder}/{batch_type}.{number}.parquet"
        try:
            store.put_new(path, data)
            break
        except AlreadyThere:
            if _marks_of(store, path) == marks:
                break                           # written before a crash
            log.warning("%s belongs to something else and stays as it is; the next number is taken", store.url_of(path))
    return _described(table, batch_type, number, store.url_of(path), len(data))


def _marks_of(store: Store, path: str) -> dict[str, str]:
    try:
        found = pq.read_schema(io.BytesIO(store.get(path))).metadata or {}
    except (StoreError, pa.ArrowException):
        return {}
    return {k.decode(): v.decode(errors="replace") for k, v in found.items() if k.startswith(b"ondatra.")}


def _described(table: pa.Table, batch_type: str, number: int, url: str, size: int) -> WrittenFile:
    status, message = table.column("status"), table.column("status_message")
    keys = pc.binary_join_element_wise(status, table.column("operation"), pc.fill_null(table.column("change_type"), ""), "|")
    bounds = pc.min_max(table.column("identifier")).as_py()
    return WrittenFile(batch_type, number, url, table.num_rows, size, _tally(status), _tally(keys), bounds["min"], bounds["max"],
                       _groups(table.filter(pc.is_valid(message))))


def _tally(column: pa.ChunkedArray) -> dict[str, int]:
    return {str(entry["values"]): int(entry["counts"]) for entry in pc.value_counts(column).to_pylist()}


def _groups(said: pa.Table) -> list[MessageGroup]:
    """The groups of the rows that have a message; a message that many rows share is looked at once."""
    if not said.num_rows:
        return []
    distinct = said.select(["status", "status_message", "identifier"]).group_by(["status", "status_message"], use_threads=False).aggregate(
        [("identifier", "first"), ("identifier", "count", pc.CountOptions(mode="all"))])
    rows: Counter[tuple[str, str]] = Counter()
    samples: dict[tuple[str, str], tuple[str, str | None]] = {}
    for entry in distinct.to_pylist():
        group = entry["status"], messages.pattern(entry["status_message"])
        if group not in rows and len(rows) >= MOST_GROUPS:
            group = entry["status"], OTHER
        rows[group] += entry["identifier_count"]
        samples.setdefault(group, (entry["status_message"], entry["identifier_first"]))
    return [MessageGroup(status, said, n, *samples[status, said]) for (status, said), n in rows.most_common()]


# invalid and planned rows

def write_invalid(store: Store, info: RunInfo, table: pa.Table, reserve: Callable[[str], int], *, checked_at: datetime | None = None) -> list[WrittenFile]:
    """Rows whose key is NULL or stands more than once: the model's columns, `__ondatra_key`, `__ondatra_status`. At most ROW_GROUP rows a file."""
    from runtime import values

    files = []
    moment = checked_at or datetime.now(UTC)
    write_metadata(store, info)
    for start in range(0, table.num_rows, ROW_GROUP):
        part = table.slice(start, ROW_GROUP)
        rows = values.to_rows(part.drop_columns([n for n in part.column_names if n.startswith("__ondatra_")]), info.columns)
        files.append(_write_file(store, info, INVALID, _invalid_table(info, part, rows, moment), {"ondatra.invalid": uuid4().hex}, reserve))
    return files


def _invalid_table(info: RunInfo, part: pa.Table, rows: Sequence[dict[str, Any]], moment: datetime) -> pa.Table:
    n = len(rows)
    status = part.column("__ondatra_status").to_pylist()
    keys = part.column("__ondatra_key").to_pylist()
    names = ", ".join(info.model.key)
    said = {"NULL": f"NULL in the key: {names} must not be null", "DUPLICATE": f"the key {names} stands more than once in the source"}
    ids = _identifiers(info, rows, keys)
    none = [pa.nulls(n, f.type) for f in (SCHEMA.field("row_id"), SCHEMA.field("change_type"))]
    moments = pa.repeat(pa.scalar(moment, MOMENT), n)
    operations = {"append": "append", "scd2": "append"}
    return pa.table([
        pa.array(ids, pa.string()), pa.array(_payloads(info, rows), pa.string()), pa.repeat(operations.get(info.kind, OPERATIONS[info.kind]), n),
        pa.array(status, pa.string()), pa.array([said.get(s, "") for s in status], pa.string()), moments, moments, *_same(info, n),
        *none, pa.repeat("invalid", n), pa.nulls(n, pa.int32()), pa.nulls(n, pa.int32()), pa.nulls(n, pa.string())], schema=SCHEMA)


def write_planned(path: Path, info: RunInfo, rows: Sequence[dict[str, Any]], chunk: pa.Table) -> int:
    """What a dry run would send of one chunk, in the same schema, apart from the store; how many records."""
    records = chunk.column("__ondatra_record").to_pylist()
    keys = chunk.column("__ondatra_key").to_pylist()
    n = len(rows)
    none = _Planned()
    batch = RecordBatch(rows, records, keys, [none] * n, [0] * n, [0] * n, [0] * n, [0] * n, "", 0)
    table = record_table(info, batch)
    for name, filled in (("status", "planned"), ("outcome", "planned")):
        table = table.set_column(table.schema.get_field_index(name), SCHEMA.field(name), pa.repeat(filled, table.num_rows))
    for name in ("batch_started_at", "batch_ended_at", "attempt", "batch_number"):
        table = table.set_column(table.schema.get_field_index(name), SCHEMA.field(name), pa.nulls(table.num_rows, SCHEMA.field(name).type))
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(to_parquet(table))
    return int(table.num_rows)


@dataclass(frozen=True)
class _Planned:
    kind: str = "ok"
    message: str | None = None
