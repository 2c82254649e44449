"""Record files: one row for each thing that the destination should now hold or lose, in one schema for ever.

A file belongs to one chunk of one run. Chunk and digest of the sealed answers stand in its metadata: after a crash the
same content is accepted as written, other content is left alone and the next number taken.
"""

from __future__ import annotations

import io
import logging
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from uuid import uuid4

import numpy as np
import orjson
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from runtime.errors import StoreError
from runtime.store.base import AlreadyThere, Store
from runtime.tracking import messages
from runtime.tracking import rows as record_rows
from runtime.tracking.rows import (
    MOMENT,
    OPERATIONS,
    SCHEMA,
    STATUSES,
    Places,
    RecordBatch,
    RunInfo,
    invalid_table,
    planned_table,
    record_table,
    with_columns,
)

__all__ = [
    "MOMENT",
    "OPERATIONS",
    "SCHEMA",
    "STATUSES",
    "MessageGroup",
    "Places",
    "RecordBatch",
    "RunInfo",
    "WrittenFile",
    "metadata",
    "record_table",
    "with_columns",
    "write",
    "write_invalid",
    "write_metadata",
    "write_planned",
]

log = logging.getLogger("ondatra.tracking")
UPDATED, DELETED, INVALID = "records_updated", "records_deleted", "records_invalid"
ROW_GROUP = 50_000
#: Values that Parquet encodes together: a few large steps take a tenth less time than its own many small ones.
WRITTEN_TOGETHER = 16_384
#: Patterns of one file that are kept apart; the rest is counted together.
MOST_GROUPS = 1_000
OTHER = "‹other messages›"
#: What the database remembers of a file are shortened texts; the file has them whole.
LONGEST_BOUND, LONGEST_SAMPLE = 200, 2_000


@dataclass(frozen=True)
class MessageGroup:
    """Rows of one status whose messages have the same pattern. Of them `due` are records that are due again, and
    `beside` rows that only accompany a record."""

    status: str
    pattern: str
    rows: int
    sample_message: str
    sample_identifier: str | None
    due: int = 0
    beside: int = 0


@dataclass(frozen=True)
class WrittenFile:
    """A record file as the database remembers it; `path` is its URL, `operations` counts
    `status|operation|change_type`."""

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
    numbers = (
        "TINYINT",
        "SMALLINT",
        "INTEGER",
        "BIGINT",
        "HUGEINT",
        "UTINYINT",
        "USMALLINT",
        "UINTEGER",
        "UBIGINT",
        "UHUGEINT",
        "FLOAT",
        "DOUBLE",
        "REAL",
    )
    return "number" if said in numbers or said.startswith("DECIMAL") else "string"


def metadata(info: RunInfo) -> dict[str, Any]:
    """What metadata.json holds."""
    p = info.places
    return {
        "organization_id": info.organization_id,
        "workspace_id": p.workspace_id,
        "sync_configuration_id": info.sync_id,
        "sync_run_id": info.run_id,
        "sync_name": p.sync_name or info.model.name,
        "kind": info.kind,
        "source_type": p.source_type,
        "source_id": p.source_id,
        "source_object_id": p.source_object_id,
        "destination_type": p.destination_type,
        "destination_id": p.destination_id,
        "destination_object_id": p.destination_object_id,
        "operation": OPERATIONS[info.kind],
        "started_at": (p.started_at or datetime.now(UTC)).astimezone(UTC).isoformat().replace("+00:00", "Z"),
        "record_payload_schema": {
            c.name: "string" if c.name in info.masks else json_type(c.duckdb_type) for c in info.columns
        },
    }


def write_metadata(store: Store, info: RunInfo) -> dict[str, Any]:
    """Writes metadata.json if it is not there yet; it stands before the first row file."""
    said, path = metadata(info), f"{info.folder}/metadata.json"
    with suppress(AlreadyThere):
        if not store.exists(path):
            store.put_new(path, orjson.dumps(said, option=orjson.OPT_INDENT_2))
    return said


# record files


def batch_types(changes: pa.ChunkedArray, recorded: np.ndarray[Any, Any]) -> list[str]:
    """Of which types `write` makes files; `recorded` is a mask of the rows that become records."""
    deleted = pc.equal(changes, "delete").to_numpy()[recorded]
    return [kind for kind, wanted in ((UPDATED, ~deleted), (DELETED, deleted)) if wanted.any()]


