"""Requests and answers of one chunk, kept apart from the record files: `api_calls/ORG/SYNC/RUN/[chunk].parquet`."""

from __future__ import annotations

import io
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

import orjson
import pyarrow as pa
import pyarrow.parquet as pq

from runtime.custody.masks import Masker, Scrubber
from runtime.errors import StoreError
from runtime.store.base import AlreadyThere, Store

if TYPE_CHECKING:
    from runtime.push.http.calls import ApiCall
    from runtime.tracking.info import RunInfo

#: Bodies are cut to this many bytes.
LONGEST_BODY = 64 * 1024
_MOMENT = pa.timestamp("us", tz="UTC")
SCHEMA = pa.schema(
    [
        ("batch_number", pa.int32()),
        ("attempt", pa.int32()),
        ("method", pa.string()),
        ("url", pa.string()),
        ("request_headers", pa.string()),
        ("request_body", pa.string()),
        ("status", pa.int32()),
        ("response_headers", pa.string()),
        ("response_text", pa.string()),
        ("started_at", _MOMENT),
        ("ended_at", _MOMENT),
        ("rows", pa.list_(pa.string())),
    ]
)


def folder_of(info: RunInfo) -> str:
    return f"api_calls/{info.organization_id}/{info.sync_id}/{info.run_id}"


def to_parquet(calls: Sequence[ApiCall]) -> bytes:
    """The file of some calls, in the order in which they were made; masked values should be gone by now."""
    data = io.BytesIO()
    pq.write_table(calls_table(calls), data, compression="zstd")
    return data.getvalue()


def put(store: Store, info: RunInfo, chunk_id: int, data: bytes) -> tuple[str, int]:
    """The new file's URL and how many calls it holds. A file that a dead process left is kept, and another one written
    beside it."""
    calls, part = pq.read_metadata(io.BytesIO(data)).num_rows, 0
    while True:
        path = f"{folder_of(info)}/{chunk_id}{f'-{part}' if part else ''}.parquet"
        try:
            store.put_new(path, data)
            return store.url_of(path), calls
        except AlreadyThere:
            part += 1


def masked(
    calls: Sequence[ApiCall], masker: Masker, rows: Sequence[Mapping[str, Any] | None], batch_numbers: Sequence[int]
) -> Sequence[ApiCall]:
    """The calls without the masked values of the rows that they were about."""
    if not masker or not rows:
        return calls
    about: dict[int, list[Mapping[str, Any]]] = {call.batch_number: [] for call in calls}
    for row, number in zip(rows, batch_numbers, strict=True):
        if row is not None and int(number) in about:
            about[int(number)].append(row)
    scrubbers = {number: masker.scrubber(found) for number, found in about.items()}
    return [_masked(call, scrubbers[call.batch_number]) for call in calls]


def _masked(call: ApiCall, scrub: Scrubber) -> ApiCall:
    def headers(given: Mapping[str, str]) -> dict[str, str]:
        return {name: scrub(value) for name, value in given.items()}

    def body(text: str | None) -> str | None:
        return None if text is None else scrub(text, cut=len(text.encode(errors="replace")) >= LONGEST_BODY - 4)

    return replace(
        call,
        url=scrub(call.url),
        request_headers=headers(call.request_headers),
        request_body=body(call.request_body),
        response_headers=headers(call.response_headers),
        response_text=body(call.response_text) or "",
    )


def calls_table(calls: Sequence[ApiCall]) -> pa.Table:
    """The calls as Arrow, in the order in which they were made."""

    def column(name: str) -> pa.Array:
        return pa.array([_plain(getattr(call, name), name) for call in calls], SCHEMA.field(name).type)

    return pa.table([column(name) for name in SCHEMA.names], schema=SCHEMA)


def _plain(value: Any, name: str) -> Any:
    if isinstance(value, Mapping):
        return orjson.dumps(dict(value)).decode()
    if isinstance(value, tuple):
        return list(value)
    if name in ("request_body", "response_text") and value is not None:
        return value.encode(errors="replace")[:LONGEST_BODY].decode(errors="ignore")
    return value


def calls_of(places: Sequence[Path], record: Mapping[str, Any], *, most: int = 50) -> list[dict[str, Any]]:
    """The calls that were about a record: those tied to its row, else those of its push call that name its identifier,
    else all of that call."""
    of_batch: list[dict[str, Any]] = []
    damaged = []
    for place in places:
        try:
            of_batch += pq.read_table(
                place, columns=SCHEMA.names, partitioning=None, filters=[("batch_number", "=", record["batch_number"])]
            ).to_pylist()
        except (pa.ArrowException, OSError, KeyError) as error:
            damaged.append(f"{place.name} cannot be read: {str(error).splitlines()[0][:200]}")
    if damaged and not of_batch:
        raise StoreError("the requests of this record: " + "; ".join(damaged[:3]))
    row, identifier = f"{record['row_id']}:{record['change_type']}", record["identifier"]
    tied = [c for c in of_batch if row in (c["rows"] or ())]
    if not tied and identifier:
        tied = [c for c in of_batch if c["rows"] is None and _names(c, identifier)]
    return (tied or [c for c in of_batch if c["rows"] is None])[:most]


def _names(call: Mapping[str, Any], identifier: str) -> bool:
    """Whether the identifier stands in the URL or the body, as a word of its own."""
    word = re.compile(rf"(?<!\w){re.escape(identifier)}(?!\w)")
    return bool(word.search(unquote(call["url"])) or word.search(call["request_body"] or ""))
