"""Finding what changed in a merge of six columns, against a plain MERGE. Usage: python bench/detect.py [rows, default
5000000] [changed|unchanged|vectors], or: python bench/detect.py sizes [rows ..., default 5000000 20000000 50000000],
or: python bench/detect.py ways [rows, default 5000000]

Ours goes from the start of the build to the written chunk files; the other side is `MERGE … WHEN MATCHED AND hash
differs`, then its change feed read once, on a table as Delta makes it by default, or with `vectors` one that has
deletion vectors. `unchanged` is a rewritten source with the same rows, against one bare scan that hashes them. Both
work on the same source files, in one process, on local[2], after a smaller round of the same; by turns, eight rounds of
other changes, of which the best counts: a worker lives long, and in the first rounds either side still waits for the
JVM to compile what it runs.

`sizes` is our side alone at each of these sizes, one after the other, on a standalone Spark of this machine with two
executors of one core and 3 GB: what is measured of memory is the driver's alone, whose heap is the least that there is
by default. Three rounds each, of which the best counts. At no size may the driver hold more than a quarter beyond that
heap.

`ways` finds and stages the same changes by the filter of a table's hashes, by a join of hashes, as for a table that is
too large for one, and by a join of both sides, by turns in one process.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Any
from unittest.mock import patch

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))
os.environ.setdefault("SPARK_MASTER", "local[2]")

from runtime import kinds  # noqa: E402
from runtime.kinds.sieve import filters, find  # noqa: E402
from runtime.lake.spark import session  # noqa: E402
from runtime.lake.table import LakeTable  # noqa: E402
from runtime.model import Model  # noqa: E402
from runtime.staging.request import StageRequest  # noqa: E402
from runtime.staging.stage import stage  # noqa: E402

COLUMNS = ("id", "name", "amount", "day", "seen", "active")
#: One row in a hundred has another name when `changed` is 1.
SOURCE = """SELECT id, concat('customer ', id * 7919 % 1000003, if(id % 100 = 7, '{mark}', '')) AS name,
    CAST(id * 31 % 100000 AS DECIMAL(12, 2)) / 100 AS amount,
    date_add(DATE'2020-01-01', CAST(id % 2000 AS INT)) AS day,
    timestamp_micros(1600000000000000 + id * 1000003) AS seen, id % 3 = 0 AS active
    FROM range(0, {rows}, 1, 4)"""
#: Rows of the round that warms both sides; enough that ours goes the way of a large table.
WARM = 600_000
ROUNDS, ROUNDS_OF_SIZES = 8, 3
SIZES = (5_000_000, 20_000_000, 50_000_000)
#: MiB of the driver's heap, and of all that it may hold whatever the rows.
LEAST_HEAP, MOST_HELD = 1_800, 2_250
#: How changes are found, and what makes a build do so.
WAYS: dict[str, Callable[[], AbstractContextManager[object]]] = {
    "filter": nullcontext,
    "hashes": lambda: patch.object(filters, "MOST_ROWS", 0),
    "join": lambda: patch.object(find, "find", lambda build: None),
}
HASH = "xxhash64(name, amount, day, seen, active)"


class Bench:
    def __init__(self, folder: Path) -> None:
        self.folder, self.spark = folder, session()

    def source(self, name: str, rows: int, mark: str = "") -> Any:
        path = str(self.folder / name)
        self.spark.sql(SOURCE.format(rows=rows, mark=mark)).write.mode("overwrite").parquet(path)
        return self.spark.read.parquet(path)

    def timed(self, work: Callable[[], object]) -> float:
        began = time.perf_counter()
        work()
        return time.perf_counter() - began

    def model(self) -> Model:
        return Model(
            "sync.out", "models/sync/out.sql", self.folder / "out.sql", "SELECT 1", 1, kind="merge", key=("id",)
        )

    def run(self, table: LakeTable, source: Any, *, first: bool = False) -> int:
        """One run, from build to chunk files; the records it would send."""
        mark = None if first else table.version(self.spark)
        built = kinds.build_model(self.spark, self.model(), table, source, run_id=1)
        if built.version == mark:
            return 0
        request = StageRequest(
            self.model(),
            table,
            mark,
            built.version,
            built.previous_version or 0,
            (),
            (self.folder / "staged").as_uri(),
            made=built.feed,
        )
        return stage(self.spark, request).changed

    def plain_table(self, name: str, rows: Any, *, vectors: bool = False) -> str:
        """What one would write by hand; Delta's own default has no deletion vectors."""
        path = str(self.folder / name)
        options = {"delta.enableChangeDataFeed": "true", "delta.enableDeletionVectors": str(vectors).lower()}
        rows.selectExpr("*", f"{HASH} AS h").write.format("delta").options(**options).save(path)
        return path

    def plain(self, path: str, source: Any) -> int:
        from delta.tables import DeltaTable

        hashed = source.selectExpr("*", f"{HASH} AS h")
        (
            DeltaTable.forPath(self.spark, path)
            .alias("t")
            .merge(hashed.alias("s"), "t.id = s.id")
            .whenMatchedUpdateAll("t.h <> s.h")
            .whenNotMatchedInsertAll()
            .execute()
        )
        version = DeltaTable.forPath(self.spark, path).history(1).collect()[0]["version"]
        feed = (
            self.spark.read.format("delta")
            .option("readChangeFeed", "true")
            .option("startingVersion", version)
            .load(path)
        )
        feed.write.mode("overwrite").parquet(f"{path}-feed")
        return int(version)

    def warm(self) -> None:
        """A session lives long: both sides have their code compiled before they are measured."""
        table = LakeTable((self.folder / "warm").as_uri())
        old, new = self.source("warm-old", WARM), self.source("warm-new", WARM, "*")
        self.run(table, old, first=True)
        plain = self.plain_table("warm-plain", old)
        for source in (new, old):
            self.run(table, source)
            self.plain(plain, source)


