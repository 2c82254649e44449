"""Rows per second of delivery (chunk in, records written) in batches. Usage: python bench/deliver.py [--rows 100000]
[--batch 1000]

The default compares one process with a bare loop: both call the seed's batch function over the same rows, server and
HTTP client; the bare loop hands it ready dicts and writes nothing down, ours reads chunk files, records every answer in
the database and writes the record files. `--workers N` compares N push workers (processes) with one and shows their
memory; `--delay 0.05` lets the server wait before each answer, so that it does not compete with them for the processor.
`--against dlt` compares with dlt's custom destination on the same rows and server, in a virtual environment of its own.
`--against unrecorded` says what records cost: deliveries of one staged run by turns with them and without (nothing put
into JSON, no file, no row that names one; answers are committed all the same), `--store s3` with files in a bucket of a
real S3 server instead of a folder.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from statistics import median
from typing import Any

from _delivery import bare_client, check, project, served, staged, staged_rows
from _product import ROOT, in_folder, install

PUSH = """
def push(rows):
    payload = [{k: v for k, v in r.items() if not k.startswith("_")} for r in rows]
    resp = http.post("/api/batch", json=payload)
    if not resp.ok:
        return {str(r["__ondatra_rowid"]) + ":" + r["__ondatra_change_type"]: "error: " + resp.text for r in rows}
    return {str(r["__ondatra_rowid"]) + ":" + r["__ondatra_change_type"]: "ok" for r in rows}
"""
DLT = """
import sys, time
import dlt, orjson, pyarrow.parquet as pq, requests

path, url, batch = sys.argv[1], sys.argv[2], int(sys.argv[3])
session = requests.Session()

@dlt.destination(batch_size=batch, loader_file_format="typed-jsonl",
                 skip_dlt_columns_and_tables=True, naming_convention="direct")
def api(items, table):
    answer = session.post(url + "/api/batch", data=orjson.dumps(items), headers={"Content-Type": "application/json"})
    answer.raise_for_status()

@dlt.resource(name="out")
def rows():
    for part in pq.ParquetFile(path).iter_batches(10_000, columns=["id", "name", "email", "score", "active"]):
        yield part.to_pylist()

pipeline = dlt.pipeline("bench", destination=api, pipelines_dir=sys.argv[4])
pipeline.extract(rows())
pipeline.normalize()
began = time.perf_counter()
pipeline.load(workers=1)
print(time.perf_counter() - began)
"""


def ours(rows: int) -> float:
    """Rows per second from the first claim to the closed run."""
    return rows / delivered(*staged(), rows)[0]


def delivered(walk: Any, run: Any, rows: int) -> tuple[float, float]:
    """Seconds from the first claim to the closed run, and of this process's processor time."""
    from ondatra_web.runs import execution

    began, worked = time.perf_counter(), time.process_time()
    execution.deliver_run(walk, run)
    took = time.perf_counter() - began, time.process_time() - worked
    check(run, rows)
    return took


def bare(url: str, rows: int, batch: int) -> float:
    """Rows per second of the same function and client in a loop over ready dicts."""
    import orjson
    import starlark as sl

    send = bare_client()

    def post(path: str, json: Any = None) -> dict[str, Any]:
        status, body = send(url + path, orjson.dumps(json))
        return {
            "ok": status < 300,
            "status_code": status,
            "text": body.decode(),
            "json": orjson.loads(body),
            "headers": {},
        }

    dialect, built_ins, module = (
        sl.Dialect.extended(),
        sl.Globals.extended_by([sl.LibraryExtension.StructType]),
        sl.Module(),
    )
    module.add_callable("_post", post)
    sl.eval(
        module,
        sl.parse(
            "http", "def _p(url, json=None): return struct(**_post(url, json))\nhttp = struct(post=_p)\n", dialect
        ),
        built_ins,
    )
    sl.eval(module, sl.parse("batch", PUSH, dialect), built_ins)
    frozen = module.freeze()
    given = staged_rows()
    assert len(given) == rows, len(given)
    began = time.perf_counter()
    for start in range(0, rows, batch):
        frozen.call("push", given[start : start + batch])
    return rows / (time.perf_counter() - began)


# what records cost


def unrecorded(rows: int, pairs: int) -> tuple[float, float]:
    """Rows per second with and without records: medians of deliveries of the same staged run, by turns."""
    from unittest import mock

    from runtime.delivery import written

    walk, run = staged()
    took: dict[bool, list[tuple[float, float]]] = {True: [], False: []}
    for i in as_staged(2 * pairs):
        recorded = i % 4 in (0, 3)  # what the machine does meanwhile meets both alike
        nothing: Any = (
            contextlib.nullcontext()
            if recorded
            else mock.patch.multiple(written, batch_types=lambda *_: (), write=lambda *_: ())
        )
        with nothing:
            took[recorded].append(delivered(walk, run, rows))
    for i, what in enumerate(("time", "processor time")):
        pairs_of = [(whole[i], bare[i]) for whole, bare in zip(took[True], took[False])]
        print(f"{what} with / without: {', '.join(f'{whole:.2f} / {bare:.2f} s' for whole, bare in pairs_of)}")
        print(
            f"records: {median(1 - bare / whole for whole, bare in pairs_of):.1%} of the delivery's {what}, "
            f"{median(whole - bare for whole, bare in pairs_of) / rows * 1e6:.2f} µs a row (medians of the pairs)"
        )
    mine, other = (median(rows / took_so for took_so, _ in took[recorded]) for recorded in (True, False))
    return mine, other


