"""The data commit of few changes, made with Delta's own parts: old rows are marked as deleted where they lie.

A MERGE would read the table twice more to find out what is known already, and for a table of few rows most of a build
is the planning of that. The commit is the one that MERGE makes: deletion vectors for the files that hold old rows, a
file of new rows, and one of both for the change feed.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from runtime.columns import ROWID
from runtime.errors import BuildError
from runtime.kinds.amounts import Amounts
from runtime.kinds.aside import aside
from runtime.kinds.built import Feed
from runtime.kinds.writer import broadcast
from runtime.lake import effort, internals, transactions, vectors
from runtime.lake.table import quoted
from runtime.lake.transactions import Actions, Opened

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from runtime.kinds.build import Build

#: Delta's column for what the feed says of a row; rows without it are the table's.
CHANGE = "_change_type"
#: Rows of one file, about; as many are written at a time as tasks can run.
A_FILE = 25_000


def opened(build: Build) -> Opened:
    """Raises BuildError where the newest version is not the one that the build compares with."""
    found = transactions.opened(build.spark, build.table.path)
    if found.version != build.version:
        raise BuildError(
            f"{build.table.path} is at version {found.version}, not {build.version}: another process wrote it"
        )
    return found


def merge(build: Build, rows: DataFrame, amounts: Amounts, update: Mapping[str, str]) -> None:
    """The changes that `Build.merge` takes."""
    from pyspark.sql import functions as F

    table = opened(build)
    columns = [*map(quoted, build.source.columns), ROWID]
    wanted = rows.filter(F.col(ROWID).isNotNull()).select(ROWID, "__ondatra_do")
    # the join is over once its small side is there: rows of the table stay where they are
    there = table.rows(columns).join(broadcast(wanted, amounts.updated + amounts.deleted), ROWID)
    change = F.expr("CASE __ondatra_do WHEN 'U' THEN 'update_preimage' ELSE 'delete' END")
    old = build.keep(there.withColumn(CHANGE, change).drop("__ondatra_do"))

    build.set(effort.settings(0))
    new = rows.filter(F.col(ROWID).isNull()).select(*columns)
    if amounts.updated:
        new = new.unionByName(_updated(build, rows, old, update))
    write(build, table, new, old, amounts)


def _updated(build: Build, rows: DataFrame, old: DataFrame, update: Mapping[str, str]) -> DataFrame:
    from pyspark.sql import functions as F

    values = [F.expr(update.get(name, f"t.{quoted(name)}")).alias(name) for name in build.source.columns]
    both = old.filter(f"{CHANGE} = 'update_preimage'").alias("t").join(F.broadcast(rows).alias("s"), ROWID)
    return both.select(*values, ROWID)


def write(
    build: Build, table: Opened, new: DataFrame, old: DataFrame, amounts: Amounts, *, computed: bool = False
) -> None:
    """Makes the commit; `build.version` is its version then, and `build.feed` what it tells the change feed.

    `new` has the table's columns, and a row id where it replaces a row; it is computed where that is said. `old` is
    computed, has where each row lies, and what the feed says of it.
    """
    internals.activate(build.spark)
    with build.writer.told():
        with aside(build.spark, lambda: _removed(table, old, amounts)) as removed:
            rows, told = _rows(build, new, old, table.highest(ROWID), computed=computed)
            added = table.written(_laid(build, rows.unionByName(told), amounts), ROWID if amounts.inserted else None)
        build.writer.is_committing = True
        table.commit(removed(), added)
    build.writer.look()

    counts = {
        "update_preimage": amounts.updated,
        "update_postimage": amounts.updated,
        "insert": amounts.inserted,
        "delete": amounts.deleted,
    }
    build.feed = Feed(told, {kind: n for kind, n in counts.items() if n}, build.version)


def _removed(table: Opened, old: DataFrame, amounts: Amounts) -> Actions:
    gone = amounts.updated + amounts.deleted
    if not gone:
        return table.nothing()
    few = vectors.without(table, old) if gone <= vectors.MOST_ROWS else None
    return table.without(old) if few is None else few


def _rows(build: Build, new: DataFrame, old: DataFrame, highest: int, *, computed: bool) -> tuple[DataFrame, DataFrame]:
    """The table's new rows, and the feed's: old images, new ones, inserted and deleted rows."""
    columns = [*map(quoted, build.source.columns)]
    changed = new.filter(f"{ROWID} IS NOT NULL").selectExpr(*columns, ROWID, f"'update_postimage' AS {CHANGE}")
    # one task counts them, so the ids are dense
    number = f"monotonically_increasing_id() + {highest + 1}L AS {ROWID}"
    fresh = new.filter(f"{ROWID} IS NULL").coalesce(1).selectExpr(*columns, number, f"'insert' AS {CHANGE}")
    # of rows that are there, the same count gives the same ids each time
    kept = changed.unionByName(fresh) if computed else build.keep(changed.unionByName(fresh))
    told = kept.unionByName(old.selectExpr(*columns, ROWID, CHANGE))
    return kept.selectExpr(*columns, ROWID, f"CAST(NULL AS STRING) AS {CHANGE}"), told


def _laid(build: Build, rows: DataFrame, amounts: Amounts) -> DataFrame:
    files = amounts.all // A_FILE
    return rows.coalesce(max(1, min(files, build.spark.sparkContext.defaultParallelism)))
