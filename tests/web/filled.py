"""A small install for page tests: people, syncs, runs, and record files in a real folder store."""

from __future__ import annotations

import io
from collections import Counter
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import orjson
import pyarrow as pa
import pyarrow.parquet as pq
from django.contrib.auth.models import User
from django.utils import timezone

from ondatra_web.models import (
    ApiCallFile,
    Delivery,
    Membership,
    MessageGroup,
    Organization,
    RecordFile,
    Run,
    Sync,
    Workspace,
)
from runtime.store.base import Store
from runtime.store.opening import open_store
from runtime.tracking.files import _bounds as bounds_of
from runtime.tracking.messages import patterns
from runtime.tracking.requests import SCHEMA as CALL_SCHEMA
from runtime.tracking.schema import SCHEMA

BEGAN = datetime(2026, 1, 15, 6, 0, tzinfo=UTC)


def workspace(name: str = "default") -> Workspace:
    organization, _ = Organization.objects.get_or_create(name=f"org of {name}")
    return Workspace.objects.get_or_create(
        slug=name, defaults={"organization": organization, "project_dir": "/nowhere", "mask_key": "ab" * 32}
    )[0]


def person(name: str, place: Workspace | None, role: str = "admin") -> User:
    user = User.objects.create_user(name, password=f"{name}-password")
    if place:
        Membership.objects.create(user=user, organization=place.organization, role=role)
    return user


def a_sync(place: Workspace, name: str = "sync.aircraft", **fields: Any) -> Sync:
    return Sync.objects.create(
        workspace=place,
        name=name,
        **{
            "kind": "merge",
            "key": ["tailnum"],
            "function": "assets",
            "destination_type": "Assets",
            "destination_object": "Aircraft",
            **fields,
        },
    )


def a_run(sync: Sync, status: str = "completed", *, ago: timedelta = timedelta(hours=1), **fields: Any) -> Run:
    began = timezone.now() - ago
    ended = None if status in ("queued", "working", "canceling") else began + timedelta(seconds=90)
    return Run.objects.create(
        sync=sync, status=status, **{"created_at": began, "started_at": began, "ended_at": ended, **fields}
    )


def closing(
    source: int = 100, *, unchanged: int = 0, invalid: int = 0, rejected: int = 0, retrying: int = 0, not_tried: int = 0
) -> dict[str, int]:
    """Counts that close."""
    changed = source - unchanged - invalid
    return {
        "source_count": source,
        "unchanged": unchanged,
        "invalid": invalid,
        "changed": changed,
        "planned": changed,
        "succeeded": changed - rejected - retrying - not_tried,
        "rejected": rejected,
        "retrying": retrying,
        "not_tried": not_tried,
    }


def record(
    identifier: str | None,
    status: str = "succeeded",
    message: str | None = None,
    outcome: str = "ok",
    *,
    row: int = 0,
    operation: str = "upsert",
    change_type: str | None = "insert",
    payload: dict[str, Any] | None = None,
    previous: dict[str, Any] | None = None,
) -> dict[str, Any]:
    ended = BEGAN + timedelta(milliseconds=row)
    return {
        "identifier": identifier,
        "record_payload": orjson.dumps(payload or {"tailnum": identifier, "seats": 2}).decode(),
        "operation": operation,
        "status": status,
        "status_message": message,
        "batch_started_at": BEGAN,
        "batch_ended_at": ended,
        "sync_configuration_id": "",
        "sync_run_id": "",
        "row_id": row,
        "change_type": change_type,
        "outcome": outcome,
        "attempt": 1,
        "batch_number": 1,
        "previous_payload": None if previous is None else orjson.dumps(previous).decode(),
    }


def put_records(
    run: Run,
    folder: Path,
    rows: list[dict[str, Any]],
    *,
    batch_type: str = "records_updated",
    number: int = 0,
    store: Store | None = None,
    delivery: Delivery | None = None,
) -> None:
    """A record file in the run's store, with the database row and message groups that name it."""
    store = store or open_store(folder.as_uri())
    Run.objects.filter(pk=run.pk).update(store_url=store.url)
    run.store_url = store.url
    rows = [{**r, "sync_configuration_id": str(run.sync_id), "sync_run_id": str(run.pk)} for r in rows]
    folder = f"sync_tracking_datasets/{run.sync.workspace.organization_id}/{run.sync_id}/{run.pk}"
    path = f"{folder}/{batch_type}.{number}.parquet"
    store.put_new(path, parquet(rows))
    known = sorted(r["identifier"] for r in rows if r["identifier"] is not None)
    low, high = bounds_of(known[0], known[-1]) if known else (None, None)
    RecordFile.objects.create(
        run=run,
        delivery=delivery,
        batch_type=batch_type,
        number=number,
        url=store.url_of(path),
        rows=len(rows),
        counts=Counter(r["status"] for r in rows),
        operations=Counter(f"{r['status']}|{r['operation']}|{r['change_type'] or ''}" for r in rows),
        min_identifier=low,
        max_identifier=high,
    )
    for row in rows:
        if row["status_message"]:
            group, made = MessageGroup.objects.get_or_create(
                run=run,
                status=row["status"],
                pattern=patterns(pa.array([row["status_message"]]), pa.array([row["record_payload"]]))[0].as_py(),
                defaults={
                    "rows": 1,
                    "sample_message": row["status_message"],
                    "sample_identifier": row["identifier"],
                    "first_run": run,
                },
            )
            if not made:
                group.rows += 1
                group.save(update_fields=["rows"])


def put_calls(run: Run, folder: Path, calls: list[dict[str, Any]], *, delivery: Delivery | None = None) -> None:
    store = open_store(folder.as_uri())
    folder = f"api_calls/{run.sync.workspace.organization_id}/{run.sync_id}/{run.pk}"
    path = f"{folder}/{delivery.chunk_id if delivery else 1}.parquet"
    told = {
        "batch_number": 1,
        "attempt": 1,
        "method": "POST",
        "url": "http://assets.example/aircraft",
        "request_headers": "{}",
        "request_body": "",
        "status": 201,
        "response_headers": "{}",
        "response_text": "",
        "started_at": BEGAN,
        "ended_at": BEGAN + timedelta(milliseconds=19),
    }
    store.put_new(path, parquet([{**told, **call} for call in calls], CALL_SCHEMA))
    ApiCallFile.objects.create(run=run, delivery=delivery, url=store.url_of(path), calls=len(calls))


def parquet(rows: list[dict[str, Any]], schema: pa.Schema = SCHEMA) -> bytes:
    data = io.BytesIO()
    pq.write_table(pa.Table.from_pylist(rows, schema=schema), data, compression="zstd")
    return data.getvalue()