def write(store: Store, info: RunInfo, batch: RecordBatch, reserve: Callable[[str], int]) -> list[WrittenFile]:
    """Writes the records of one chunk; `reserve` gives the next number of a batch type. Raises StoreError."""
    table = record_table(info, batch)
    if not table.num_rows:
        return []
    write_metadata(store, info)
    deleted = pc.equal(table.column("change_type"), "delete")
    deletes = pc.sum(deleted).as_py()
    beside = pa.array(record_rows.companions(batch))
    if deletes in (0, table.num_rows):  # most often: nothing is copied
        parts = [(DELETED if deletes else UPDATED, table, beside)]
    else:
        kept = pc.invert(deleted)
        parts = [
            (UPDATED, table.filter(kept), beside.filter(kept)),
            (DELETED, table.filter(deleted), beside.filter(deleted)),
        ]
    marks = {"ondatra.chunk": str(batch.chunk_id), "ondatra.digest": batch.digest}
    return [_write_file(store, info, kind, part, marks, reserve, beside) for kind, part, beside in parts]


# files


def to_parquet(table: pa.Table, marks: dict[str, str] | None = None) -> bytes:
    """A record file's bytes: words that repeat are a dictionary, and identifier has a bloom filter. Numbers and times
    are plain: they repeat in runs, which zstd makes as small in less time. Payloads have no bounds. Readers see texts
    where Arrow had dictionaries: its schema is not stored."""
    payloads = ("record_payload", "previous_payload")
    sink = pa.BufferOutputStream()
    with pq.ParquetWriter(
        sink,
        table.schema,
        compression="zstd",
        use_dictionary=[*record_rows.WORDS, "status_message"],
        store_schema=False,
        write_batch_size=WRITTEN_TOGETHER,
        write_statistics=[n for n in table.column_names if n not in payloads],
        bloom_filter_options={"identifier": {"ndv": max(1, min(table.num_rows, ROW_GROUP)), "fpp": 0.01}},
    ) as file:
        file.write_table(table, row_group_size=ROW_GROUP)
        file.add_key_value_metadata(marks or {})
    return bytes(sink.getvalue())


def _write_file(
    store: Store,
    info: RunInfo,
    batch_type: str,
    table: pa.Table,
    marks: dict[str, str],
    reserve: Callable[[str], int],
    beside: pa.Array | None = None,
) -> WrittenFile:
    data = to_parquet(table, marks)
    while True:
        number = reserve(batch_type)
        path = f"{info.folder}/{batch_type}.{number}.parquet"
        try:
            store.put_new(path, data)
            break
        except AlreadyThere:
            if _marks_of(store, path) == marks:
                break  # written before a crash
            log.warning("%s belongs to something else and stays as it is; the next number is taken", store.url_of(path))
    return _described(table, batch_type, number, store.url_of(path), len(data), beside)


def _marks_of(store: Store, path: str) -> dict[str, str]:
    try:
        found = pq.read_schema(io.BytesIO(store.get(path))).metadata or {}
    except (StoreError, pa.ArrowException):
        return {}
    return {k.decode(): v.decode(errors="replace") for k, v in found.items() if k.startswith(b"ondatra.")}


def _described(
    table: pa.Table, batch_type: str, number: int, url: str, size: int, beside: pa.Array | None
) -> WrittenFile:
    message = table.column("status_message")
    bounds = pc.min_max(table.column("identifier")).as_py()
    return WrittenFile(
        batch_type,
        number,
        url,
        table.num_rows,
        size,
        _tally(table, "status"),
        _tally(table, "status", "operation", "change_type"),
        *_bounds(bounds["min"], bounds["max"]),
        _groups(_counted(table, beside)) if message.null_count < len(message) else [],
    )


def _bounds(low: str | None, high: str | None) -> tuple[str | None, str | None]:
    """No longer than a database likes, and without the character that PostgreSQL has no text for: still at most and at
    least every identifier."""
    if low is None or high is None:
        return low, high
    short = low.partition("\0")[0][:LONGEST_BOUND]
    cut, nul, _ = high[:LONGEST_BOUND].partition("\0")
    upper = cut + "\1" if nul else cut + "\U0010ffff" if len(high) > LONGEST_BOUND else cut
    return (short, upper) if upper >= high else (None, None)  # not known: the file is opened


