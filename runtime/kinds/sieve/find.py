"""What changed in a large table of which little changed, without moving its rows: two scans of the source, one of the
table, and no shuffle.

A filter of the table's hashes lets through the source's rows that are new or changed; a scan of the table, for their
keys, finds the old rows and where they lie. Whether that was all is decided by arithmetic: the table less the old rows
plus the new ones must have the digest of the source. It has not where a changed row slipped through the filter (one in
millions) or rows without a usable key stand in the source; then the caller joins both sides. Rows that are gone from
the source make it differ, too, and are looked for the same way.

A table that is too large for a filter has its hashes joined with the source's instead: nothing slips through, and no
more is held however large the table is.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from runtime.columns import H1, H2, KEY, ROWID
from runtime.kinds import in_place
from runtime.kinds.aside import aside
from runtime.kinds.build import Build
from runtime.kinds.counts import Counts
from runtime.kinds.sieve import filters, hashes
from runtime.kinds.sieve.found import Found
from runtime.kinds.writer import broadcast
from runtime.lake import effort, internals
from runtime.lake.digest import Digest, row_digests
from runtime.lake.table import quoted

if TYPE_CHECKING:
    from pyspark.sql import Column as SparkColumn
    from pyspark.sql import DataFrame, Row

#: Changed rows above which a join costs less.
MOST_CHANGED = 500_000
#: One row in so many may have changed last time.
SHARE = 8


def goes_ahead(build: Build) -> bool:
    """Whether a scan only to learn that the source differs is left out, because its first rows differ already."""
    return build.model.kind == "merge" and _is_worth_it(build) and build.note.first not in ("", build.source.first)


def find(build: Build) -> Found | None:
    """None where a join finds it better, or must."""
    if not _is_worth_it(build):
        return None
    with filters.room(max(build.memory.before.rows, build.memory.seen.rows if build.memory.seen else 0)) as room:
        if room:
            build.filters = build.note.filters
            return _found(build, filters)
    return _found(build, hashes)


class Known(Protocol):
    """What one side is known by, so that the other's rows are told that are not in it."""

    def unknown(self, build: Build, rows: DataFrame, number: int) -> DataFrame | None:
        """The rows of the source that the table, which has so many, certainly does not have."""
        ...

    def gone(self, build: Build, there: DataFrame, number: int) -> DataFrame | None:
        """The rows of the table, which are `there`, that the source, which has so many, certainly does not have."""
        ...


def _found(build: Build, by: Known, *, again: bool = False) -> Found | None:
    """None if the filter let too many rows through, or too few; in the latter case with two of them, `again` is the
    second."""
    from pyspark.sql import functions as F

    before = build.memory.before
    rows, passed = internals.counted(build.spark, build.source.rows, F.expr(f"shiftright({H2}, 32)"))
    with aside(build.spark, lambda: in_place.opened(build)) as table:
        unknown = by.unknown(build, rows, before.rows)
        if unknown is None:
            return None
        new = build.keep(unknown)
    source = passed()
    told = _told(build, new, F.count_distinct(KEY).alias("keys"))
    added = Digest.of(told)
    if added.rows > MOST_CHANGED or told["keys"] < added.rows:  # a row without a key, or two with one
        return None
    there = table().rows([*map(quoted, build.source.columns), ROWID])
    old = build.keep(_with_keys(there, new, added.rows))
    replaced, gone, deleted = Digest.of(_told(build, old)), None, 0
    now = before - replaced + added
    if not _agrees(build, now, source):
        # rows that became again what they once were are in the filter, and one in millions looks as if it were
        stale = not again and bool(build.filters and build.filters.added)
        if stale and now.rows == source[0]:
            return _found_anew(build)
        unknown = by.gone(build, there, source[0])
        if unknown is None:
            return None
        anew = broadcast(old.select(ROWID), replaced.rows)
        gone = build.keep(unknown.join(anew, ROWID, "left_anti"))
        lost, whole = Digest.of(_told(build, gone)), Digest.of(_told(build, build.target(H1, H2)))
        # rows that went before this and were kept are gone, too
        now = whole - replaced + added - lost
        if not _agrees(build, now, source):
            return None if again or build.filters is None else _found_anew(build)
        deleted = lost.rows if build.model.on_missing == "delete" else 0
    counts = Counts(now.rows, now.rows - added.rows, 0, added.rows, deleted, now)
    return Found(table(), counts, new, old, gone if deleted else None, replaced.rows, added.rows - replaced.rows)


def _agrees(build: Build, now: Digest, source: tuple[int, int]) -> bool:
    """Whether the table, as it would be then, has the rows of the source: their number and sum, and the rest of the
    digest where a scan has told it."""
    return (now.rows, now.sum) == source and build.memory.seen in (None, now)


def _found_anew(build: Build) -> Found | None:
    filters.make(build, build.memory.before.rows)
    return _found(build, filters, again=True)


def _is_worth_it(build: Build) -> bool:
    note = build.note
    same = build.memory.is_of(build.version)
    rows = build.memory.before.rows
    few = note.changed * SHARE <= rows
    fits = same and few and not note.invalid and rows > 0
    return fits and not build.small and build.is_quick


def _told(build: Build, rows: DataFrame, *more: SparkColumn) -> Row:
    """The digest of these rows, and what else is asked for, in one job: adaptive execution makes one of each step."""
    before = effort.change(build.spark, {"spark.sql.adaptive.enabled": "false"})
    try:
        row = rows.agg(*row_digests(), *more).head()
    finally:
        effort.change(build.spark, before)
    assert row is not None
    return row


def _with_keys(rows: DataFrame, wanted: DataFrame, number: int) -> DataFrame:
    """The rows whose key is among so many wanted ones. They are looked up by a number alone, in a third less time than
    by their text or both."""
    from pyspark.sql import functions as F

    known = wanted.select(F.xxhash64(KEY).alias("__ondatra_number"), F.col(KEY).alias("__ondatra_known"))
    return rows.join(
        broadcast(known, number),
        (F.xxhash64(KEY) == F.col("__ondatra_number"))
        & F.coalesce(F.col(KEY) == F.col("__ondatra_known"), F.lit(False)),
        "left_semi",
    )
