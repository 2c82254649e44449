"""What changed in a large table of which little changed, without moving its rows: two scans of the source, one of the
table, and no shuffle.

A filter of the table's hashes lets through the source's rows that are new or changed; a scan of the table, for their
keys, finds the old rows and where they lie. Whether that was all is decided by arithmetic: the table less the old rows
plus the new ones must have the digest of the source. It has not where a changed row slipped through the filter (one in
millions) or rows without a usable key stand in the source; then the caller joins both sides. Rows that are gone from
the source make it differ, too, and are looked for the same way.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from runtime.errors import BuildError
from runtime.kinds.build import Counts, Job, broadcast
from runtime.kinds.sieve import filters
from runtime.kinds.sieve.aside import aside
from runtime.lake import effort, internals
from runtime.lake.digest import Digest, row_digests
from runtime.lake.internals import Opened
from runtime.lake.table import H1, H2, KEY, ROWID, quoted

if TYPE_CHECKING:
    from pyspark.sql import Column as SparkColumn
    from pyspark.sql import DataFrame, Row

#: Changed rows above which a join costs less.
MOST_CHANGED = 500_000
#: One row in so many may have changed last time.
SHARE = 8


@dataclass(frozen=True)
class Found:
    """`new`: rows of the source with hashes, `old` and `gone`: rows of the table and where they lie; both computed."""

    opened: Opened
    counts: Counts
    new: DataFrame
    old: DataFrame
    gone: DataFrame | None
    updated: int
    inserted: int


def goes_ahead(job: Job) -> bool:
    """Whether a scan only to learn that the source differs is left out, because its first rows differ already."""
    return (
        job.model.kind == "merge" and job.note.filters is not None and _is_worth_it(job) and job.first != job.note.first
    )


def find(job: Job) -> Found | None:
    """None where a join finds it better, or must."""
    if not _is_worth_it(job):
        return None
    with filters.room(max(_before(job).rows, job.seen.rows if job.seen else 0)) as room:
        job.filters = job.note.filters
        return _found(job) if room else None


def _found(job: Job, *, again: bool = False) -> Found | None:
    """None if the filter let too many rows through, or too few; in the latter case with two of them, `again` is the
    second."""
    from pyspark.sql import functions as F

    before = _before(job)
    rows, passed = internals.counted(job.spark, job.source, F.expr(f"shiftright({H2}, 32)"))
    with aside(job.spark, lambda: _opened(job)) as table:
        new = job.keep(filters.unknown(job, rows, before.rows))
    source = passed()
    told = _told(job, new, F.count_distinct(KEY).alias("keys"))
    added = Digest.of(told)
    if added.rows > MOST_CHANGED or told["keys"] < added.rows:  # a row without a key, or two with one
        return None
    there = table().rows([*map(quoted, job.columns), ROWID])
    old = job.keep(_with_keys(there, new, added.rows))
    replaced, gone, deleted = Digest.of(_told(job, old)), None, 0
    now = before - replaced + added
    if not _agrees(job, now, source):
        # rows that became again what they once were are in the filter, and one in millions looks as if it were
        stale = not again and bool(job.filters and job.filters.added)
        if stale and now.rows == source[0]:
            return _found_anew(job)
        gone = job.keep(_gone(job, there, old, source[0]))
        lost, whole = Digest.of(_told(job, gone)), Digest.of(_told(job, job.target(H1, H2)))
        # rows that went before this and were kept are gone, too
        now = whole - replaced + added - lost
        if not _agrees(job, now, source):
            return None if again else _found_anew(job)
        deleted = lost.rows if job.model.on_missing == "delete" else 0
    counts = Counts(now.rows, now.rows - added.rows, 0, added.rows, deleted, now)
    return Found(table(), counts, new, old, gone if deleted else None, replaced.rows, added.rows - replaced.rows)


def _before(job: Job) -> Digest:
    """The rows that the table was built from."""
    return job.note.source or Digest()


def _opened(job: Job) -> Opened:
    """Raises BuildError where the newest version is not the one that the build compares with."""
    found = internals.opened(job.spark, job.table.path)
    if found.version != job.version:
        raise BuildError(f"{job.table.path} is at version {found.version}, not {job.version}: another process wrote it")
    return found


def _agrees(job: Job, now: Digest, source: tuple[int, int]) -> bool:
    """Whether the table, as it would be then, has the rows of the source: their number and sum, and the rest of the
    digest where a scan has told it."""
    return (now.rows, now.sum) == source and job.seen in (None, now)


def _found_anew(job: Job) -> Found | None:
    filters.make(job, _before(job).rows)
    return _found(job, again=True)


def _is_worth_it(job: Job) -> bool:
    note = job.note
    same = (note.version, note.columns) == (job.version, job.signature)
    rows = _before(job).rows
    few = note.changed * SHARE <= rows
    fits = same and few and not note.invalid and 0 < rows <= filters.MOST_ROWS
    return fits and job.is_quick


def _told(job: Job, rows: DataFrame, *more: SparkColumn) -> Row:
    """The digest of these rows, and what else is asked for, in one job: adaptive execution makes one of each step."""
    before = effort.change(job.spark, {"spark.sql.adaptive.enabled": "false"})
    try:
        row = rows.agg(*row_digests(), *more).head()
    finally:
        effort.change(job.spark, before)
    assert row is not None
    return row


def _with_keys(rows: DataFrame, wanted: DataFrame, number: int) -> DataFrame:
    """The rows whose key is among so many wanted ones. They are looked up by a number alone, in a third less time than
    by their text or both."""
    from pyspark.sql import functions as F

    known = wanted.select(F.xxhash64(KEY).alias("__number"), F.col(KEY).alias("__key"))
    return rows.join(
        broadcast(known, number),
        (F.xxhash64(KEY) == F.col("__number")) & F.coalesce(F.col(KEY) == F.col("__key"), F.lit(False)),
        "left_semi",
    )


def _gone(job: Job, there: DataFrame, old: DataFrame, source: int) -> DataFrame:
    """Rows of the table, which are `there`, whose content the source does not have, less those that it has anew."""
    known = [filters.of(job, job.source, source)]
    return filters.passed(job, there, known).join(broadcast(old.select(ROWID), source), ROWID, "left_anti")
