"""What DuckDB's own answers cost: everyday expressions of a model against Spark's own nearest functions, warm.

Usage: python bench/dialect.py [--rows N] [--aggregates | --all | --page]. `--aggregates` measures those of groups;
`--all` tries, instead of measuring, every expression that tests/dialect/generated.py makes of DuckDB's list of
functions, says which differ, and writes docs/dialect.md, the last part of which says what came of them; `--page` writes
all but that part.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from statistics import median
from typing import Any

import duckdb

ROOT = Path(__file__).resolve().parent.parent
ROWS, FEW, ROUNDS = 5_000_000, 5_000, 3
TABLE = """
SELECT i AS id, '{"lang": "' || chr(97 + (i % 7)::INTEGER) || '", "n": ' || i || ', "tags": ["x", "y"]}' AS prefs,
    TIMESTAMP '2020-01-01' + to_seconds(i * 37) AS seen, 'Name ' || i AS name, (i * 1.2345)::DOUBLE AS d,
    (i % 1000)::INTEGER AS k, [i % 5, i % 3, i % 7]::INTEGER[] AS nums, (i % 100000)::VARCHAR AS s
FROM range({rows}) t(i)"""
COLUMNS = {
    "id": "BIGINT",
    "prefs": "VARCHAR",
    "seen": "TIMESTAMP",
    "name": "VARCHAR",
    "d": "DOUBLE",
    "k": "INTEGER",
    "nums": "INTEGER[]",
    "s": "VARCHAR",
}
#: A name, DuckDB's SQL, and Spark's nearest.
FOUR = (
    "prefs->>'lang' AS a, strftime(seen, '%Y-%m') AS b, upper(name) AS c, round(d, 2) AS e",
    "get_json_object(prefs, '$.lang') AS a, date_format(seen, 'yyyy-MM') AS b, upper(name) AS c, round(d, 2) AS e",
)
CASES = (
    ("four", f"SELECT id, {FOUR[0]} FROM t", f"SELECT id, {FOUR[1]} FROM t"),
    ("json", "SELECT prefs->>'lang' AS a FROM t", "SELECT get_json_object(prefs, '$.lang') AS a FROM t"),
    ("strftime", "SELECT strftime(seen, '%Y-%m') AS a FROM t", "SELECT date_format(seen, 'yyyy-MM') AS a FROM t"),
    ("upper", "SELECT upper(name) AS a FROM t", "SELECT upper(name) AS a FROM t"),
    ("round", "SELECT round(d, 2) AS a FROM t", "SELECT round(d, 2) AS a FROM t"),
    ("path", "SELECT prefs->>'$.tags[1]' AS a FROM t", "SELECT get_json_object(prefs, '$.tags[1]') AS a FROM t"),
    ("to json", "SELECT to_json({'i': id, 'n': name}) AS a FROM t",
     "SELECT to_json(struct(id AS i, name AS n)) AS a FROM t"),
    ("list sort", "SELECT list_sort(nums) AS a FROM t", "SELECT sort_array(nums) AS a FROM t"),
    ("lambda", "SELECT list_transform(nums, lambda x: x * 2) AS a FROM t",
     "SELECT transform(nums, x -> x * 2) AS a FROM t"),
    ("regexp", r"SELECT regexp_replace(name, '\d+', '#') AS a FROM t",
     r"SELECT regexp_replace(name, '\\d+', '#') AS a FROM t"),
    ("extract", r"SELECT regexp_extract(name, '\d+') AS a FROM t",
     r"SELECT regexp_extract(name, '\\d+', 0) AS a FROM t"),
    ("date trunc", "SELECT date_trunc('month', seen) AS a FROM t", "SELECT date_trunc('month', seen) AS a FROM t"),
    ("date diff", "SELECT date_diff('day', seen, TIMESTAMP '2026-01-01') AS a FROM t",
     "SELECT datediff(DAY, seen, TIMESTAMP_NTZ '2026-01-01') AS a FROM t"),
    ("cast", "SELECT s::INTEGER AS a FROM t", "SELECT CAST(s AS INT) AS a FROM t"),
    ("filter", "SELECT id FROM t WHERE name ILIKE '%9999%'", "SELECT id FROM t WHERE name ILIKE '%9999%'"),
    ("join", "SELECT t.id FROM t JOIN small ON lower(t.name) = lower(small.name)",
     "SELECT t.id FROM t JOIN small ON lower(t.name) = lower(small.name)"),
    ("group", "SELECT strftime(seen, '%Y-%m') AS m, sum(d) AS s FROM t GROUP BY 1",
     "SELECT date_format(seen, 'yyyy-MM') AS m, sum(d) AS s FROM t GROUP BY 1"),
)  # fmt: skip


#: The same of aggregates that are DuckDB's.
AGGREGATES = (
    ("median", "SELECT k, median(d) AS m FROM t GROUP BY k", "SELECT k, median(d) AS m FROM t GROUP BY k"),
    ("of all", "SELECT median(d) AS m FROM t", "SELECT median(d) AS m FROM t"),
    ("quantile", "SELECT k % 7 AS k, quantile_cont(d, 0.9) AS q, mode(k) AS m FROM t GROUP BY 1",
     "SELECT k % 7 AS k, percentile(d, 0.9) AS q, mode(k) AS m FROM t GROUP BY 1"),
    ("string_agg", "SELECT id % 300000 AS g, string_agg(s, ',' ORDER BY id) AS a, count(*) AS n FROM t GROUP BY 1",
     "SELECT id % 300000 AS g, concat_ws(',', sort_array(collect_list(struct(id, s))).s) AS a, count(*) AS n FROM t "
     "GROUP BY 1"),
)  # fmt: skip


def main() -> None:
    asked = argparse.ArgumentParser()
    asked.add_argument("--rows", type=int, default=ROWS)
    asked.add_argument("--aggregates", action="store_true")
    asked.add_argument("--all", action="store_true")
    asked.add_argument("--page", action="store_true")
    asked.add_argument("--seed", type=int, default=1)
    options = asked.parse_args()
    folder = Path(tempfile.mkdtemp(prefix="bench-dialect-"))
    os.environ |= {"ONDATRA_DATA_DIR": str(folder / "data"), "TZ": "UTC"}
    time.tzset()
    (folder / "data").mkdir()
    sys.path[:0] = [str(ROOT), str(ROOT / "tests" / "dialect")]
    if options.page:
        page(None)
        return
    from runtime.lake.spark import session

    spark = session()
    cases = AGGREGATES if options.aggregates else CASES
    done = everything(spark, folder, options.seed) if options.all else measured(spark, folder, options.rows, cases)
    sys.exit(0 if done else 1)


def everything(spark: Any, folder: Path, seed: int) -> bool:
    import against

    found = against.run(spark, folder, seed=seed)
    for said, count in sorted(found.refused.items()):
        print(f"refused ({count}): {said}")
    for expression, told in found.different.items():
        print(f"different: {expression}: {told}")
    print(found.said())
    page(found)
    return not found.different


def page(found: Any) -> None:
    """Writes docs/dialect.md."""
    import tried

    from runtime.sql import supported

    path = ROOT / "docs" / "dialect.md"
    path.write_text(tried.written(supported.page(), path.read_text(encoding="utf-8"), found), encoding="utf-8")


def measured(spark: Any, folder: Path, rows: int, cases: tuple[tuple[str, str, str], ...]) -> bool:
    few = spark.newSession()
    tables(spark, folder / "many", rows)
    tables(few, folder / "few", FEW)
    ratios: dict[str, tuple[float, float]] = {}
    worked = []
    for name, ours, other in cases:
        (a, busy), (b, other_busy), (planned, _) = timed(spark, ours, other, rows)
        ratios[name] = a, b
        worked.append(other_busy / busy)
        print(
            f"{name:>12}: ours {a:.2f} s, Spark's nearest {b:.2f} s, ratio {b / a:.2f}, plan {planned * 1000:.0f} ms; "
            f"of processor {busy:.2f} s, {other_busy:.2f} s, ratio {worked[-1]:.2f}"
        )
    (a, _), (b, _), _ = timed(few, CASES[0][1], CASES[0][2], FEW)
    print(f"{FEW:,} rows, four expressions, warm: ours {a:.2f} s, Spark's nearest {b:.2f} s, {a / b:.2f} times")
    print(
        f"of processor, which others on the machine do not change: ratio {median(worked):.2f}, worst {min(worked):.2f}"
    )
    print(f"a worker's memory: {memory(spark)} MB")
    worst = min(ratios, key=lambda name: ratios[name][1] / ratios[name][0])
    ratio = median(b / a for a, b in ratios.values())
    print(f"the worst is {worst}: {ratios[worst][1] / ratios[worst][0]:.2f}")
    total = [sum(one[at] for one in ratios.values()) for at in (0, 1)]
    print(f"dialect: ratio {ratio:.2f} (ours {total[0]:.1f} s, other {total[1]:.1f} s)")
    return True


def tables(spark: Any, folder: Path, rows: int) -> None:
    folder.mkdir()
    for name, count in (("t", rows), ("small", 1000)):
        duckdb.sql(f"COPY ({TABLE.replace('{rows}', str(count))}) TO '{folder / name}.parquet' (FORMAT parquet)")
        spark.read.parquet(str(folder / f"{name}.parquet")).createOrReplaceTempView(name)
        spark.table(name).createOrReplaceTempView(f"main__{name}")


def timed(spark: Any, ours: str, other: str, rows: int) -> list[tuple[float, float]]:
    """Seconds of both, warm, and those of optimizing our plan; each by the clock and of the processor."""
    from runtime.lake import effort
    from runtime.model import Column
    from runtime.sources import plans
    from runtime.sql import translate
    from runtime.sql.asking.types import parse, spark_type

    columns = tuple(Column(n, kind, spark_type(parse(kind))) for n, kind in COLUMNS.items())
    known = {"main.t": columns, "main.small": columns}
    translated = translate(ours, dialect="duckdb", tables=known, project_dir=ROOT)
    found: dict[str, list[tuple[float, float]]] = {"ours": [], "other": [], "plan": []}
    with effort.fit(spark, rows * 100):
        for _ in range(ROUNDS + 1):
            for name, frame in (("ours", plans.open_query(spark, translated)), ("other", spark.sql(other))):
                if name == "ours":
                    found["plan"].append(seconds(spark, lambda f=frame: f._jdf.queryExecution().optimizedPlan()))
                found[name].append(seconds(spark, lambda f=frame: f.write.format("noop").mode("overwrite").save()))
    return [(median(s[0] for s in seen[1:]), median(s[1] for s in seen[1:])) for seen in found.values()]


def seconds(spark: Any, action: Callable[[], object]) -> tuple[float, float]:
    """By the clock, and of the processor for Spark and its workers."""
    busy, began = processor(spark), time.perf_counter()
    action()
    return time.perf_counter() - began, processor(spark) - busy


def processor(spark: Any) -> float:
    ticks = 0
    for pid in engine(spark):
        with suppress(OSError):
            said = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
            ticks += sum(map(int, said[11:15]))
    return ticks / os.sysconf("SC_CLK_TCK")


def engine(spark: Any) -> list[int]:
    """Spark's process and all below it."""
    below: dict[int, list[int]] = {}
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):
            below.setdefault(int(stat.read_text().rpartition(")")[2].split()[1]), []).append(int(stat.parent.name))
    found = [spark.sparkContext._gateway.proc.pid]
    for pid in found:
        found += below.get(pid, [])
    return found


def memory(spark: Any) -> int:
    """The most that one of Spark's Python workers has taken so far, in MB."""
    most = 0
    for pid in engine(spark):
        with suppress(OSError):
            if b"pyspark.daemon" in Path(f"/proc/{pid}/cmdline").read_bytes():
                status = Path(f"/proc/{pid}/status").read_text()
                most = max(most, int(status.split("VmHWM:")[1].split()[0]) // 1024)
    return most


if __name__ == "__main__":
    main()