def memory() -> int:
    """Most megabytes that the driver's JVM held."""
    pid = int(session()._jvm.java.lang.ProcessHandle.current().pid())
    line = next(x for x in Path(f"/proc/{pid}/status").read_text().splitlines() if x.startswith("VmHWM"))
    return int(line.split()[1]) // 1024


def main(rows: int, part: str) -> None:
    bench = Bench(Path(tempfile.mkdtemp(prefix="bench-detect-")))
    try:
        measure(bench, rows, part)
    finally:
        shutil.rmtree(bench.folder)


def measure(bench: Bench, rows: int, part: str) -> None:
    old = bench.source("old", rows)
    bench.warm()
    table = LakeTable((bench.folder / "ours").as_uri())
    began = bench.timed(lambda: kinds.build_model(bench.spark, bench.model(), table, old))
    print(f"first build of {rows:,} rows: {began:.1f} s, without staging")
    if part == "unchanged":
        new = bench.source("new", rows)
        scan = min(bench.timed(lambda: new.selectExpr(f"bit_xor({HASH})").collect()) for _ in range(3))
        nothing = min(bench.timed(lambda: bench.run(table, new)) for _ in range(3))
        print(f"the driver held {memory()} MB at most")
        print(
            f"detect: ratio {nothing / scan:.2f} (nothing changed {nothing:.2f} s, a bare scan {scan:.2f} s) for "
            f"{rows:,} rows"
        )
        return
    plain = bench.plain_table("plain", old, vectors=part == "vectors")
    ours, other = [], []
    for at in range(1, ROUNDS + 1):
        new = bench.source(f"new-{at}", rows, "*" * at)
        ours.append(bench.timed(lambda: _all_found(bench, table, new, rows)))  # noqa: B023 - called at once
        other.append(bench.timed(lambda: bench.plain(plain, new)))  # noqa: B023
        print(f"round {at}: ours {ours[-1]:.1f} s, other {other[-1]:.1f} s, the driver held {memory()} MB at most")
    _told(min(other), min(ours), rows)


