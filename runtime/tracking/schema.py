"""The one schema of all record files, and the words in it."""

from __future__ import annotations

import pyarrow as pa

from runtime.model import Kind

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
STATUSES = {"ok": "succeeded", "warn": "succeeded", "error": "rejected", "reject": "rejected"}
OPERATIONS: dict[Kind, str] = {
    "merge": "upsert",
    "tracked": "upsert",
    "append": "append",
    "table": "mirror",
    "partition": "mirror",
    "scd2": "append",
}
