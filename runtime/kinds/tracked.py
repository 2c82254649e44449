"""tracked: a group is replaced as a whole when the content of any of its rows changed, and deleted when it vanished."""

from __future__ import annotations

from typing import TYPE_CHECKING

from runtime.columns import H1, H2, HASH, KEY, ROWID
from runtime.kinds import groups, max_deletes
from runtime.kinds.amounts import Amounts
from runtime.kinds.build import Build
from runtime.kinds.built import Built
from runtime.kinds.counts import Counts
from runtime.kinds.groups import N, content_text
from runtime.kinds.writer import broadcast

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

INVALID = f"{KEY} IS NULL"


def make(build: Build) -> Built:
    if build.fresh:
        counts, rows = groups.check_source(build, KEY, INVALID)
        previous = build.writer.prepare()
        if counts.changed:
            build.writer.insert(_with_content(rows), counts.changed)
        return build.built(counts, previous)
    changes, counts, old_rows = _compare(build)
    if not counts.changed and not counts.deleted:
        return build.settled(counts)
    vanished = changes.filter("__ondatra_do = 'D'").selectExpr(f"__ondatra_old_key AS {KEY}")
    max_deletes.check(build, counts, lambda: vanished)
    gone = changes.filter("__ondatra_do <> 'I'").selectExpr(f"__ondatra_old_key AS {KEY}")
    previous = build.writer.prepare(gone, KEY)
    rows = build.chosen(
        changes.filter("__ondatra_do <> 'D'").select(KEY, "__ondatra_content"), counts.changed, KEY
    ).withColumnRenamed("__ondatra_content", HASH)
    if old_rows:
        old = build.target(KEY, ROWID).join(broadcast(gone, old_rows), KEY).selectExpr(ROWID, "'D' AS __ondatra_do")
        amounts = Amounts(inserted=counts.changed, deleted=old_rows)
        build.merge(build.both(rows if counts.changed else None, old), amounts)
    else:
        build.writer.insert(rows, counts.changed)
    return build.built(counts, previous)


def _with_content(rows: DataFrame) -> DataFrame:
    """Each row with the content of its group."""
    from pyspark.sql import Window
    from pyspark.sql import functions as F

    group = Window.partitionBy(KEY)
    told = rows.withColumns({name: F.expr(text).over(group) for name, text in groups.CONTENT.items()})
    return told.withColumn(HASH, F.expr(content_text())).drop(*groups.CONTENT)


def _compare(build: Build) -> tuple[DataFrame, Counts, int]:
    """Groups with something to do, the counts in rows, and how many of the table's rows go."""
    from pyspark.sql import functions as F

    old = (
        build.target(KEY, HASH)
        .groupBy(F.col(KEY).alias("__ondatra_known"))
        .agg(F.any_value(HASH).alias(HASH), F.count(F.lit(1)).alias("__ondatra_old"))
    )
    new = groups.grouped(build.source.rows.select(KEY, H1, H2), KEY).withColumn(
        "__ondatra_content", F.expr(content_text())
    )
    do = (
        f"CASE WHEN {N} IS NULL THEN 'D' WHEN {INVALID} THEN NULL WHEN __ondatra_known IS NULL THEN 'I' "
        f"WHEN __ondatra_content <> {HASH} THEN 'U' END"
    )
    lines = new.join(old, build.same_key(KEY, "__ondatra_known"), "full").withColumn("__ondatra_do", F.expr(do))
    counted = (
        groups.sums("__ondatra_do", "IU", N)
        | groups.sums("__ondatra_do", "D", "__ondatra_old")
        | {"old": "sum(if(__ondatra_do IN ('U', 'D'), __ondatra_old, 0))"}
    )
    changes, row = groups.observed(
        build,
        lines,
        groups.totals(KEY, INVALID, counted),
        only="__ondatra_do IS NOT NULL",
        columns=[
            f"coalesce({KEY}, __ondatra_known) AS {KEY}",
            "__ondatra_known AS __ondatra_old_key",
            "__ondatra_content",
            "__ondatra_do",
        ],
    )
    changed = int(row["do_i"] or 0) + int(row["do_u"] or 0)
    return changes, Counts.of(row, changed=changed, deleted=int(row["do_d"] or 0)), int(row["old"] or 0)