def measured(rows: int) -> dict[str, float]:
    """Of one size, our side alone: seconds of the first build and of the best round, and the driver's megabytes."""
    from _standalone import all_there

    bench = Bench(Path(tempfile.mkdtemp(prefix="bench-detect-")))
    try:
        all_there(bench.spark)
        table, old = LakeTable((bench.folder / "ours").as_uri()), bench.source("old", rows)
        first = bench.timed(lambda: kinds.build_model(bench.spark, bench.model(), table, old))
        took = []
        for at in range(1, ROUNDS_OF_SIZES + 1):
            new = bench.source("new", rows, "*" * at)
            took.append(bench.timed(lambda: _all_found(bench, table, new, rows)))  # noqa: B023 - called at once
        return {"first": first, "best": min(took), "held": memory()}
    finally:
        shutil.rmtree(bench.folder)


def _all_found(bench: Bench, table: LakeTable, new: Any, rows: int) -> None:
    found = bench.run(table, new)
    assert found == rows // 100, (found, rows)


def sizes(given: list[int]) -> None:
    from _standalone import standalone

    held = {}
    with standalone(2) as there:
        env = {**os.environ, **there, "SPARK_DRIVER_MEMORY": f"{LEAST_HEAP}m"}
        for rows in given:
            command = [sys.executable, __file__, "--measure", str(rows)]
            done = subprocess.run(command, env=env, check=True, stdout=subprocess.PIPE, text=True)
            told = json.loads(done.stdout.splitlines()[-1])
            held[rows] = told["held"]
            print(
                f"{rows:,} rows of which 1 % changed: {told['best']:.1f} s, {told['best'] / rows * 1e6:.2f} s a "
                f"million; first build {told['first']:.1f} s; the driver held {told['held']} MB at most",
                flush=True,
            )
    most = max(held.values())
    print(f"memory: ratio {most / MOST_HELD:.2f} (the driver held {most} MB at most, of {MOST_HELD} that it may)")
    if most > MOST_HELD:
        raise SystemExit("the driver's memory grows with the rows")


def ways(rows: int) -> None:
    bench = Bench(Path(tempfile.mkdtemp(prefix="bench-detect-")))
    try:
        tables = {way: LakeTable((bench.folder / way).as_uri()) for way in WAYS}
        old = bench.source("old", rows)
        for table in tables.values():
            kinds.build_model(bench.spark, bench.model(), table, old)
        took: dict[str, list[float]] = {way: [] for way in WAYS}
        for at in range(1, ROUNDS_OF_SIZES + 1):
            new = bench.source("new", rows, "*" * at)
            for way, table in tables.items():
                with WAYS[way]():
                    took[way].append(bench.timed(lambda: _all_found(bench, table, new, rows)))  # noqa: B023
            print(f"round {at}: {', '.join(f'{way} {each[-1]:.1f} s' for way, each in took.items())}", flush=True)
    finally:
        shutil.rmtree(bench.folder)
    best = {way: min(each) for way, each in took.items()}
    said = ", ".join(f"{way} {each:.1f} s" for way, each in best.items())
    print(f"ways: ratio {best['join'] / best['hashes']:.2f} ({said}) for {rows:,} rows of which 1 % changed")


def _told(other: float, ours: float, rows: int) -> None:
    print(
        f"detect: ratio {other / ours:.2f} (ours {ours:.1f} s, other {other:.1f} s) at the best of {ROUNDS} rounds "
        f"for {rows:,} rows of which 1 % changed"
    )


if __name__ == "__main__" and sys.argv[1:2] == ["sizes"]:
    sizes([int(a) for a in sys.argv[2:]] or list(SIZES))
elif __name__ == "__main__" and sys.argv[1:2] == ["ways"]:
    ways(int(sys.argv[2]) if len(sys.argv) > 2 else 5_000_000)
elif __name__ == "__main__" and sys.argv[1:2] == ["--measure"]:
    print(json.dumps(measured(int(sys.argv[2]))))
elif __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 5_000_000, sys.argv[2] if len(sys.argv) > 2 else "changed")
