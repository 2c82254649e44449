"""A read of many files, shared out among Spark's tasks and by the one DuckDB of the driver. Usage: python
bench/reads.py [files, default 20] [megabytes of each, 50] [csv or json, default csv] [rounds, 3]

Each round is a process of its own, by turns, on the `local` Spark that SPARK_MASTER says (local[2] without): from the
files to Parquet that Spark reads. What the driver holds is its Python process, in which its DuckDB lives; seconds of a
processor are those of this process, the JVM and Python's workers. The rows of both are counted and summed up.
"""

from __future__ import annotations

import json
import os
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
WAYS = ("driver", "tasks")
#: About the bytes of a row, in either form.
ROW = {"csv": 95, "json": 145}
SELECT = """SELECT range + {first} AS id, 'customer ' || range * 7919 % 1000003 AS name, (range * 31 % 100000) / 100 AS
amount, DATE '2020-01-01' + (range % 2000)::INT AS day, TIMESTAMP '2020-01-01' + INTERVAL (range) SECOND AS seen, range
% 3 = 0 AS active, md5(range::VARCHAR) AS note FROM range({rows})"""


def main(count: int, megabytes: int, kind: str, rounds: int) -> None:
    folder = Path(tempfile.mkdtemp(prefix="bench-reads-"))
    try:
        written(folder / "project", count, megabytes * 1_000_000 // ROW[kind], kind)
        size = sum(file.stat().st_size for file in (folder / "project").iterdir())
        print(f"{count} files, {size / 1e6:.0f} MB of {kind}")
        took: dict[str, list[dict[str, Any]]] = {way: [] for way in WAYS}
        for _ in range(rounds):
            for way in WAYS:
                took[way].append(round_of(folder, way))
                print(way, took[way][-1], flush=True)
        assert len({told["rows"] for all_ in took.values() for told in all_}) == 1
        best = {way: min(told["seconds"] for told in took[way]) for way in WAYS}
        held = {way: max(told["held"] for told in took[way]) for way in WAYS}
        print(
            f"reads: ratio {best['tasks'] / best['driver']:.2f} (tasks {best['tasks']:.1f} s, driver "
            f"{best['driver']:.1f} s), the driver held {held['tasks']} and {held['driver']} MB"
        )
    finally:
        shutil.rmtree(folder)


def written(project: Path, count: int, rows: int, kind: str) -> None:
    import duckdb

    project.mkdir()
    form = "FORMAT csv, HEADER" if kind == "csv" else "FORMAT json"
    for n in range(count):
        rows_of_it = SELECT.format(first=n * rows, rows=rows)
        duckdb.execute(f"COPY ({rows_of_it}) TO '{project}/part_{n:03}.{kind}' ({form})")


def round_of(folder: Path, way: str) -> dict[str, Any]:
    env = {**os.environ, "ONDATRA_DATA_DIR": str(folder / "data")}
    env.setdefault("SPARK_MASTER", "local[2]")
    command = [sys.executable, __file__, "--way", way, str(folder / "project")]
    done = subprocess.run(command, env=env, stdout=subprocess.PIPE, text=True, check=True)
    return dict(json.loads(done.stdout.splitlines()[-1]))


def one(way: str, project: Path) -> None:
    """One round in this process."""
    sys.path.insert(0, str(ROOT))
    from runtime.lake.spark import session
    from runtime.sources import files, spread
    from runtime.sql import translate

    spark = session()
    spark.sparkContext.parallelize([0, 0], 2).map(
        lambda _: bool(__import__("duckdb"))
    ).count()  # workers of Python are there
    (kind,) = {file.suffix for file in project.iterdir()}
    (read,) = translate(f"FROM 'part_*{kind}'", dialect="duckdb", tables={}, project_dir=project).files
    spread.LARGE, spread.THREADS = (sys.maxsize, 2) if way == "driver" else (1, 1)
    before, worked, began = held(), processor(), time.perf_counter()
    frame = files.open_file(spark, read)
    took, worked = time.perf_counter() - began, processor() - worked
    rows = frame.selectExpr("count(*)", "sum(id)", "sum(hash(*))").collect()[0]
    told = {"seconds": round(took, 2), "processor": round(worked, 1), "before": before, "held": held()}
    print(json.dumps({**told, "rows": str(tuple(rows))}))


def held() -> int:
    """Most megabytes that this process held."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024


def processor() -> float:
    """Seconds of a processor of this process and those below it that live."""
    parents, seconds = {}, {}
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = stat.read_text().rpartition(")")[2].split()
        except OSError:
            continue
        parents[int(stat.parent.name)] = int(fields[1])
        seconds[int(stat.parent.name)] = sum(map(int, fields[11:15])) / os.sysconf("SC_CLK_TCK")
    family = {os.getpid()}
    while more := {pid for pid, parent in parents.items() if parent in family} - family:
        family |= more
    return sum(seconds[pid] for pid in family)


if __name__ == "__main__":
    if sys.argv[1:2] == ["--way"]:
        one(sys.argv[2], Path(sys.argv[3]))
    else:
        given = dict(enumerate(sys.argv[1:]))
        main(int(given.get(0, 20)), int(given.get(1, 50)), given.get(2, "csv"), int(given.get(3, 3)))
