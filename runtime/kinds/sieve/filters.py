"""Bloom filters of the hashes that a table's rows have, kept beside it from build to build, so that few changes cost no
look at the table.

One filter is of all rows as they were when it was made, a second one of the rows that builds have changed since: it is
made again by each, from their hashes, which are kept as well. With one more for each build Spark would make other code
each time, which runs slowly at first. Hashes of rows that have gone stay in it: a row that comes back as it once was
slips through, which the caller's arithmetic shows.
"""

from __future__ import annotations

import threading
import uuid
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING

from runtime.columns import H1, H2
from runtime.config import from_env
from runtime.kinds.build import Build
from runtime.lake import internals, proof
from runtime.lake.note import KeptFilters

if TYPE_CHECKING:
    from pyspark.sql import Column as SparkColumn
    from pyspark.sql import DataFrame

#: Bits of a filter for each row, and hash functions: about three in ten million changed rows slip through.
BITS, FUNCTIONS = 48, 8
#: Every filter is made for at least so many: of few bits, the functions would often look at the same one several times,
#: and rows slip through.
LEAST_ROWS = 20_000
#: Rows above which a filter is too large for a task.
MOST_ROWS = 20_000_000
#: Builds whose rows the second filter may hold, and the share of the rows that it may be of.
MOST_ADDED, SHARE_ADDED = 32, 4
FOLDER, NAME = "_ondatra", "filter-"
#: MiB of heap of which the largest filter is made: it stands there several times on its way to the tasks.
HEAP_OF_ONE = 3_600
#: Rows in the filters of this process now, of all builds side by side.
_held = [0]
_guard = threading.Lock()


@contextmanager
def room(rows: int) -> Iterator[bool]:
    """Whether a filter of so many rows may be held; for the time of the block."""
    with _guard:
        room = fits(rows) and _held[0] + rows <= MOST_ROWS * from_env().heap_mib // HEAP_OF_ONE
        _held[0] += rows if room else 0
    try:
        yield room
    finally:
        with _guard:
            _held[0] -= rows if room else 0


def fits(rows: int) -> bool:
    """Whether a filter of so many rows is ever made here."""
    return rows <= MOST_ROWS * min(1, from_env().heap_mib / HEAP_OF_ONE)


def begin(build: Build, rows: int) -> None:
    """The filter of a table that was just made; without one, the next build makes it."""
    if build.small or not build.is_quick:
        return
    with room(rows) as there_is, _or_none(build):
        if there_is:
            make(build, rows)


@contextmanager
def _or_none(build: Build) -> Iterator[None]:
    """A filter that cannot be made is none: the rows are committed, or will be."""
    try:
        yield
    except Exception as error:
        if not proof.is_to_blame(error):
            raise
        proof.give_up(build.spark, error)
        build.filters = None


def make(build: Build, rows: int) -> None:
    """A new filter of the newest version, which has so many rows; for the caller there must be room. What filters there
    were are removed.

    It is of the other hash than the one before: what slipped through that one will not slip through this one.
    """
    on = H2 if build.filters and build.filters.on == H1 else H1
    build.filters = None
    if build.small or not (rows and fits(rows)):
        return
    build.table.sweep(build.spark, FOLDER, NAME)
    nothing = build.spark.range(1).selectExpr(f"0L AS {on}")
    build.filters = KeptFilters(_written(build, build.target(on), rows), _written(build, nothing, 1), on, (), rows)


def add(build: Build, new: DataFrame, rows: int) -> None:
    """The filters of the build before, with these rows in the second one; none where it is time for new ones."""
    with _or_none(build):
        _add(build, new, rows)


def _add(build: Build, new: DataFrame, rows: int) -> None:
    known = build.filters
    if known is None or len(known.hashes) >= MOST_ADDED or (known.added + rows) * SHARE_ADDED > known.rows:
        build.filters = None
    elif rows:
        name, added = _named(), known.added + rows
        new.select(known.on).coalesce(1).write.parquet(_path(build, name))
        hashes = (*known.hashes, name)
        every = build.spark.read.schema(f"{known.on} BIGINT").parquet(*[_path(build, each) for each in hashes])
        build.filters = replace(known, changed=_written(build, every, added), hashes=hashes, added=added)
        build.table.sweep(build.spark, FOLDER, known.changed)  # whoever dies before it is noted costs a scan


def unknown(build: Build, rows: DataFrame, number: int) -> DataFrame:
    """The rows whose hash the table, which has so many, certainly does not have."""
    from pyspark.errors import AnalysisException

    if build.filters is not None:
        try:
            return _without_known(build, rows, build.filters)
        except AnalysisException:  # a file is gone
            pass
    make(build, number)
    return _without_known(build, rows, build.filters) if build.filters else rows


def _without_known(build: Build, rows: DataFrame, known: KeptFilters) -> DataFrame:
    return passed(build, rows, [_read(build, name) for name in (known.whole, known.changed)], known.on)


def gone(build: Build, there: DataFrame, number: int) -> DataFrame:
    """The rows of the table, which are `there`, whose hash the source, which has so many, certainly does not have."""
    return passed(build, there, [_made(build, build.source.rows.select(H1), number).scalar()])


def passed(build: Build, rows: DataFrame, filters: Sequence[SparkColumn], on: str = H1) -> DataFrame:
    """The rows whose hash `on` no filter may contain."""
    from pyspark.sql import functions as F

    none = F.lit(True)
    for each in filters:
        none = none & ~internals.may_contain(build.spark, each, F.col(on))
    # a column that differs at each look keeps the filters where they are: pushed below the hashes, they would work out
    # parts of them many times over
    kept = rows.withColumn("__ondatra_look", F.monotonically_increasing_id()).filter(
        none & (F.col("__ondatra_look") >= 0)
    )
    return kept.drop("__ondatra_look")


def _made(build: Build, known: DataFrame, number: int) -> DataFrame:
    """One row with a filter of so many hashes. No more tasks than run at a time make it, for each makes a whole one."""
    from pyspark.sql import functions as F

    bits = max(number, LEAST_ROWS) * BITS
    most = str(MOST_ROWS * BITS)
    build.set(
        {
            "spark.sql.optimizer.runtime.bloomFilter.maxNumBits": most,
            "spark.sql.optimizer.runtime.bloomFilter.maxNumItems": most,
        }
    )
    built = internals.filter_of(build.spark, F.col("h"), max(1, int(bits * 0.6931 / FUNCTIONS)), bits)
    hashes = known.toDF("h").coalesce(build.spark.sparkContext.defaultParallelism)
    return hashes.agg(built.alias("filter"))


def _written(build: Build, known: DataFrame, number: int) -> str:
    name = _named()
    _made(build, known, number).coalesce(1).write.option("compression", "uncompressed").parquet(
        _path(build, name)
    )  # bits like these do not shrink
    return name


def _named() -> str:
    return f"{NAME}{uuid.uuid4().hex}"


def _read(build: Build, name: str) -> SparkColumn:
    return build.spark.read.schema("filter BINARY").parquet(_path(build, name)).scalar()


def _path(build: Build, name: str) -> str:
    return f"{build.table.path}/{FOLDER}/{name}"
