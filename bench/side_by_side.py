"""Independent syncs built and staged one after another and side by side. Usage: python bench/side_by_side.py [syncs, 4]
[rows of each, 20000] [builds, 2]

Each sync is a merge of a Parquet file of its own, of which 1 % changed since the last round; rounds of both kinds take
turns in one process.
"""

from __future__ import annotations

import dataclasses
import shutil
import sys
import time
from pathlib import Path
from statistics import median

from _product import NOTHING, install, workspace

ROUNDS = 3


def project(folder: Path, syncs: int) -> None:
    for name in ("models/sync", "lib"):
        (folder / name).mkdir(parents=True)
    (folder / "lib/nothing.star").write_text(NOTHING)
    for i in range(syncs):
        (folder / f"models/sync/s{i}.sql").write_text(
            f"-- @kind: merge\n-- @unique_key: id\n-- @sink: nothing\nSELECT id, name, n FROM "
            f"read_parquet('rows{i}.parquet')\n"
        )


def write(folder: Path, syncs: int, rows: int, round_: int) -> None:
    import duckdb

    for i in range(syncs):
        duckdb.execute(
            f"COPY (SELECT range AS id, 'name ' || range AS name, CASE WHEN range % 100 = {round_} THEN {round_} ELSE "
            f"0 END AS n "
            f"FROM range({rows})) TO '{folder}/rows{i}.parquet'"
        )


def main(syncs: int, rows: int, builds: int) -> None:
    folder = install("side-by-side")
    project(folder / "project", syncs)
    bench = workspace(folder / "project")

    from django.conf import settings

    from ondatra_web.runs import execution
    from ondatra_web.runs.walk import prepare
    from runtime.lake import spark

    took: dict[int, list[float]] = {1: [], builds: []}
    for round_ in range(2 * ROUNDS + 2):  # the first builds all tables, the second warms the engine up
        write(folder / "project", syncs, rows, round_)
        most = (1, builds)[round_ % 2]
        settings.ONDATRA = dataclasses.replace(settings.ONDATRA, builds=most)
        walk = prepare(bench)
        began = time.perf_counter()
        execution.run_line(walk, {}, trigger="command")
        wall = time.perf_counter() - began
        print(f"round {round_}, {most} at once: {wall:.2f} s", file=sys.stderr)
        if round_ > 1:
            took[most].append(wall)
        assert {r.action for r in walk.results.values()} == {"built"}
        for run in walk.runs.values():
            execution.deliver_run(walk, run)
    machine = spark.session()._jvm.java.lang.management.ManagementFactory.getMemoryPoolMXBeans()
    peak = sum(pool.getPeakUsage().getUsed() for pool in machine if "Old Gen" in pool.getName())
    print(
        f"{syncs} syncs of {rows} rows, rounds in s: one {[round(t, 2) for t in took[1]]}, {builds} "
        f"{[round(t, 2) for t in took[builds]]}; "
        f"old generation {peak >> 20} MB at most"
    )
    ours, other = median(took[builds]), median(took[1])
    shutil.rmtree(folder)
    print(f"side_by_side: ratio {other / ours:.2f} (ours {ours:.2f} s, other {other:.2f} s)")


if __name__ == "__main__":
    main(*(int(a) for a in sys.argv[1:] + ["4", "20000", "2"][len(sys.argv) - 1 :]))
