"""metadata.json, which stands in a run's folder before its first record file."""

from __future__ import annotations

from contextlib import suppress
from datetime import UTC, datetime
from typing import Any

import orjson

from runtime.store.base import AlreadyThere, Store
from runtime.tracking.info import RunInfo
from runtime.tracking.schema import OPERATIONS


def json_type(duckdb_type: str) -> str:
    """The JSON type of a column's values in record_payload."""
    said = duckdb_type.upper()
    if said.endswith("]") or said.startswith(("LIST", "TUPLE")):
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
