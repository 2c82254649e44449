"""Keeps a table of the lake quick and small: little files are put together, files that nothing needs any more are
removed.

Neither changes what the table says. What is needed is what the newest version consists of, and every change since the
version that a sync has told its destination or that other models still read.
"""

from __future__ import annotations

import datetime as dt
import logging
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from runtime.lake import note
from runtime.lake.table import LakeTable

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

log = logging.getLogger("ondatra.upkeep")
#: Delta's own property on every table says the same.
KEEP = dt.timedelta(days=90)
#: Fewer files are not worth a commit.
MANY_FILES = 16
#: Files of a commit are as old as its work took, before it was there.
MARGIN = dt.timedelta(days=1)
CHECK = "spark.databricks.delta.retentionDurationCheck.enabled"
#: VACUUM would make two commits that only say that it ran.
LOGGING = "spark.databricks.delta.vacuum.logging.enabled"
#: Tasks that list folders. Spark's own number is ten thousand, of which most list nothing.
LISTING, LISTERS = "spark.sql.sources.parallelPartitionDiscovery.parallelism", "16"


@dataclass(frozen=True)
class Kept:
    """`before` and `after` hold the same rows; `removed` files are gone for good, None where none could be looked
    for."""

    before: int
    after: int
    removed: int | None


def keep(
    spark: SparkSession,
    table: LakeTable,
    needed: int | None,
    *,
    keep_for: dt.timedelta = KEEP,
    many_files: int = MANY_FILES,
) -> Kept:
    """Looks after one table. Changes after version `needed` stay readable; with None every change does."""
    before = table.version(spark)
    after = _optimize(spark, table, before, many_files)
    return Kept(before, after, _vacuum(spark, table, needed, keep_for))


def _optimize(spark: SparkSession, table: LakeTable, before: int, many_files: int) -> int:
    """The version that still has the rows of `before`; commits of others in between are left to themselves."""
    detail = spark.sql(f"DESCRIBE DETAIL {table.sql}").head()
    if detail is None or int(detail["numFiles"]) < many_files:
        return before
    spark.sql(f"OPTIMIZE {table.sql}")
    after = table.version(spark)
    made = spark.sql(f"DESCRIBE HISTORY {table.sql} LIMIT {after - before}").collect() if after > before else []
    if any(row["operation"] != "OPTIMIZE" for row in made):
        return before
    known = note.read(spark, table)
    if after > before and known.version == before:
        note.write(spark, table, replace(known, version=after))
    return after


def _vacuum(spark: SparkSession, table: LakeTable, needed: int | None, keep_for: dt.timedelta) -> int | None:
    if needed is None:
        return None
    newest = table.version(spark)
    if needed < newest:
        age = _age(spark, table, needed + 1)
        if age is None:  # its changes are gone already: the sync's next run is held and says so
            return None
        keep_for = max(keep_for, age + MARGIN)
    hours = keep_for.total_seconds() / 3600
    wanted = {CHECK: str(keep_for >= KEEP).lower(), LOGGING: "false", LISTING: LISTERS}
    usual = {
        name: str(spark.conf.get(name, default))
        for name, default in ((CHECK, "true"), (LOGGING, "false"), (LISTING, LISTERS))
    }
    for name, value in wanted.items():
        spark.conf.set(name, value)
    try:
        # with nothing to remove it answers with the table's folder
        files = (
            spark.sql(f"VACUUM {table.sql} RETAIN {hours:.3f} HOURS DRY RUN")
            .filter("path LIKE '%.parquet' OR path LIKE '%.bin'")
            .count()
        )
        if files:
            spark.sql(f"VACUUM {table.sql} RETAIN {hours:.3f} HOURS")
    finally:
        for name, value in usual.items():
            spark.conf.set(name, value)
    return files


def _age(spark: SparkSession, table: LakeTable, version: int) -> dt.timedelta | None:
    """How long ago a version was committed; None where the log no longer knows it."""
    rows: list[Any] = (
        spark.sql(f"DESCRIBE HISTORY {table.sql}")
        .filter(f"version = {version}")
        .selectExpr("unix_micros(current_timestamp()) - unix_micros(CAST(timestamp AS TIMESTAMP_LTZ)) AS micros")
        .collect()
    )
    return dt.timedelta(microseconds=int(rows[0]["micros"])) if rows else None
