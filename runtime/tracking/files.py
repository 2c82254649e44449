"""Record files: one row for each thing that the destination should now hold or lose, in one schema for ever.

A file belongs to one chunk of one run. Chunk and digest of the sealed answers stand in its metadata: after a crash the
same content is accepted as written, other content is left alone and the next number taken.
"""

from __future__ import annotations

import io
import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from uuid import uuid4

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from runtime.columns import OURS
from runtime.errors import StoreError
from runtime.staging import values
from runtime.store.base import AlreadyThere, Store
from runtime.tracking.groups import MessageGroup, message_groups
from runtime.tracking.info import RunInfo
from runtime.tracking.metadata import write_metadata
from runtime.tracking.rows import RecordBatch, companions, record_table
from runtime.tracking.schema import WORDS
from runtime.tracking.unsent import invalid_table, planned_table

log = logging.getLogger("ondatra.tracking")
UPDATED, DELETED, INVALID = "records_updated", "records_deleted", "records_invalid"
ROW_GROUP = 50_000
#: Values that Parquet encodes together: a few large steps take a tenth less time than its own many small ones.
WRITTEN_TOGETHER = 16_384
#: What the database remembers of a file are shortened texts; the file has them whole.
LONGEST_BOUND = 200


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
    beside = pa.array(companions(batch))
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
        use_dictionary=[*WORDS, "status_message"],
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
        message_groups(table, beside),
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


# invalid and planned rows


def write_invalid(
    store: Store, info: RunInfo, table: pa.Table, reserve: Callable[[str], int], *, checked_at: datetime | None = None
) -> list[WrittenFile]:
    """Rows whose key is NULL or stands more than once: the model's columns, `__ondatra_key`, `__ondatra_status`. At
    most ROW_GROUP rows a file."""
    files = []
    moment = checked_at or datetime.now(UTC)
    write_metadata(store, info)
    for start in range(0, table.num_rows, ROW_GROUP):
        part = table.slice(start, ROW_GROUP)
        rows = values.to_rows(part.drop_columns([n for n in part.column_names if n.startswith(OURS)]), info.columns)
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
