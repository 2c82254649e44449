"""Requests and answers of one chunk, kept apart from the record files: `api_calls/ORG/SYNC/RUN/[chunk].parquet`."""
from __future__ import annotations

import io
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any, Protocol

import orjson
import pyarrow as pa
import pyarrow.parquet as pq

from runtime.store import AlreadyThere, Store

if TYPE_CHECKING:
    from runtime.tracking import RunInfo

#: Bodies are cut to this many bytes.
LONGEST_BODY = 64 * 1024
_MOMENT = pa.timestamp("us", tz="UTC")
SCHEMA = pa.schema([
    ("batch_number", pa.int32()), ("attempt", pa.int32()), ("method", pa.string()), ("url", pa.string()), ("request_headers", pa.string()),
    ("request_body", pa.string()), ("status", pa.int32()), ("response_headers", pa.string()), ("response_text", pa.string()),
    ("started_at", _MOMENT), ("ended_at", _MOMENT), ("row_ids", pa.list_(pa.int64()))])


class ApiCallLike(Protocol):
    """One HTTP attempt, secrets and masked values already removed, as `runtime.http.ApiCall` has it."""

    batch_number: int
    attempt: int
    method: str
    url: str
    request_headers: Mapping[str, str]
    request_body: str | None
    status: int | None
    response_headers: Mapping[str, str]
    response_text: str | None
    started_at: datetime
    ended_at: datetime


def folder_of(info: RunInfo) -> str:
    return f"api_calls/{info.organization_id}/{info.sync_id}/{info.run_id}"


def write_calls(store: Store, info: RunInfo, chunk_id: int, calls: Sequence[Any], masker: object = None) -> tuple[str, int]:
    """The file's URL and how many calls it holds. A file left by a process that died is kept, and another one written beside it."""
    data = io.BytesIO()
    pq.write_table(calls_table(calls), data, compression="zstd")
    part = 0
    while True:
        path = f"{folder_of(info)}/{chunk_id}{f'-{part}' if part else ''}.parquet"
        try:
            store.put_new(path, data.getvalue())
            return store.url_of(path), len(calls)
        except AlreadyThere:
            part += 1


def calls_table(calls: Sequence[Any]) -> pa.Table:
    """The calls as Arrow, in the order in which they were made."""
    columns: dict[str, list[Any]] = {name: [] for name in SCHEMA.names}
    for call in calls:
        for name, made in columns.items():
            value = getattr(call, name, None)
            made.append(_plain(value, name))
    return pa.table({n: pa.array(v, SCHEMA.field(n).type) for n, v in columns.items()}, schema=SCHEMA)


def _plain(value: Any, name: str) -> Any:
    if value is None or name == "row_ids":
        return list(value) if value else None
    if isinstance(value, Mapping):
        return orjson.dumps(dict(value)).decode()
    if isinstance(value, bytes):
        return value[:LONGEST_BODY].decode(errors="replace")
    if name in ("request_body", "response_text"):
        return value.encode(errors="replace")[:LONGEST_BODY].decode(errors="ignore")
    return value