def as_staged(times: int) -> Iterator[int]:
    """Counts to `times`, each time with the database as it is now and an empty store."""
    import sqlite3

    from django.conf import settings

    from runtime.store.opening import open_store

    database, store = settings.DATABASES["default"]["NAME"], open_store(settings.ONDATRA.tracking_url)
    with contextlib.closing(sqlite3.connect(database)) as live, contextlib.closing(sqlite3.connect(":memory:")) as kept:
        live.backup(kept)
        for i in range(times):
            kept.backup(live)
            store.delete_prefix("sync_tracking_datasets")
            yield i


@contextlib.contextmanager
def in_bucket(folder: Path) -> Iterator[None]:
    """New runs write their records into a bucket."""
    from dataclasses import replace

    from django.conf import settings

    sys.path.insert(0, str(ROOT / "tests/runtime"))
    import seaweed

    (folder / "s3").mkdir()
    with seaweed.running(folder / "s3") as server:
        os.environ |= server.env
        settings.ONDATRA = replace(settings.ONDATRA, tracking_url=f"s3://{seaweed.BUCKET}/bench")
        yield


# push workers


def worker(run_id: int) -> None:
    """One push worker: gets ready, waits for the word, delivers, says the most memory it took (MB)."""
    import resource

    in_folder(Path(os.environ["ONDATRA_DATA_DIR"]).parent)
    from ondatra_web import jobs, workers
    from ondatra_web.models import Run
    from ondatra_web.runs.walk import prepare

    workers.me("push")
    run = Run.objects.select_related("sync__workspace").get(pk=run_id)
    prepare(run.sync.workspace, [run.sync.name])
    print("ready", flush=True)
    sys.stdin.readline()
    jobs.push.fn(run_id, 1)
    print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024, flush=True)


def by_workers(rows: int, n: int, slug: str = "bench") -> tuple[float, list[int]]:
    """Rows per second of n processes on one run, and each one's most memory in MB."""
    _, run = staged(slug)
    run.__class__.objects.filter(pk=run.pk).update(owner=None)
    processes = [
        subprocess.Popen(
            [sys.executable, __file__, "--worker", str(run.pk)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        for _ in range(n)
    ]
    for process in processes:
        assert process.stdout and process.stdout.readline().strip() == "ready"
    began = time.perf_counter()
    for process in processes:
        assert process.stdin
        process.stdin.write("go\n")
        process.stdin.flush()
    memory = [int((process.communicate()[0]).split()[-1]) for process in processes]
    took = time.perf_counter() - began
    check(run, rows)
    return rows / took, memory


# dlt


def dlt(folder: Path, url: str, batch: int) -> float:
    """Rows per second of the load step of dlt's custom destination (extract and normalize are not counted)."""
    place = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "ondatra-bench/dlt"
    python = place / "bin/python"
    if not python.exists():
        subprocess.run([sys.executable, "-m", "venv", str(place)], check=True)
        subprocess.run([str(python), "-m", "pip", "install", "-q", "dlt", "pyarrow", "orjson", "requests"], check=True)
    import pyarrow as pa
    import pyarrow.parquet as pq

    given = staged_rows()
    pq.write_table(pa.Table.from_pylist(given), folder / "given.parquet")
    told = subprocess.run(
        [str(python), "-c", DLT, str(folder / "given.parquet"), url, str(batch), str(folder / "dlt")],
        check=True,
        text=True,
        stdout=subprocess.PIPE,
        env={**os.environ, "RUNTIME__DLTHUB_TELEMETRY": "false", "DATA_WRITER__DISABLE_COMPRESSION": "true"},
    )
    return len(given) / float(told.stdout.split()[-1])


def compared(told: argparse.Namespace, folder: Path, url: str) -> tuple[float, float, str]:
    """Rows per second of ours and of what it is compared with, and the name of that."""
    project(folder, told.rows, url, PUSH, batch_size=told.batch, max_concurrent=told.workers)
    if told.against == "unrecorded":
        return *unrecorded(told.rows, told.pairs), f"deliver-records-{told.store}"
    if told.workers > 1:
        alone = told.rows // 4  # a quarter is long enough for a rate, and says whether memory grows with the rows
        project(folder, alone, url, PUSH, slug="alone", batch_size=told.batch)
        other, before = by_workers(alone, 1, "alone")
        mine, memory = by_workers(told.rows, told.workers)
        print(
            f"most memory of a worker alone with {alone:,} rows: {before[0]} MB; of each with {told.rows:,}: "
            f"{', '.join(f'{m} MB' for m in memory)}"
        )
        return mine, other, f"deliver-{told.workers}-workers"
    if told.against == "dlt":
        return ours(told.rows), dlt(folder, url, told.batch), "deliver-dlt"
    return ours(told.rows), bare(url, told.rows, told.batch), "deliver"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--rows", type=int, default=100_000)
    parser.add_argument("--batch", type=int, default=1_000)
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--delay", type=float, default=0.0, metavar="SECONDS")
    parser.add_argument("--against", choices=["loop", "dlt", "unrecorded"], default="loop")
    parser.add_argument("--pairs", type=int, default=6, help="of runs with and without records")
    parser.add_argument("--store", choices=["folder", "s3"], default="folder")
    parser.add_argument("--worker", type=int, metavar="RUN", help=argparse.SUPPRESS)
    told = parser.parse_args()
    if told.worker:
        return worker(told.worker)
    folder = install("deliver")
    with served(told.delay) as url, in_bucket(folder) if told.store == "s3" else contextlib.nullcontext():
        mine, other, name = compared(told, folder, url)
    print(f"{name}: ratio {mine / other:.2f} (ours {mine:,.0f} rows/s, other {other:,.0f} rows/s)")


if __name__ == "__main__":
    main()
