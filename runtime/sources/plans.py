"""The door before Spark: no text runs in it before Spark's own parser said what it consists of, and all of that is on a
list.

Every text passes here, a translation as well as a model of `@dialect: spark`: what a text is, is not for another parser
to say. Then the analysed plan is looked through: nothing but the views of this model is read.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING
from urllib.parse import unquote_plus

from runtime import config
from runtime.lake import internals, nodes
from runtime.sources import duck
from runtime.sql.model import SqlProblems, Translated
from runtime.sql.spark_text import FORBIDDEN, TABLE_FUNCTIONS

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

#: The parts of a query, as Spark's parser names them. Commands, scripts and files by path are not among them.
PLANS = {
    "Aggregate",
    "AsOfJoin",
    "Distinct",
    "Except",
    "Filter",
    "Generate",
    "GlobalLimit",
    "Intersect",
    "Join",
    "LateralJoin",
    "LocalLimit",
    "LocalRelation",
    "Offset",
    "OneRowRelation",
    "OneRowRelation$",
    "PipeOperator",
    "Pivot",
    "Project",
    "Repartition",
    "RepartitionByExpression",
    "Sample",
    "Sort",
    "SubqueryAlias",
    "Union",
    "UnionLoop",
    "Unpivot",
    "UnresolvedHaving",
    "UnresolvedHint",
    "UnresolvedInlineTable",
    "UnresolvedOrderBy",
    "UnresolvedQualify",
    "UnresolvedRelation",
    "UnresolvedSubqueryColumnAliases",
    "UnresolvedTVFAliases",
    "UnresolvedTableValuedFunction",
    "UnresolvedWith",
    "Window",
    "WithWindowDefinition",
}
#: Whether a text may name files; off while a model's text is analysed.
ON_FILES = "spark.sql.runSQLOnFiles"
#: Where the parts of expressions come from.
PACKAGES = ("org.apache.spark.sql.catalyst.expressions.", "org.apache.spark.sql.catalyst.analysis.")
#: Parts of expressions that run code, tell of files, or put a name together while it runs.
REFUSED = {
    "CallMethodViaReflection",
    "ExpressionWithUnresolvedIdentifier",
    "InputFileBlockLength",
    "InputFileBlockStart",
    "InputFileName",
    "PythonUDF",
    "ScalaUDF",
    "TryReflect",
    "UnresolvedIdentifier",
    "PlanWithUnresolvedIdentifier",
}
#: Leaves of an analysed plan that hold rows of their own text alone.
OWN_ROWS = {
    "CTERelationRef",
    "LocalRelation",
    "OneRowRelation",
    "OneRowRelation$",
    "Range",
    "ResolvedInlineTable",
    "UnionLoopRef",
}


@dataclass(frozen=True)
class Part:
    """A node of a plan: its class, the line of the text (0: none is known), the name that it looks for, and its place:
    `plan`, `leaf` (a plan over no other) or nothing for a part of an expression."""

    kind: str
    line: int
    name: tuple[str, ...]
    place: str

    @property
    def is_plan(self) -> bool:
        return bool(self.place)

    @property
    def short(self) -> str:
        return self.kind.rsplit(".", 1)[-1]


def open_query(spark: SparkSession, translated: Translated) -> DataFrame:
    """The model's rows, not yet computed. SqlProblems, before anything runs, for what is not on the lists."""
    views = {t.replace(".", "__") for t in translated.tables} | {f.view for f in translated.files}
    calls = {call.name for call in translated.calls}
    check_parsed(parsed(spark, translated.spark_sql), views, functions(spark) | calls)
    duck.register(spark, translated.calls)
    spark.conf.set(ON_FILES, "false")
    try:
        frame = spark.sql(translated.spark_sql)
    finally:
        spark.conf.set(ON_FILES, "true")  # the lake's own statements name its tables by path
    check_analysed(_parts(spark, internals.analysed(frame), to_views=True), calls)
    return frame


def parsed(spark: SparkSession, sql: str) -> list[Part]:
    """What Spark's parser, the session's own, makes of a text."""
    if "${" in sql:
        raise SqlProblems([(sql[: sql.index("${")].count("\n") + 1, "${…} is not allowed in a model")])
    return _parts(spark, internals.parsed(spark, sql), to_views=False)


def check_parsed(parts: list[Part], views: Collection[str], known: Collection[str]) -> None:
    """SqlProblems for what a model may not consist of."""
    names = {v.lower() for v in views} | {p.name[0].lower() for p in parts if p.kind == "cte"}
    problems = [(p.line or 1, told) for p in parts if p.kind != "cte" and (told := _wrong(p, names, known))]
    if problems:
        raise SqlProblems(sorted(set(problems)))


def _wrong(part: Part, names: Collection[str], known: Collection[str]) -> str | None:
    shown = ".".join(part.name)
    if part.short == "UnresolvedRelation":
        if len(part.name) == 1 and shown.lower() in names:
            return None
        return f"{shown} is none of the tables that this model reads: files are not read by path in Spark SQL"
    if part.short in ("UnresolvedFunction", "UnresolvedGenerator", "UnresolvedTableValuedFunction"):
        allowed = TABLE_FUNCTIONS if part.short == "UnresolvedTableValuedFunction" else known
        return None if shown.lower() in allowed else f"{shown}() is not allowed in a model"
    if part.is_plan and part.short not in PLANS:
        return f"{part.short} is not allowed in a model, which is one SELECT over tables"
    if not part.is_plan and (not part.kind.startswith(PACKAGES) or part.short in REFUSED):
        return f"{part.short} is not allowed in a model"
    return None


def check_analysed(parts: list[Part], calls: Collection[str] = ()) -> None:
    """The same of a plan in which names stand for what they mean: rows come from the model's views and its own text,
    and the only functions of Python are the calls of DuckDB that its translation made. The plan is looked through down
    to the views."""
    for part in parts:
        if part.short == "PythonUDF" and ".".join(part.name) in calls:
            continue
        runs = part.short in REFUSED or "Script" in part.short or part.short.endswith("Command")
        if runs or part.place == "leaf" and part.short not in OWN_ROWS:
            raise SqlProblems([(part.line or 1, f"{part.short} is not allowed in a model")])


@lru_cache(1)
def _known(names: str) -> frozenset[str]:
    return frozenset(name.replace("`", "").rsplit(".", 1)[-1].lower() for name in names.split()) - FORBIDDEN


def functions(spark: SparkSession) -> frozenset[str]:
    """Spark's built-in functions, less those that run code or read files."""
    return _known(" ".join(internals.builtin_functions(spark)))


def _parts(spark: SparkSession, plan: internals.Plan, *, to_views: bool) -> list[Part]:
    plain = config.from_env().plain_build
    rows = (row.split("\t") for row in nodes.nodes(spark, plan, to_views=to_views, plain=plain))
    return [
        Part(kind, int(line or 0), tuple(map(unquote_plus, name.split(" "))) if name else (), place)
        for kind, line, name, place in rows
    ]
