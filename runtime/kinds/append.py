"""append: what is new is inserted, nothing else ever happens.

With a key, new are rows whose key is; without, the result less what was appended before, as a multiset.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from runtime.columns import H1, H2, KEY
from runtime.kinds import groups
from runtime.kinds.build import Build
from runtime.kinds.built import Built
from runtime.kinds.counts import Counts
from runtime.kinds.groups import N
from runtime.kinds.writer import broadcast
from runtime.lake.digest import PARTS

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

PLACE, BEFORE = "__ondatra_place", "__ondatra_before"


def make(build: Build) -> Built:
    if build.model.key:
        counts, rows = _first_keys(build) if build.fresh else _new_keys(build)
    else:
        counts, rows = _first(build) if build.fresh else _more(build)
    if not build.fresh and not counts.changed:
        return build.settled(counts)
    previous = build.writer.prepare()
    if counts.changed:
        build.writer.insert(_in_order(build, rows), counts.changed)
    return build.built(counts, previous)


def _in_order(build: Build, rows: DataFrame) -> DataFrame:
    """Row ids grow in the order of an ORDER BY at the top: ids are given task by task, so one task writes."""
    return rows.coalesce(1).sortWithinPartitions(PLACE) if build.ordered else rows


def _placed(build: Build) -> Build:
    """Each row's place is taken down before anything else moves it."""
    if build.ordered:
        build.source.take_down_places(PLACE)
    return build


def _first(build: Build) -> tuple[Counts, DataFrame]:
    digest = build.memory.digest()
    return Counts(digest.rows, changed=digest.rows, digest=digest), _placed(build).source.rows


def _more(build: Build) -> tuple[Counts, DataFrame]:
    from pyspark.sql import Window
    from pyspark.sql import functions as F

    content = [H1, H2]
    new = build.source.rows.groupBy(*content).agg(F.count(F.lit(1)).alias(N))
    old = build.target(*content).groupBy(*content).agg(F.count(F.lit(1)).alias(BEFORE))
    lines = new.join(old, content, "left").withColumn(BEFORE, F.coalesce(BEFORE, F.lit(0)))
    sums = (
        ("sum", N),
        ("bit_xor", f"if({N} % 2 = 1, {H1}, 0)"),
        ("bit_xor", f"if({N} % 2 = 1, {H2}, 0)"),
        ("sum", f"shiftright({H2}, 32) * {N}"),
    )
    watched = {f"d_{part}": f"{how}({what})" for part, (how, what) in zip(PARTS, sums, strict=True)}
    watched |= {"source": f"sum({N})", "invalid": "max(0)", "more": f"sum(greatest({N} - {BEFORE}, 0))"}
    more, row = groups.observed(build, lines, watched, only=f"{N} > {BEFORE}", columns=[*content, BEFORE])
    counts = Counts.of(row, changed=int(row["more"] or 0))
    rows = _placed(build).source.rows.join(broadcast(more, counts.changed), content)
    order = [PLACE] if build.ordered else content
    # the first copies stand for those that were appended before
    copy = F.row_number().over(Window.partitionBy(*content).orderBy(*order))
    return counts, rows.withColumn("__ondatra_copy", copy).filter(F.col("__ondatra_copy") > F.col(BEFORE))


def _first_keys(build: Build) -> tuple[Counts, DataFrame]:
    return groups.check_source(_placed(build), KEY, f"{KEY} IS NULL OR {N} > 1")


def _new_keys(build: Build) -> tuple[Counts, DataFrame]:
    from pyspark.sql import functions as F

    old = build.target(F.col(KEY).alias("__ondatra_known"))
    lines = groups.grouped(build.source.rows.select(KEY, H1, H2), KEY).join(
        old, build.same_key(KEY, "__ondatra_known"), "left"
    )
    new = f"{KEY} IS NOT NULL AND __ondatra_known IS NULL AND {N} = 1"
    aggregates = groups.totals(
        KEY, f"{KEY} IS NULL OR (__ondatra_known IS NULL AND {N} > 1)", {"new": f"sum(if({new}, 1, 0))"}
    )
    found, row = groups.observed(build, lines, aggregates, only=new, columns=[KEY])
    counts = Counts.of(row, changed=int(row["new"] or 0))
    return counts, _placed(build).chosen(found, counts.changed, KEY)
