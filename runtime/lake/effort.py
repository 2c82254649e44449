"""How much Spark has to do, read off the plan before anything runs."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING

from runtime.lake import internals
from runtime.spark_settings import GIVEN_PARTITIONS, PARTITIONS

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

#: Bytes, as Spark guesses them, below which one task is faster than several.
LITTLE = 4_000_000
#: Rows, computed already, that are sooner walked through than code for them is compiled.
FEW = 150_000
#: Bytes of input for each task behind a shuffle, which moves keys and hashes only.
A_TASK = 32_000_000
#: Rows whose hashes each task behind a shuffle may hold, about.
A_SHARE = 1_000_000
#: From here on the guess is none.
UNKNOWN = 1 << 50
#: Nodes of a plan that shuffle or sort, and functions that give another value at each call.
DEAR = re.compile(
    r"(?m)^[\s:+|-]*(?:Join|Aggregate|Window|Sort|Distinct|Intersect|Except|GlobalLimit|LocalLimit|Sample|\w*Python\w*|MapInArrow)\b"
    r"|\b(?:rand|randn|uuid|random|shuffle)\("
)


def is_dear(source: DataFrame) -> bool:
    """Whether a result is dear to compute, or comes out differently each time, so that it is computed once and kept for
    the build. What another database tells is both."""
    return bool(DEAR.search(internals.plan_text(source))) or has_unknown(source)


def size(source: DataFrame, unknown: int = UNKNOWN) -> int:
    """Bytes that are read, as Spark guesses them. Inputs of which it has no idea, the tables of other databases, count
    as `unknown` together.

    Of what comes of them it has none: for the size of a join it multiplies those of both sides.
    """
    inputs = internals.leaf_bytes(source)
    known = [size for size in inputs if size < UNKNOWN]
    return sum(known) + (unknown if len(known) < len(inputs) else 0)


def has_unknown(source: DataFrame) -> bool:
    """Whether it reads a table of another database."""
    return any(size >= UNKNOWN for size in internals.leaf_bytes(source))


def are_few(rows: int) -> bool:
    return rows <= FEW


def settings(size: int, cores: int = 2, partitions: str = "") -> dict[str, str]:
    """Session settings for a build of so many bytes on so many cores; `partitions` that a person gave stand, but for a
    small one.

    Without adaptive execution a small query is one job instead of one for each stage; and compiling code for it takes
    longer than to walk through its expressions: a run of a few rows is done in two thirds of the time.
    """
    if size < LITTLE:
        return {"spark.sql.adaptive.enabled": "false", PARTITIONS: "1", **_compiled(False)}
    tasks = min(max(size // A_TASK, 4), max(400, 4 * cores)) if size < UNKNOWN else max(32, 2 * cores)
    return {"spark.sql.adaptive.enabled": "true", PARTITIONS: partitions or str(tasks), **_compiled(True)}


def fitting(spark: SparkSession, size: int) -> dict[str, str]:
    """The same on the cores that this engine has now."""
    if size < LITTLE:
        return settings(size)
    given = str(spark.conf.get(GIVEN_PARTITIONS, "") or "")
    return settings(size, spark.sparkContext.defaultParallelism, given)


def sharing(spark: SparkSession, rows: int) -> dict[str, str]:
    """Session settings under which no task holds the hashes of much more than its share of so many rows; partitions
    that a person gave stand."""
    there = str(spark.conf.get(PARTITIONS))
    given = spark.conf.get(GIVEN_PARTITIONS, "")
    return {PARTITIONS: there if given else str(max(int(there), rows // A_SHARE))}


def _compiled(wanted: bool) -> dict[str, str]:
    return {
        "spark.sql.codegen.wholeStage": str(wanted).lower(),
        "spark.sql.codegen.factoryMode": "FALLBACK" if wanted else "NO_CODEGEN",
    }


@contextmanager
def fit(spark: SparkSession, size: int) -> Iterator[None]:
    """The session with the settings for so many bytes, and afterwards as it was."""
    before = change(spark, fitting(spark, size))
    try:
        yield
    finally:
        change(spark, before)


def change(spark: SparkSession, settings: Mapping[str, str]) -> dict[str, str]:
    """Sets these; what they were before."""
    before = {name: str(spark.conf.get(name)) for name in settings}
    for name, value in settings.items():
        spark.conf.set(name, value)
    return before
