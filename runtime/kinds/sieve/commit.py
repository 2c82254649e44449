"""The data commit of found changes, made with Delta's own parts: old rows are marked as deleted where they lie, and
nothing is scanned.

A MERGE would read the table twice more to find out what is known already. The commit is the one that MERGE makes:
deletion vectors for the files that hold old rows, a file of new rows, and one of both for the change feed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from runtime.kinds.build import Build
from runtime.kinds.built import Feed
from runtime.kinds.sieve.aside import aside
from runtime.kinds.sieve.found import Found
from runtime.lake import internals
from runtime.lake.table import KEY, ROWID, quoted

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

#: Delta's column for what the feed says of a row; rows without it are the table's.
CHANGE = "_change_type"
#: Rows of one file, about; as many are written at a time as tasks can run.
A_FILE = 25_000


def write(build: Build, found: Found) -> None:
    """Makes the commit; `build.version` is its version then, and `build.feed` what it tells the change feed."""
    internals.activate(build.spark)
    opened = found.opened
    with aside(build.spark, lambda: opened.without(found.removed)) as removed:
        rows, told = _rows(build, found, opened.highest(ROWID))
    gone = removed()
    counts = {
        "update_preimage": found.updated,
        "update_postimage": found.updated,
        "insert": found.inserted,
        "delete": found.counts.deleted,
    }
    with build.writer.told():
        added = opened.written(_laid(build, rows.unionByName(told), found), ROWID if found.inserted else None)
        build.writer.is_committing = True
        opened.commit(gone, added)
    build.writer.look()
    build.feed = Feed(told, {kind: n for kind, n in counts.items() if n})


def _rows(build: Build, found: Found, highest: int) -> tuple[DataFrame, DataFrame]:
    """The table's new rows, and the feed's: old images, new ones, inserted and deleted rows."""
    from pyspark.sql import functions as F

    columns = [*map(quoted, build.source.columns), ROWID]
    known = found.old.select(F.col(KEY).alias("__key"), F.col(ROWID))
    new = found.new.join(F.broadcast(known), F.col(KEY) == F.col("__key"), "left").drop("__key")
    changed = new.filter(F.col(ROWID).isNotNull()).select(*columns, F.lit("update_postimage").alias(CHANGE))
    # one task counts them, so the ids are dense
    fresh = (
        new.filter(F.col(ROWID).isNull())
        .coalesce(1)
        .withColumn(ROWID, F.monotonically_increasing_id() + F.lit(highest + 1))
    )
    kept = build.keep(changed.unionByName(fresh.select(*columns, F.lit("insert").alias(CHANGE))))
    told = kept.unionByName(found.old.select(*columns, F.lit("update_preimage").alias(CHANGE)))
    if found.gone is not None:
        told = told.unionByName(found.gone.select(*columns, F.lit("delete").alias(CHANGE)))
    return kept.withColumn(CHANGE, F.lit(None).cast("string")), told


def _laid(build: Build, rows: DataFrame, found: Found) -> DataFrame:
    files = (found.counts.changed + found.counts.deleted) // A_FILE
    return rows.coalesce(max(1, min(files, build.spark.sparkContext.defaultParallelism)))