def _sample(text: str | None) -> str | None:
    if text is None:
        return None
    text = text.replace("\0", "\ufffd")
    return text if len(text) <= LONGEST_SAMPLE else text[: LONGEST_SAMPLE - 1] + "…"


def _tally(table: pa.Table, *names: str) -> dict[str, int]:
    """How often the words of these columns stand together; no word is an empty one."""
    where, words = np.zeros(table.num_rows, dtype=np.int64), [""]
    for name in names:
        column = table.column(name).combine_chunks()
        few = column if isinstance(column, pa.DictionaryArray) else column.dictionary_encode()
        mine = [*few.dictionary.to_pylist(), ""]
        where = where * len(mine) + few.indices.fill_null(len(mine) - 1).to_numpy()
        words = [f"{before}|{word}" if before else word for before in words for word in mine]
    return {words[i]: n for i, n in enumerate(np.bincount(where).tolist()) if n}


def _counted(table: pa.Table, beside: pa.Array | None) -> pa.Table:
    """What groups are made of, of the rows that have a message: `due` and `beside` are 1 where a row counts as such."""
    beside = pa.repeat(False, table.num_rows) if beside is None else beside
    outcome = table.column("outcome").cast(pa.string())
    due = pc.fill_null(pc.and_(pc.equal(outcome, "error"), pc.invert(beside)), False)
    said = table.select(["status", "status_message", "identifier"])
    said = said.append_column("due", due.cast(pa.int64())).append_column("beside", beside.cast(pa.int64()))
    return said.filter(pc.is_valid(table.column("status_message")))


def _groups(said: pa.Table) -> list[MessageGroup]:
    """The groups of the rows that have a message; a message that many rows share is looked at once."""
    if not said.num_rows:
        return []
    distinct = said.group_by(["status", "status_message"], use_threads=False).aggregate(
        [
            ("identifier", "first"),
            ("identifier", "count", pc.CountOptions(mode="all")),
            ("due", "sum"),
            ("beside", "sum"),
        ]
    )
    rows: Counter[tuple[str, str]] = Counter()
    due: Counter[tuple[str, str]] = Counter()
    beside: Counter[tuple[str, str]] = Counter()
    samples: dict[tuple[str, str], tuple[str, str | None]] = {}
    for entry in distinct.to_pylist():
        group = entry["status"], messages.pattern(entry["status_message"])
        if group not in rows and len(rows) >= MOST_GROUPS:
            group = entry["status"], OTHER
        rows[group] += entry["identifier_count"]
        due[group] += entry["due_sum"]
        beside[group] += entry["beside_sum"]
        samples.setdefault(group, (_sample(entry["status_message"]) or "", _sample(entry["identifier_first"])))
    return [MessageGroup(*key, n, *samples[key], due[key], beside[key]) for key, n in rows.most_common()]


# invalid and planned rows


def write_invalid(
    store: Store, info: RunInfo, table: pa.Table, reserve: Callable[[str], int], *, checked_at: datetime | None = None
) -> list[WrittenFile]:
    """Rows whose key is NULL or stands more than once: the model's columns, `__ondatra_key`, `__ondatra_status`. At
    most ROW_GROUP rows a file."""
    from runtime.staging import values

    files = []
    moment = checked_at or datetime.now(UTC)
    write_metadata(store, info)
    for start in range(0, table.num_rows, ROW_GROUP):
        part = table.slice(start, ROW_GROUP)
        rows = values.to_rows(
            part.drop_columns([n for n in part.column_names if n.startswith("__ondatra_")]), info.columns
        )
        files.append(
            _write_file(
                store, info, INVALID, invalid_table(info, part, rows, moment), {"ondatra.invalid": uuid4().hex}, reserve
            )
        )
    return files


def write_planned(path: Path, info: RunInfo, rows: Sequence[dict[str, Any]], chunk: pa.Table) -> int:
    """What a dry run would send of one chunk, in the same schema, apart from the store; how many records."""
    table = planned_table(info, rows, chunk)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(to_parquet(table))
    return int(table.num_rows)
