"""The record files that bench/records.py asks about, in the schema of the product, and the database's rows of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import duckdb
import pyarrow as pa

from runtime.records.filter import FileRef
from runtime.store.folder import FolderStore
from runtime.tracking import files as tracking
from runtime.tracking.schema import SCHEMA

FILE_ROWS = 50_000
#: The n-th record of a run.
RECORD = """
SELECT lpad(CAST({i} AS VARCHAR), 10, '0') AS identifier,
       '{{"id":' || {i} || ',"email":"person' || {i} || '@example.com","name":"Person '
            || ({i} * 7919) % 100003 || '"}}' AS record_payload,
       'upsert' AS operation, CASE WHEN hash({i}) % 40 = 0 THEN 'rejected' ELSE 'succeeded' END AS status,
       CASE WHEN hash({i}) % 40 = 0
            THEN 'contact ' || {i} || ' has the invalid address person' || {i} || '@example.com' END AS status_message,
       TIMESTAMPTZ '2026-01-15 08:00:00Z' + to_seconds({i} // 100) AS batch_started_at,
       TIMESTAMPTZ '2026-01-15 08:00:01Z' + to_seconds({i} // 100) AS batch_ended_at,
       '{sync}' AS sync_configuration_id, '{run}' AS sync_run_id, {i} AS row_id, 'insert' AS change_type,
       CASE WHEN hash({i}) % 40 = 0 THEN 'reject' ELSE 'ok' END AS outcome,
        1::INTEGER AS attempt, ({i} // 100)::INTEGER AS batch_number,
       NULL::VARCHAR AS previous_payload
FROM range({start}, {end}) AS t(n)"""


def make(
    store: FolderStore, rows: int, run: int, *, size: int = FILE_ROWS, offset: int = 0, sync: int = 1
) -> list[FileRef]:
    """The files of one run, as `runtime.tracking.files` writes them; kept from an earlier bench where they are
    there."""
    made = []
    with duckdb.connect() as one:
        one.execute("SET TimeZone = 'UTC'")
        for number, start in enumerate(range(offset, offset + rows, size)):
            path = f"sync_tracking_datasets/1/{sync}/{run}/records_updated.{number}.parquet"
            sql = RECORD.format(i="n", sync=sync, run=run, start=start, end=min(start + size, offset + rows))
            table = one.sql(sql).to_arrow_table().cast(SCHEMA)
            if not store.exists(path):
                place = store.folder / path
                place.parent.mkdir(parents=True, exist_ok=True)
                place.write_bytes(tracking.to_parquet(table))
            told = tracking._described(
                table.slice(0).set_column(4, "status_message", pa.nulls(len(table), pa.string())),
                "records_updated",
                number,
                "",
                0,
                None,
            )
            made.append(
                FileRef(
                    store, path, told.rows, told.counts, told.operations, told.min_identifier, told.max_identifier, run
                )
            )
    return made


def known(sync: Any, files: Sequence[FileRef]) -> None:
    """The database learns of the files what it learns when a run writes them."""
    from ondatra_web.models import RecordFile, Run

    runs = {f.run_id for f in files}
    Run.objects.bulk_create(
        Run(pk=n, sync=sync, status="completed", store_url=files[0].store.url_of("").rstrip("/"), tracking="written")
        for n in runs
    )
    RecordFile.objects.bulk_create(
        RecordFile(
            run_id=f.run_id,
            batch_type="records_updated",
            number=int(f.name.split(".")[1]),
            url=f.store.url_of(f.path),
            rows=f.rows,
            counts=f.counts,
            operations=f.operations,
            min_identifier=f.min_identifier,
            max_identifier=f.max_identifier,
        )
        for f in files
    )
