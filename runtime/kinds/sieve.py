"""What changed in a large table of which little changed, without moving its rows: three scans and no shuffle.

A Bloom filter of the table's hashes lets through the source's rows that are new or changed; a second scan of the table, for
their keys, finds the old rows and where they lie. Whether that was all is decided by arithmetic: the table less the old
rows plus the new ones must have the digest of the source. It has not where a changed row slipped through the filter (one in
millions) or rows without a usable key stand in the source; then the caller joins both sides. Rows that are gone from
the source make it differ, too, and are looked for the same way.
"""
from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from runtime.kinds.base import Counts, Job, broadcast, digest, numbers, row_digests
from runtime.lake import H1, H2, KEY, ROWID, quoted

if TYPE_CHECKING:
    from pyspark.sql import Column as SparkColumn
    from pyspark.sql import DataFrame

#: Bits of the filter for each row, and hash functions: about three in ten million changed rows slip through.
BITS, FUNCTIONS = 48, 8
#: Rows above which the filter is too large for a task, and changed ones above which a join costs less.
MOST_ROWS, MOST_CHANGED = 20_000_000, 500_000
#: One row in so many may have changed last time.
SHARE = 8
FILE, PLACE = "__file", "__place"
NOTHING = [0, 0, 0, 0]
#: Rows in the filters of this process now: builds side by side must not hold more than one of the largest.
_held = [0]
_guard = threading.Lock()


@dataclass(frozen=True)
class Found:
    """`new`: rows of the source with hashes, `old` and `gone`: rows of the table and where they lie; both computed."""

    counts: Counts
    new: DataFrame
    old: DataFrame
    gone: DataFrame | None
    updated: int
    inserted: int


def find(job: Job) -> Found | None:
    """None where a join finds it better, or must."""
    if not _is_worth_it(job) or job.seen is None:
        return None
    with _room(max(int(job.note["source"][0]), numbers(job.seen)[0])) as room:
        return _found(job, job.seen) if room else None


@contextmanager
def _room(rows: int) -> Iterator[bool]:
    """Whether a filter of so many rows may be held; for the time of the block."""
    with _guard:
        room = _held[0] + rows <= MOST_ROWS
        _held[0] += rows if room else 0
    try:
        yield room
    finally:
        with _guard:
            _held[0] -= rows if room else 0


def _found(job: Job, seen: Mapping[str, Any]) -> Found | None:
    before, source = [int(n) for n in job.note["source"]], numbers(seen)
    new = job.keep(_passed(job, job.source, job.target(H1), before[0]))
    added = _digest_of(new)
    if added[0] > MOST_CHANGED or not _are_keys(new, added[0]):
        return None
    old = job.keep(_placed(job).join(broadcast(new.select(KEY), added[0]), KEY, "left_semi"))
    replaced, gone, deleted = _digest_of(old), None, 0
    if _sum(before, replaced, added) != source:
        gone = job.keep(_gone(job, old, source[0]))
        lost, whole = _digest_of(gone), _digest_of(job.target(H1, H2))      # rows that went before this and were kept are gone, too
        if _sum(_sum(whole, replaced, added), lost, NOTHING) != source:
            return None
        deleted = lost[0] if job.model.on_missing == "delete" else 0
    counts = Counts(source[0], source[0] - added[0], 0, added[0], deleted, digest(seen, "d"), "", tuple(source))
    return Found(counts, new, old, gone if deleted else None, replaced[0], added[0] - replaced[0])


def _is_worth_it(job: Job) -> bool:
    note = job.note
    same = note.get("version") == job.version and note.get("columns") == job.signature
    few = int(note.get("changed") or 0) * SHARE <= int((job.seen or {}).get("source") or 0)
    return not job.small and same and few and not note.get("invalid") and 0 < (note.get("source") or NOTHING)[0] <= MOST_ROWS


def _digest_of(rows: DataFrame) -> list[int]:
    row = rows.agg(*row_digests()).head()
    assert row is not None
    return numbers(row)


def _sum(rows: list[int], less: list[int], more: list[int]) -> list[int]:
    """The digest of rows less some and plus others."""
    return [rows[0] - less[0] + more[0], rows[1] ^ less[1] ^ more[1], rows[2] ^ less[2] ^ more[2], rows[3] - less[3] + more[3]]


def _are_keys(new: DataFrame, number: int) -> bool:
    """Whether each row has a key of its own."""
    from pyspark.sql import functions as F

    found = new.agg(F.count_distinct(KEY)).head()
    return found is not None and int(found[0]) == number


def _placed(job: Job) -> DataFrame:
    """The table with the place of each row."""
    from pyspark.sql import functions as F

    return job.target(*map(quoted, job.columns), ROWID, F.expr(f"_metadata.file_path AS {FILE}"), F.expr(f"_metadata.row_index AS {PLACE}"))


def _gone(job: Job, old: DataFrame, source: int) -> DataFrame:
    """Rows of the table whose content the source does not have, less those that it has anew."""
    return _passed(job, _placed(job), job.source.select(H1), source).join(broadcast(old.select(ROWID), source), ROWID, "left_anti")


def _passed(job: Job, rows: DataFrame, known: DataFrame, number: int) -> DataFrame:
    """The rows whose hash is certainly none of the known ones."""
    from pyspark.sql import Column
    from pyspark.sql import functions as F

    jvm: Any = job.spark._jvm
    tools = jvm.org.apache.spark.sql.classic.ExpressionUtils
    bits = number * BITS
    job.set({"spark.sql.optimizer.runtime.bloomFilter.maxNumBits": str(bits), "spark.sql.optimizer.runtime.bloomFilter.maxNumItems": str(bits)})
    # the filter works out the number of its functions from the items it expects
    built = _internal(jvm, "bloom_filter_agg", F.col("h"), F.lit(int(bits * 0.6931 / FUNCTIONS)).cast("bigint"), F.lit(bits).cast("bigint"))
    filter_ = known.select(F.col(H1).alias("h")).agg(built.alias("filter")).scalar()
    contains = jvm.org.apache.spark.sql.catalyst.expressions.BloomFilterMightContain(tools.expression(filter_._jc), tools.expression(F.col(H1)._jc))
    # a column that differs at each look keeps the filter where it is: pushed below the hashes, it would work out parts of them many times over
    kept = rows.withColumn("__look", F.monotonically_increasing_id()).filter(~Column(tools.column(contains)) & (F.col("__look") >= 0))
    return kept.drop("__look")


def _internal(jvm: Any, name: str, *arguments: SparkColumn) -> SparkColumn:
    """A function of Spark's own that has no name in SQL."""
    from pyspark.sql import Column

    loader = jvm.java.lang.Thread.currentThread().getContextClassLoader()
    module = jvm.java.lang.Class.forName("org.apache.spark.sql.Column$", True, loader).getField("MODULE$").get(None)
    return Column(module.internalFn(name, jvm.PythonUtils.toSeq([a._jc for a in arguments])))
