"""Questions about records against plain DuckDB on the same files. Usage: python bench/records.py [--rows 10000000]
[--folder DIR] [--part P]

One run of ROWS records in files of 50,000, one in forty rejected, in the schema of the product; the database knows each
file. Each question is asked at the function that the page calls and as the SQL that a person would write over the same
list of files, warm and by turns, p95 of 20. Then: what the database alone answers, one identifier's history over 1,000
runs, an export of everything against DuckDB's COPY, by turns, the best of three. Last the first page of a run in a
bucket of an S3 server on this machine (SeaweedFS), where nothing of the run was read before, in a new process that is
ready as a server is once it has started, and in one that is not. `--part questions`, `exports` and `bucket` leave the
rest out; `--folder` keeps the record files for the next bench.

The last line is `records: ratio R`: the worst of what was seen over its limit, so that 1 or less is met. The limits are
1.15 of plain DuckDB for a message without a hit, page 5,000, the count of a message, and exports; 1.3 for a search in
payloads; for the other questions and histories plain DuckDB's own time, or what a page may take at all (50 ms); 300 ms
for the first page in a bucket.
"""

from __future__ import annotations

import argparse
import os
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))
#: A process of the bench's own that asks for one page of a run, see `first_page`.
ALONE = "--first-page"
os.environ["DJANGO_SETTINGS_MODULE"] = "ondatra_web.settings"
if ALONE not in sys.argv:
    os.environ["ONDATRA_DATA_DIR"] = tempfile.mkdtemp(prefix="bench-records-data-")

import django  # noqa: E402

django.setup()

import duckdb  # noqa: E402
from _records import FILE_ROWS, known, make  # noqa: E402
from django.core.management import call_command  # noqa: E402

from ondatra_web.models import MessageGroup, Organization, Run, Sync, Workspace  # noqa: E402
from ondatra_web.tracking import history as histories  # noqa: E402
from ondatra_web.tracking import records as product  # noqa: E402
from runtime.records import exports, query  # noqa: E402
from runtime.records.filter import FileRef, Filter  # noqa: E402
from runtime.store.folder import FolderStore  # noqa: E402
from runtime.store.opening import open_store  # noqa: E402

TIMES = 20
#: Of plain DuckDB's time; whatever has no limit of its own may take as long as DuckDB, or this many milliseconds.
LIMITS = {
    "message without a hit": 1.15,
    "page 5,000": 1.15,
    "count of a message": 1.15,
    "search in payloads": 1.3,
    "search in payloads, hit": 1.3,
    "export to parquet": 1.15,
    "export to csv": 1.15,
}
SOON = 50
#: Milliseconds of the first page of a run in a bucket.
FIRST_PAGE = 300


def p95(*asked: Callable[[], Any]) -> list[float]:
    """Milliseconds of each, warm. They take turns, so that whatever else the machine does falls on all of them."""
    took: list[list[float]] = [[] for _ in asked]
    for turn in range(TIMES + 2):
        for question, times in zip(asked, took, strict=True):
            began = time.perf_counter()
            question()
            if turn >= 2:
                times.append((time.perf_counter() - began) * 1000)
    return [sorted(times)[int(TIMES * 0.95) - 1] for times in took]


