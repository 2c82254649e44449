"""By what a person finds a record: `@identifier`, the key, or the row id."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import orjson
import pyarrow as pa

from runtime.columns import ROWID
from runtime.staging.units import KEYED
from runtime.tracking import payloads
from runtime.tracking.cells import strings
from runtime.tracking.info import RunInfo


def identifier_column(info: RunInfo, rows: Sequence[dict[str, Any]], keys: pa.Array, row_ids: pa.Array) -> pa.Array:
    """`identifiers` of rows whose keys and row ids are columns."""
    key = info.model.key if info.kind in (*KEYED, "append") else ()
    if info.model.identifier or len(key) > 1 or any(name in info.masks for name in key):
        return strings(identifiers(info, rows, keys.to_pylist()))
    return keys if key else row_ids.cast(pa.string())


def identifiers(info: RunInfo, rows: Sequence[dict[str, Any]], keys: Sequence[str | None]) -> list[str | None]:
    """`@identifier`, else the key (one column its text, several a JSON list), else the row id."""
    model, masks = info.model, info.masks
    if name := model.identifier:
        return [None if (v := masks.value(name, row.get(name))) is None else _text(v) for row in rows]
    if not model.key or info.kind not in (*KEYED, "append"):
        return [None if (number := row.get(ROWID)) is None else str(number) for row in rows]
    if len(model.key) > 1:
        return [orjson.dumps([masks.value(n, row.get(n)) for n in model.key]).decode() for row in rows]
    (name,) = model.key
    return [None if k is None else masks.value(name, k) for k in keys] if name in masks else list(keys)


def _text(value: Any) -> str:
    return value if isinstance(value, str) else payloads.text(value)
