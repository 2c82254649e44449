"""Records of rows that were not sent: invalid ones, and those that a dry run would send."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any

import pyarrow as pa

from runtime.columns import KEY, RECORD, STATUS
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
    records = chunk.column(RECORD).to_pylist()
    keys = chunk.column(KEY).cast(pa.string()).combine_chunks()
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