def questions(files: list[FileRef]) -> list[tuple[str, float, float]]:
    places = [str(f.store.local(f.path)) for f in files]
    plain = duckdb.connect()
    plain.execute("SET parquet_metadata_cache = true")
    middle = f"{sum(f.rows for f in files) // 2:010}"
    offset = min(5_000 * 100, sum(f.rows for f in files) // 2) + 300

    def sql(text: str, **values: Any) -> Callable[[], Any]:
        source = {"files": values.pop("files", places)}
        return lambda: plain.cursor().execute(text, {**source, **values}).fetchall()

    def page(filter: Filter | None = None, **more: Any) -> Callable[[], Any]:
        return lambda: query.page(files, filter, **more)

    everything, counted = "SELECT * FROM read_parquet($files) ", "SELECT count(*) FROM read_parquet($files) "
    asked: list[tuple[str, Callable[[], Any], Callable[[], Any]]] = [
        ("first page", page(), sql(everything + "LIMIT 100")),
        (
            "first page of rejected",
            page(Filter(status="rejected")),
            sql(everything + "WHERE status = 'rejected' LIMIT 100"),
        ),
        (
            "page 5,000",
            page(offset=offset),
            sql(
                "SELECT * FROM read_parquet($files, file_row_number = true) WHERE file_row_number BETWEEN $a AND $a + "
                "99",
                files=[places[offset // FILE_ROWS]],
                a=offset % FILE_ROWS,
            ),
        ),
        ("exact identifier", page(Filter(identifier=middle)), sql(everything + "WHERE identifier = $i", i=middle)),
        (
            "prefix",
            page(Filter(prefix=middle[:8])),
            sql(everything + "WHERE starts_with(identifier, $i) LIMIT 100", i=middle[:8]),
        ),
        (
            "message without a hit",
            page(Filter(message="no such words")),
            sql(everything + "WHERE status_message ILIKE $i LIMIT 100", i="%no such words%"),
        ),
        (
            "message with hits",
            page(Filter(message="INVALID address")),
            sql(everything + "WHERE status_message ILIKE $i LIMIT 100", i="%INVALID address%"),
        ),
        (
            "count of a message",
            lambda: query.count(files, Filter(message="INVALID address")),
            sql(counted + "WHERE status_message ILIKE $i", i="%INVALID address%"),
        ),
        (
            "search in payloads",
            page(Filter(text="No Such Words", within="payload", how="anywhere")),
            sql(everything + "WHERE record_payload LIKE $i LIMIT 100", i="%no such words%"),
        ),
        (
            "search in payloads, hit",
            page(Filter(text=f"PERSON{int(middle)}@", within="payload", how="anywhere")),
            sql(everything + "WHERE record_payload LIKE $i LIMIT 100", i=f"%person{int(middle)}@%"),
        ),
        (
            "count of a prefix",
            lambda: query.count(files, Filter(prefix=middle[:8])),
            sql(counted + "WHERE starts_with(identifier, $i)", i=middle[:8]),
        ),
    ]
    return [(name, *p95(ours, other)) for name, ours, other in asked]


def counts(run: Run) -> Any:
    """What the window shows before it opens a file."""
    return query.tally(product.files_of(run)), list(MessageGroup.objects.filter(run=run).order_by("-rows")[:100])


def exporting(files: list[FileRef], folder: Path) -> tuple[list[tuple[str, float, float]], int]:
    """Seconds for everything, ours and DuckDB's COPY; and the memory at most while ours went on, in MB."""
    places = [str(f.store.local(f.path)) for f in files]
    wanted = {"parquet": "FORMAT parquet, COMPRESSION zstd", "csv": "FORMAT csv, HEADER"}
    most = 0

    def ours(format: Any) -> None:
        with (folder / f"ours.{format}").open("wb") as sink:
            exports.export(files, None, format, sink)

    def copy(format: str) -> None:
        with duckdb.connect() as one:
            told = f"TO '{folder}/other.{format}' ({wanted[format]})"
            one.execute(f"COPY (SELECT * FROM read_parquet($files)) {told}", {"files": places})

    found = []
    for format in wanted:
        took: dict[Any, list[float]] = {ours: [], copy: []}
        for turn in range(3):
            for way, times in took.items():
                began = time.perf_counter()
                way(format)
                times.append(time.perf_counter() - began)
                if not turn and way is ours:
                    most = most or resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
        for place in folder.glob(f"*.{format}"):
            place.unlink()
        found.append((f"export to {format}", min(took[ours]), min(took[copy])))
    return found, most


def bucket(folder: Path, sync: Sync) -> list[tuple[str, float]]:
    """Milliseconds of the first page of a run of a million records in a bucket, by how ready the process is; the median
    of five new processes each, over a server of this machine."""
    sys.path.insert(0, str(ROOT / "tests" / "runtime"))
    import seaweed

    place = Path(tempfile.mkdtemp(prefix="bench-records-s3-"))
    with seaweed.running(place) as server:
        os.environ |= server.env
        store = open_store(f"s3://{seaweed.BUCKET}/bench")
        files = make(FolderStore(folder / "store"), 1_000_000, 1)
        kept = []
        for run in (5_001, 5_002):  # another run's page comes first where the process is ready
            for file in files:
                path = file.path.replace("/1/1/1/", f"/1/{sync.pk}/{run}/")
                store.put_new(path, file.store.local(file.path).read_bytes())
                kept.append(replace(file, store=store, path=path, run_id=run))
        known(sync, kept)
        Run.objects.filter(pk__gt=5_000).update(planned=1_000_000)
        return [(name, _median(how)) for name, how in (("ready", "ready"), ("not ready", "new"))]


def _median(how: str) -> float:
    found = []
    for _ in range(5):
        shutil.rmtree(Path(os.environ["ONDATRA_DATA_DIR"]) / "cache", ignore_errors=True)
        command = [sys.executable, __file__, ALONE, how]
        found.append(float(subprocess.run(command, capture_output=True, text=True, check=True).stdout.split()[-1]))
    return sorted(found)[2]


def first_page(how: str) -> None:
    """Says the milliseconds of the first page of run 5002, with all that the page asks for of its records."""
    run = Run.objects.select_related("sync__workspace", "bucket").get(pk=5_002)
    if how == "ready":
        product.records_of(Run.objects.select_related("sync__workspace", "bucket").get(pk=5_001))
    began = time.perf_counter()
    assert len(product.records_of(run).rows) == 100
    print((time.perf_counter() - began) * 1000)


def history(sync: Sync, folder: Path) -> list[float]:
    """One identifier over 1,000 runs, by the index and by plain DuckDB over the record files."""
    store = FolderStore(folder / "history")
    files = [f for run in range(2, 1002) for f in make(store, 1_000, run, sync=sync.pk)]
    known(sync, files)
    began = time.perf_counter()
    histories.refresh(sync.workspace.organization)
    print(f"history index of 1,000 runs: made in {time.perf_counter() - began:.1f} s")
    places = [str(store.local(f.path)) for f in files]
    plain = duckdb.connect()
    plain.execute("SET parquet_metadata_cache = true")
    assert len(histories.history_of(sync, "0000000500", limit=1000)) == 1000
    return p95(
        lambda: histories.history_of(sync, "0000000500"),
        lambda: (
            plain.cursor()
            .execute("SELECT * FROM read_parquet($f) WHERE identifier = '0000000500'", {"f": places})
            .fetchall()
        ),
    )


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--rows", type=int, default=10_000_000)
    parser.add_argument("--folder", type=Path)
    parser.add_argument("--part", choices=("questions", "exports", "bucket"))
    parser.add_argument(ALONE, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.first_page:
        first_page(given.first_page)
        return

    folder = given.folder or Path(tempfile.mkdtemp(prefix="bench-records-"))
    call_command("migrate", verbosity=0)
    workspace = Workspace.objects.create(
        organization=Organization.objects.first(), slug="bench", project_dir=str(folder), mask_key="00" * 32
    )
    sync, other, third = (Sync.objects.create(workspace=workspace, name=f"sync.{n}", kind="merge") for n in "cde")
    parts = (given.part,) if given.part else ("questions", "exports", "bucket")
    over: dict[str, float] = {}

    if "questions" in parts or "exports" in parts:
        began = time.perf_counter()
        files = make(FolderStore(folder / "store"), given.rows, 1)
        known(sync, files)
        print(f"{given.rows:,} records in {len(files)} files, made in {time.perf_counter() - began:.0f} s")
    if "questions" in parts:
        over |= asked_of(Run.objects.select_related("sync__workspace").get(pk=1), other, folder)
    if "exports" in parts:
        over |= exports_of(files, folder)
    if "bucket" in parts:
        for name, took in bucket(folder, third):
            over[f"first page in a bucket, {name}"] = took / FIRST_PAGE
            print(f"{f'first page, {name}':<24} ours {took:7.1f} ms   of a run in a bucket that was not read before")

    worst = max(over, key=lambda name: over[name])
    print(f"records: ratio {over[worst]:.2f} (over its limit, {worst}, the worst of {len(over)})")


def asked_of(run: Run, other: Sync, folder: Path) -> dict[str, float]:
    """By question its time over its limit."""
    MessageGroup.objects.bulk_create(
        MessageGroup(
            run=run, status="rejected", pattern=f"reason {n} of ‹n›", sample_message=f"reason {n} of 7", rows=n
        )
        for n in range(1_000)
    )
    over = {}
    for name, ours, plain in questions(product.files_of(run)):
        over[name] = _over(name, ours, plain)
        print(f"{name:<24} ours {ours:7.1f} ms   plain DuckDB {plain:7.1f} ms   ratio {ours / plain:.2f}", flush=True)
    print(f"{'files that the run has':<24} ours {p95(lambda: product.files_of(run))[0]:7.1f} ms   of the database")
    print(f"{'counts, message groups':<24} ours {p95(lambda: counts(run))[0]:7.1f} ms   without opening a file")

    ours, plain = history(other, folder)
    over["history over 1,000 runs"] = _over("history", ours, plain)
    print(f"{'history over 1,000 runs':<24} ours {ours:7.1f} ms   plain DuckDB {plain:7.1f} ms", flush=True)
    return over


def _over(name: str, ours: float, plain: float) -> float:
    return ours / (LIMITS[name] * plain) if name in LIMITS else ours / max(plain, SOON)


def exports_of(files: list[FileRef], folder: Path) -> dict[str, float]:
    """The same of exports."""
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
    exported, most = exporting(files, folder)
    for name, took, copy in exported:
        print(f"{name:<24} ours {took:7.1f} s    DuckDB's COPY {copy:7.1f} s    ratio {took / copy:.2f}", flush=True)
    print(f"memory: {before} MB at most before the exports, {most} MB with the first")
    return {name: took / copy / LIMITS[name] for name, took, copy in exported}


if __name__ == "__main__":
    main()
