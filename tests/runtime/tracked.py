"""Rows, answers and runs for the tests of record files."""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import pyarrow.parquet as pq

from runtime.custody.masks import Masker
from runtime.model import Column, Model
from runtime.push.http.calls import ApiCall
from runtime.tracking import files as tracking
from runtime.tracking.info import Places, RunInfo
from runtime.tracking.rows import RecordBatch

COLUMNS = (Column("id", "BIGINT", "bigint"), Column("email", "VARCHAR", "string"))
START, END = datetime(2026, 1, 15, 8, 9, 10, tzinfo=UTC), datetime(2026, 1, 15, 8, 9, 11, 123456, tzinfo=UTC)


@dataclass(frozen=True)
class Answer:
    kind: str = "ok"
    message: str | None = None


def micros(moment):
    return round(moment.timestamp() * 1_000_000)


def info(kind="merge", key=("id",), masks=(), columns=COLUMNS, **fields):
    model = Model(
        "sync.contacts",
        "models/sync/contacts.sql",
        Path("models/sync/contacts.sql"),
        "",
        1,
        kind=kind,
        key=key,
        masks=tuple(masks),
        **fields,
    )
    return RunInfo(
        1,
        2,
        3,
        kind,
        model,
        Masker(masks, "ab" * 32),
        columns,
        Places(
            workspace_id=7,
            sync_name="sync.contacts",
            source_id=7,
            source_object_id=2,
            destination_type="HubSpot",
            destination_id=8,
            destination_object_id=9,
            started_at=START,
        ),
    )


def row(id, email, change="insert", rowid=None):
    return {"id": id, "email": email, "__ondatra_rowid": rowid or id, "__ondatra_change_type": change}


def batch(rows, answers=None, records=None, keys=None, digest="d1", calls=None):
    n = len(rows)
    return RecordBatch(
        rows,
        records or [True] * n,
        keys or [None if r["id"] is None else str(r["id"]) for r in rows],
        [a.kind for a in answers or [Answer()] * n],
        [1] * n,
        calls or [1] * n,
        [micros(START)] * n,
        [micros(END)] * n,
        digest,
        11,
        {i: a.message for i, a in enumerate(answers or ()) if a.message},
    )


def counter():
    numbers: dict[str, itertools.count] = {}
    return lambda kind: next(numbers.setdefault(kind, itertools.count()))


def written(store, run, made):
    files = tracking.write(store, run, made, counter())
    return files, [
        r for f in files for r in pq.read_table(store.local(store.path_of(f.path)), partitioning=None).to_pylist()
    ]


def told(rows, *names):
    return [tuple(r[n] for n in names) for r in rows]


def call(number, body, url="https://x/push", rows=None, response="fine"):
    return ApiCall(number, 1, "POST", url, {"x-app": "ada@example.com"}, body, 200, {}, response, START, END, rows)
