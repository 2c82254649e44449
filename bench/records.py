"""Questions about records against plain DuckDB on the same files. Usage: python bench/records.py [--rows 10000000] [--folder DIR]

One run of ROWS records in files of 50,000, one in forty rejected, in the schema of the product. Each question is asked at
the function that the page calls and as the SQL that a person would write over the same list of files, warm, p95 of 20.
Then: writing a chunk's records, an export of everything against DuckDB's COPY, and one identifier's history over 1,000 runs.
The last line has the worst ratio of the questions.
"""
from __future__ import annotations

import argparse
import itertools
import resource
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

import duckdb  # noqa: E402
import pyarrow as pa  # noqa: E402

from runtime import exports, records, tracking  # noqa: E402
from runtime.history import HistoryIndex  # noqa: E402
from runtime.masks import Masker  # noqa: E402
from runtime.model import Column, Model  # noqa: E402
from runtime.records import FileRef, Filter  # noqa: E402
from runtime.store import FolderStore  # noqa: E402

FILE_ROWS = 50_000
TIMES = 20
RECORD = """
SELECT lpad(CAST({i} AS VARCHAR), 10, '0') AS identifier,
       '{{"id":' || {i} || ',"email":"person' || {i} || '@example.com","name":"Person ' || ({i} * 7919) % 100003 || '"}}' AS record_payload,
       'upsert' AS operation, CASE WHEN hash({i}) % 40 = 0 THEN 'rejected' ELSE 'succeeded' END AS status,
       CASE WHEN hash({i}) % 40 = 0 THEN 'contact ' || {i} || ' has the invalid address person' || {i} || '@example.com' END AS status_message,
       TIMESTAMPTZ '2026-01-15 08:00:00Z' + to_seconds({i} // 100) AS batch_started_at,
       TIMESTAMPTZ '2026-01-15 08:00:01Z' + to_seconds({i} // 100) AS batch_ended_at,
       '1' AS sync_configuration_id, '{run}' AS sync_run_id, {i} AS row_id, 'insert' AS change_type,
       CASE WHEN hash({i}) % 40 = 0 THEN 'reject' ELSE 'ok' END AS outcome, 1::INTEGER AS attempt, ({i} // 100)::INTEGER AS batch_number,
       NULL::VARCHAR AS previous_payload
FROM range({start}, {end}) AS t(n)"""


def make(store: FolderStore, rows: int, run: int, *, size: int = FILE_ROWS, offset: int = 0) -> list[FileRef]:
    """The files of one run, as `runtime.tracking` writes them; kept from an earlier bench where they are there."""
    made = []
    with duckdb.connect() as one:
        one.execute("SET TimeZone = 'UTC'")
        for number, start in enumerate(range(offset, offset + rows, size)):
            path = f"sync_tracking_datasets/1/1/{run}/records_updated.{number}.parquet"
            sql = RECORD.format(i="n", run=run, start=start, end=min(start + size, offset + rows))
            table = one.sql(sql).to_arrow_table().cast(tracking.SCHEMA)
            if not store.exists(path):
                place = store.folder / path
                place.parent.mkdir(parents=True, exist_ok=True)
                place.write_bytes(tracking.to_parquet(table))
            told = tracking._described(table.slice(0).set_column(4, "status_message", pa.nulls(len(table), pa.string())), "records_updated", number, "", 0)
            made.append(FileRef(store, path, told.rows, told.counts, told.operations, told.min_identifier, told.max_identifier, run))
    return made


def p95(question: Callable[[], Any]) -> float:
    """Milliseconds, warm."""
    question()
    question()
    took = []
    for _ in range(TIMES):
        began = time.perf_counter()
        question()
        took.append((time.perf_counter() - began) * 1000)
    return sorted(took)[int(TIMES * 0.95) - 1]


