"""What a standalone cluster costs against `local` on the same machine, for the same runs.

Usage: python bench/cluster.py [rows, 5000000] [cores, 2] [rounds, 5]

Both have as many cores: `local[N]`, and a master with two workers that have half of them each, and both read and write
the same folders. A small sync of 1,000 rows and a large one are built, then run with one row in a hundred changed; the
best of these rounds count, for a worker lives long: in the first ones each JVM, of which a cluster has three, still
compiles what it runs. The sessions and executors begin before the first round.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path

from _product import NOTHING, ROOT, install, workspace
from _standalone import all_there, standalone

SMALL = 1_000


def project(folder: Path) -> None:
    for name in ("models/sync", "lib"):
        (folder / name).mkdir(parents=True)
    (folder / "lib/nothing.star").write_text(NOTHING)
    for name in ("small", "large"):
        (folder / f"models/sync/{name}.sql").write_text(
            "-- @kind: merge\n-- @unique_key: id\n-- @sink: nothing\n"
            f"SELECT id, name, n FROM read_parquet('{name}.parquet')\n"
        )


def source(folder: Path, name: str, rows: int, seed: int) -> None:
    """Rows of which one in a hundred has other content with another seed."""
    import duckdb

    duckdb.sql(
        f"COPY (SELECT i AS id, 'name ' || i AS name, CASE WHEN i % 100 = 7 THEN i + {seed} ELSE i END AS n "
        f"FROM range({rows}) t(i)) TO '{folder}/{name}.parquet' (FORMAT parquet)"
    )


def measured(rows: int, rounds: int) -> dict[str, list[float]]:
    """Seconds of the small and of the large sync, by round; the first one builds them."""
    folder = install("cluster")
    there = folder / "project"
    project(there)
    place = workspace(there)
    from ondatra_web.runs import execution
    from runtime.lake import spark

    all_there(spark.isolated())
    took: dict[str, list[float]] = {"small": [], "large": []}
    for number in range(1 + rounds):
        for name, many in (("small", SMALL), ("large", rows)):
            source(there, name, many, number)
        time.sleep(2.1)  # a file modified under 2 s ago counts as changed
        for name, many in (("small", SMALL), ("large", rows)):
            begun = time.monotonic()
            walk = execution.run_here(place, [f"sync.{name}"], {"baseline": True} if number == 0 else {})
            took[name].append(time.monotonic() - begun)
            sent = [run.counts.get("succeeded") for run in walk.runs.values()]
            assert number == 0 or sent == [many // 100], (name, sent)
    return took


def apart(told: Mapping[str, str], rows: int, rounds: int) -> dict[str, list[float]]:
    """The same in a process of its own, as a Spark session lives as long as its process."""
    done = subprocess.run(
        [sys.executable, __file__, "--measure", str(rows), str(rounds)],
        env={"SPARK_DRIVER_MEMORY": "4g", **os.environ, **told},
        cwd=ROOT,
        check=True,
        stdout=subprocess.PIPE,
        text=True,
    )
    return dict(json.loads(done.stdout.splitlines()[-1]))


def seconds(name: str, took: Mapping[str, list[float]]) -> float:
    """What counts of one side, and says it."""
    total = 0.0
    for sync, (first, *later) in took.items():
        print(f"{name}, {sync}: first build {first:.1f} s, later {' '.join(f'{s:.1f}' for s in later)} s")
        total += min(later)
    return total


def main(rows: int, cores: int, rounds: int) -> None:
    local = seconds("local", apart({"SPARK_MASTER": f"local[{cores}]"}, rows, rounds))
    with standalone(cores) as there:
        cluster = seconds("cluster", apart(there, rows, rounds))
    print(f"cluster: ratio {cluster / local:.2f} (cluster {cluster:.1f} s, local {local:.1f} s)")


if __name__ == "__main__":
    if sys.argv[1:2] == ["--measure"]:
        print(json.dumps(measured(*map(int, sys.argv[2:]))))
    else:
        given = [int(a) for a in sys.argv[1:]]
        main(*(given + [5_000_000, 2, 5][len(given) :]))
