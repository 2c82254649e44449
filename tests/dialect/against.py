"""Asks DuckDB and Spark the same generated expressions, many in one query, and compares the answers as DuckDB prints
them."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import duckdb
import generated
from compare import computed

from runtime.lake import effort
from runtime.model import Column
from runtime.sources import duck, plans
from runtime.sql import SqlProblems, translate
from runtime.sql.asking.types import carried, parse, spark_type

TOGETHER = 40
#: By expression its function and its type.
Kinds = dict[str, tuple[str, str]]
SCALAR, GROUPED = "FROM edges", "FROM edges GROUP BY k"


@dataclass
class Found:
    asked: int = 0
    right: int = 0
    refused: Counter[str] = field(default_factory=Counter)
    different: dict[str, str] = field(default_factory=dict)
    names: dict[str, dict[str, str]] = field(default_factory=dict)  # function -> expression -> what came of it

    def note(self, name: str, expression: str, what: str) -> None:
        self.names.setdefault(name, {})[expression] = what

    def said(self) -> str:
        refused = sum(self.refused.values())
        return f"{self.asked} expressions: {self.right} right, {refused} refused, {len(self.different)} different"


def run(spark: Any, folder: Path, *, seed: int, every: int = 1) -> Found:
    """Tries every so many of the expressions that a seed makes."""
    con = duckdb.connect(config={"threads": 1})
    con.execute("SET TimeZone = 'UTC'")
    generated.table(con, seed)
    columns = view(spark, con, folder)
    found = Found()
    rows = itertools.chain(
        generated.scalars(con, seed), generated.examples("examples.txt"), generated.operators(seed), generated.casts()
    )
    groups = itertools.chain(generated.aggregates(con, seed), generated.examples("aggregates.txt"))
    with effort.fit(spark, 0):
        for by, choices in ((SCALAR, rows), (GROUPED, groups)):
            chosen = (choice for at, choice in enumerate(choices) if (at + seed) % every == 0)
            kinds = generated.answers(con, chosen, by)
            found.asked += len(kinds)
            wanted = [e for e in kinds if accepted(e, by, columns, kinds, found)]
            for at in range(0, len(wanted), TOGETHER):
                compare(spark, con, wanted[at : at + TOGETHER], by, kinds, columns, found)
    return found


def view(spark: Any, con: duckdb.DuckDBPyConnection, folder: Path) -> tuple[Column, ...]:
    """The table as a view of Spark's; its columns."""
    described = [(r[0], r[1]) for r in con.execute("DESCRIBE edges").fetchall()]
    kept = ", ".join(f"CAST({n} AS {carried(parse(t))}) AS {n}" for n, t in described)
    con.execute(f"COPY (SELECT {kept} FROM edges) TO '{folder / 'edges.parquet'}' (FORMAT parquet)")
    spark.read.parquet(str(folder / "edges.parquet")).selectExpr(
        *(f"CAST(`{n}` AS {spark_type(parse(t))}) AS `{n}`" for n, t in described)
    ).createOrReplaceTempView("main__edges")
    return tuple(Column(n, t, spark_type(parse(t))) for n, t in described)


def translated(select: str, columns: tuple[Column, ...]) -> Any:
    return translate(select, dialect="duckdb", tables={"main.edges": columns}, project_dir="/nowhere")


def accepted(expression: str, by: str, columns: tuple[Column, ...], kinds: Kinds, found: Found) -> bool:
    try:
        translated(f"SELECT {expression} AS x {by}", columns)
    except SqlProblems as error:
        found.refused[f"{error.problems[0][1]}: {expression}"] += 1
        found.note(kinds[expression][0], expression, error.problems[0][1])
        return False
    return True


def compare(
    spark: Any,
    con: duckdb.DuckDBPyConnection,
    some: Sequence[str],
    by: str,
    kinds: Kinds,
    columns: tuple[Column, ...],
    found: Found,
) -> None:
    key = "id" if by == SCALAR else "k"
    select = f"SELECT {key} AS key, " + ", ".join(f"{e} AS x{i}" for i, e in enumerate(some)) + f" {by}"
    try:
        ours = computed(translated(select, columns), lambda one: plans.open_query(spark, one).toArrow())
    except Exception as error:
        if len(some) == 1:
            found.different[some[0]] = f"failed: {str(error)[:300]}"
            found.note(kinds[some[0]][0], some[0], "different")
            return
        done = translated(select, columns)
        told = duck.said(error, (done.exact or done).calls)
        one = next((e for e in some if told and told[1].partition(": ")[0] in e), None)
        parts = ([one], [e for e in some if e != one]) if one else (some[: len(some) // 2], some[len(some) // 2 :])
        for part in parts:
            compare(spark, con, part, by, kinds, columns, found)
        return
    con.register("ours", ours)
    shown = [f"CAST(CAST(x{i} AS {generated.compared(kinds[e][1])}) AS VARCHAR)" for i, e in enumerate(some)]
    text = ", ".join(shown)
    answers = con.execute(f"SELECT {text} FROM ours ORDER BY key NULLS LAST").fetchall()
    wanted = con.execute(f"SELECT {text} FROM ({select}) ORDER BY key NULLS LAST").fetchall()
    for at, expression in enumerate(some):
        pairs = [(a[at], b[at]) for a, b in zip(answers, wanted, strict=True)]
        wrong = [pair for pair in pairs if not same(*pair, by)]
        if wrong:
            found.different[expression] = f"{kinds[expression][1]}: ours {wrong[0][0]!r}, DuckDB's {wrong[0][1]!r}"
        else:
            found.right += 1
        found.note(kinds[expression][0], expression, "different" if wrong else "")


def same(ours: str | None, wanted: str | None, by: str) -> bool:
    """Equal texts; of a sum of doubles the last digits depend on the order of the rows."""
    if ours == wanted or ours is None or wanted is None or by == SCALAR:
        return ours == wanted
    try:
        return f"{float(ours):.11g}" == f"{float(wanted):.11g}"
    except ValueError:
        return False
