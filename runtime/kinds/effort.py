"""How much Spark has to do, read off the plan before anything runs."""
from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

#: Bytes, as Spark guesses them, below which one task is faster than several.
LITTLE = 4_000_000
#: Without adaptive execution a small query is one job instead of one for each of its stages.
SMALL = {"spark.sql.adaptive.enabled": "false", "spark.sql.shuffle.partitions": "1"}
#: Nodes of a plan that shuffle or sort, and functions that give another value at each call.
DEAR = re.compile(r"(?m)^[\s:+|-]*(?:Join|Aggregate|Window|Sort|Distinct|Intersect|Except|\w*Python\w*)\b|\b(?:rand|randn|uuid|random|shuffle)\(")


def is_dear(source: DataFrame) -> bool:
    """Whether a result is dear to compute, or comes out differently each time, so that it is computed once and kept for the build."""
    return bool(DEAR.search(_plan(source).toString()))


def is_small(source: DataFrame) -> bool:
    return int(str(_plan(source).stats().sizeInBytes())) < LITTLE


def _plan(source: DataFrame) -> Any:
    plan: Any = source._jdf  # noqa: SLF001 - the plan has no other door
    return plan.queryExecution().optimizedPlan()


def change(spark: SparkSession, settings: Mapping[str, str]) -> dict[str, str]:
    """Sets these; what they were before."""
    before = {name: str(spark.conf.get(name)) for name in settings}
    for name, value in settings.items():
        spark.conf.set(name, value)
    return before
