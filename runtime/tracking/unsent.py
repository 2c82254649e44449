"""Records of rows that were not sent: invalid ones, those that a dry run would send, those that wait."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any

import pyarrow as pa

from runtime.columns import KEY, RECORD, STATUS
from runtime.staging import values
from runtime.tracking.cells import payloads_of, same
from runtime.tracking.identifiers import identifiers
from runtime.tracking.info import RunInfo
from runtime.tracking.rows import RecordBatch, record_table
from runtime.tracking.schema import MOMENT, OPERATIONS, SCHEMA


def invalid_table(info: RunInfo, part: pa.Table, rows: Sequence[dict[str, Any]], moment: datetime) -> pa.Table:
    n = len(rows)
    status = part.column(STATUS).to_pylist()
    keys = part.column(KEY).to_pylist()
    names = ", ".join(info.model.key)
    said = {
        "NULL": f"NULL in the key: {names} must not be null",
        "DUPLICATE": f"the key {names} stands more than once in the source",
    }
    ids = identifiers(info, rows, keys)
    none = [pa.nulls(n, f.type) for f in (SCHEMA.field("row_id"), SCHEMA.field("change_type"))]
    moments = pa.repeat(pa.scalar(moment, MOMENT), n)
    operations = {"append": "append", "scd2": "append"}
    return pa.table(
        [
            pa.array(ids, pa.string()),
            pa.array(payloads_of(info, rows), pa.string()),
            pa.repeat(operations.get(info.kind, OPERATIONS[info.kind]), n),
            pa.array(status, pa.string()),
            pa.array([said.get(s, "") for s in status], pa.string()),
            moments,
            moments,
            same(info.sync_id, n),
            same(info.run_id, n),
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
    return _unanswered(info, rows, chunk, "planned")


def unsent_table(info: RunInfo, chunk: pa.Table, word: str, why: str) -> pa.Table:
    """What of a chunk waits, with `word` as its status, and why."""
    table = _unanswered(info, values.to_rows(chunk, info.columns), chunk, word)
    return _filled(table, "status_message", pa.repeat(why, table.num_rows))


def _unanswered(info: RunInfo, rows: Sequence[dict[str, Any]], chunk: pa.Table, word: str) -> pa.Table:
    records = chunk.column(RECORD).to_pylist()
    keys = chunk.column(KEY).cast(pa.string()).combine_chunks()
    n = len(rows)
    batch = RecordBatch(rows, records, keys, ["ok"] * n, [0] * n, [0] * n, [0] * n, [0] * n, "", 0)
    table = record_table(info, batch)
    for name in ("status", "outcome"):
        table = _filled(table, name, pa.repeat(word, table.num_rows))
    for name in ("batch_started_at", "batch_ended_at", "attempt", "batch_number"):
        table = _filled(table, name, pa.nulls(table.num_rows, SCHEMA.field(name).type))
    return table


def _filled(table: pa.Table, name: str, column: pa.Array) -> pa.Table:
    return table.set_column(table.schema.get_field_index(name), SCHEMA.field(name), column)