def questions(files: list[FileRef]) -> list[tuple[str, float, float]]:
    places = [str(f.store.local(f.path)) for f in files]
    last = places[len(places) // 2]
    plain = duckdb.connect()
    plain.execute("SET parquet_metadata_cache = true")
    middle = f"{sum(f.rows for f in files) // 2:010}"
    page = len(files) // 2 * FILE_ROWS

    def sql(text: str, **values: Any) -> Callable[[], Any]:
        source = {"files": values.pop("files", places)}
        return lambda: plain.cursor().execute(text, {**source, **values}).fetchall()

    everything = "SELECT * FROM read_parquet($files) "
    asked: list[tuple[str, Callable[[], Any], Callable[[], Any]]] = [
        ("first page", lambda: records.page(files), sql(everything + "LIMIT 100")),
        ("first page of rejected", lambda: records.page(files, Filter(status="rejected")), sql(everything + "WHERE status = 'rejected' LIMIT 100")),
        ("page in the middle", lambda: records.page(files, offset=page + 300),
         sql("SELECT * FROM read_parquet($files, file_row_number = true) WHERE file_row_number BETWEEN 300 AND 399", files=[last])),
        ("exact identifier", lambda: records.page(files, Filter(identifier=middle)), sql(everything + "WHERE identifier = $i", i=middle)),
        ("prefix", lambda: records.page(files, Filter(prefix=middle[:8])), sql(everything + "WHERE starts_with(identifier, $i) LIMIT 100", i=middle[:8])),
        ("message without a hit", lambda: records.page(files, Filter(message="no such words")),
         sql(everything + "WHERE status_message ILIKE $i LIMIT 100", i="%no such words%")),
        ("message with hits", lambda: records.page(files, Filter(message="INVALID address")),
         sql(everything + "WHERE status_message ILIKE $i LIMIT 100", i="%INVALID address%")),
    ]
    return [(name, p95(ours), p95(other)) for name, ours, other in asked]


@dataclass(frozen=True)
class Answer:
    kind: str = "ok"
    message: str | None = None


def writing(folder: Path) -> float:
    """Seconds for the records of one chunk, from Python rows to a durable file."""
    model = Model("sync.c", "c.sql", Path("c.sql"), "", 1, kind="merge", key=("id",))
    info = tracking.RunInfo(1, 2, 3, "merge", model, Masker((), "00"), (Column("id", "BIGINT", "bigint"), Column("email", "VARCHAR", "string")))
    rows = [{"id": i, "email": f"person{i}@example.com", "__ondatra_rowid": i, "__ondatra_change_type": "insert"} for i in range(FILE_ROWS)]
    answers = [Answer("reject", f"contact {i} is bad") if i % 40 == 0 else Answer() for i in range(FILE_ROWS)]
    n = FILE_ROWS
    store, numbers, took = FolderStore(folder / "written"), itertools.count(), []
    for digest in range(5):
        batch = tracking.RecordBatch(rows, [True] * n, [str(i) for i in range(n)], answers, [1] * n, [i // 100 + 1 for i in range(n)],
                                     [10**15] * n, [10**15] * n, str(digest), 1)
        began = time.perf_counter()
        tracking.write(store, info, batch, lambda _: next(numbers))
        took.append(time.perf_counter() - began)
    return sorted(took)[2]


def exporting(files: list[FileRef], folder: Path) -> list[tuple[str, float, float]]:
    """Seconds for everything, ours and DuckDB's COPY."""
    places, found = [str(f.store.local(f.path)) for f in files], []
    for format, options in (("parquet", "FORMAT parquet, COMPRESSION zstd"), ("csv", "FORMAT csv, HEADER")):
        began = time.perf_counter()
        with (folder / f"ours.{format}").open("wb") as sink:
            exports.export(files, None, format, sink)  # type: ignore[arg-type]
        ours = time.perf_counter() - began
        began = time.perf_counter()
        with duckdb.connect() as one:
            one.execute(f"COPY (SELECT * FROM read_parquet($files)) TO '{folder}/other.{format}' ({options})", {"files": places})
        found.append((format, ours, time.perf_counter() - began))
        for name in ("ours", "other"):
            (folder / f"{name}.{format}").unlink()
    return found


def history(folder: Path) -> tuple[float, float]:
    """One identifier over 1,000 runs, by the index and by plain DuckDB over the record files."""
    store = FolderStore(folder / "history")
    files = [f for run in range(1, 1001) for f in make(store, 1_000, run)]
    index = HistoryIndex(folder / "index")
    began = time.perf_counter()
    index.refresh(files)
    print(f"history index of 1,000 runs: made in {time.perf_counter() - began:.1f} s")
    places = [str(store.local(f.path)) for f in files]
    plain = duckdb.connect()
    plain.execute("SET parquet_metadata_cache = true")
    return (p95(lambda: index.find(files, ["0000000500"], limit=1000)),
            p95(lambda: plain.cursor().execute("SELECT * FROM read_parquet($f) WHERE identifier = '0000000500'", {"f": places}).fetchall()))


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--rows", type=int, default=10_000_000)
    parser.add_argument("--folder", type=Path)
    given = parser.parse_args()
    folder = given.folder or Path(tempfile.mkdtemp(prefix="bench-records-"))
    began = time.perf_counter()
    files = make(FolderStore(folder / "store"), given.rows, 1)
    print(f"{given.rows:,} records in {len(files)} files, made in {time.perf_counter() - began:.0f} s")
    asked = questions(files)
    for name, ours, other in asked:
        print(f"{name:<24} ours {ours:7.1f} ms   plain DuckDB {other:7.1f} ms   ratio {ours / other:.2f}")
    print(f"{'counts by status':<24} ours {p95(lambda: records.tally(files)):7.1f} ms   without opening a file")
    print(f"{'history over 1,000 runs':<24} " + "ours {:7.1f} ms   plain DuckDB {:7.1f} ms".format(*history(folder)))
    print(f"{'writing 50,000 records':<24} {writing(folder) * 1000:.0f} ms")
    for format, ours, other in exporting(files, folder):
        print(f"{'export to ' + format:<24} ours {ours:7.1f} s    DuckDB's COPY {other:7.1f} s    ratio {ours / other:.2f}")
    print(f"memory: {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024} MB at most")
    name, ours, other = max(asked, key=lambda a: a[1] / a[2])
    print(f"records: ratio {ours / other:.2f} (ours {ours:.1f} ms, other {other:.1f} ms) for {name}, the worst of {len(asked)}")


if __name__ == "__main__":
    main()
