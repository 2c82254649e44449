"""partition: a partition is replaced as a whole when its content changed; those that the SELECT does not return stay.

Its old rows accompany the new ones and are no delete records, so `@max_deletes` never holds it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from runtime.columns import H1, H2, PARTITION, ROWID
from runtime.kinds import groups
from runtime.kinds.amounts import Amounts
from runtime.kinds.build import Build
from runtime.kinds.built import Built
from runtime.kinds.counts import Counts
from runtime.kinds.groups import N, S, X, Y
from runtime.kinds.writer import broadcast

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def make(build: Build) -> Built:
    if build.fresh:
        return build.all_new()
    changes, counts, old_rows = _compare(build)
    if not counts.changed:
        return build.settled(counts)
    previous = build.writer.prepare(changes, PARTITION)
    rows = build.chosen(changes.select(PARTITION), counts.changed, PARTITION)
    if old_rows:
        old = (
            build.target(PARTITION, ROWID)
            .join(broadcast(changes.select(PARTITION), old_rows), PARTITION)
            .selectExpr(ROWID, "'D' AS __ondatra_do")
        )
        build.merge(build.both(rows, old), Amounts(inserted=counts.changed, deleted=old_rows))
    else:
        build.writer.insert(rows, counts.changed)
    return build.built(counts, previous)


def _compare(build: Build) -> tuple[DataFrame, Counts, int]:
    """Partitions with something to do, the counts, and how many of the table's rows go."""
    from pyspark.sql import functions as F

    old = groups.grouped(build.target(PARTITION, H1, H2), PARTITION)
    old = old.select(
        F.col(PARTITION).alias("__ondatra_known"), *[F.col(c).alias(f"__ondatra_old{c}") for c in (N, X, Y, S)]
    )
    new = groups.grouped(build.source.rows.select(PARTITION, H1, H2), PARTITION)
    differs = " OR ".join(f"{c} <> __ondatra_old{c}" for c in (N, X, Y, S))
    lines = new.join(old, F.col(PARTITION) == F.col("__ondatra_known"), "left").withColumn(
        "__ondatra_do", F.expr(f"CASE WHEN __ondatra_known IS NULL THEN 'I' WHEN {differs} THEN 'U' END")
    )
    counted = groups.sums("__ondatra_do", "IU", N) | {"old": f"sum(if(__ondatra_do = 'U', __ondatra_old{N}, 0))"}
    changes, row = groups.observed(
        build,
        lines,
        groups.totals(PARTITION, "false", counted),
        only="__ondatra_do IS NOT NULL",
        columns=[PARTITION, "__ondatra_do"],
    )
    return changes, Counts.of(row, changed=int(row["do_i"] or 0) + int(row["do_u"] or 0)), int(row["old"] or 0)
