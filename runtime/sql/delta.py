"""The columns of a Delta table, read from its log without Spark."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from runtime.model import Column

from . import types
from .types import spark_type

_DUCKDB = {
    "string": "VARCHAR",
    "long": "BIGINT",
    "integer": "INTEGER",
    "short": "SMALLINT",
    "byte": "TINYINT",
    "double": "DOUBLE",
    "float": "FLOAT",
    "boolean": "BOOLEAN",
    "binary": "BLOB",
    "date": "DATE",
    "timestamp": "TIMESTAMP WITH TIME ZONE",
    "timestamp_ntz": "TIMESTAMP",
}


def schema(path: Path) -> tuple[Column, ...]:
    """Raises OSError or ValueError if there is no log."""
    log = path / "_delta_log"
    found = None
    last = log / "_last_checkpoint"
    if last.exists():
        import pyarrow.parquet as pq

        number = json.loads(last.read_text())["version"]
        for part in sorted(log.glob(f"{number:020}.checkpoint*.parquet")):
            for row in pq.read_table(part, columns=["metaData"]).column(0).to_pylist():
                found = row or found
    for file in sorted(log.glob("*.json")):
        for line in file.read_text(encoding="utf-8").splitlines():
            found = json.loads(line).get("metaData") or found
    if not found:
        raise ValueError("it has no log")
    fields = json.loads(found["schemaString"])["fields"]
    return tuple(Column(f["name"], text := duckdb_type(f["type"]), spark_type(types.parse(text))) for f in fields)


def duckdb_type(kind: Any) -> str:
    if isinstance(kind, str):
        return kind.upper() if kind.startswith("decimal") else _DUCKDB[kind]
    if kind["type"] == "array":
        return duckdb_type(kind["elementType"]) + "[]"
    if kind["type"] == "map":
        return f"MAP({duckdb_type(kind['keyType'])}, {duckdb_type(kind['valueType'])})"
    return "STRUCT(" + ", ".join(f'"{f["name"]}" {duckdb_type(f["type"])}' for f in kind["fields"]) + ")"
