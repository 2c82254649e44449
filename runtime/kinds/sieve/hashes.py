"""The hashes of one side joined with those of the other, to tell the few that it does not have: a row is moved as two
numbers at most. The rows themselves are looked up by a second scan.

However many rows there are, the driver is given what was found, and a task holds about a million hashes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from runtime.columns import H1, KEY
from runtime.kinds.build import Build
from runtime.kinds.writer import BROADCAST_KEYS, broadcast
from runtime.lake import effort

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

NUMBER, OTHER = "__ondatra_number", "__ondatra_other"


def unknown(build: Build, rows: DataFrame, number: int) -> DataFrame | None:
    """The source's rows with the key of one whose hash the table does not have; None if those are many. Its rows are
    hashed once more where they are among them."""
    from pyspark.sql import functions as F

    told = rows.select(F.xxhash64(KEY).alias(NUMBER), H1)
    found = _alone(build, told, build.target(H1), number)
    if found is None:
        return None
    return build.source.hashed(_among(build.source.plain, F.xxhash64(KEY), found))


def gone(build: Build, there: DataFrame, number: int) -> DataFrame | None:
    """The rows of the table, which are `there`, whose hash the source does not have; None if those are many."""
    from pyspark.sql import functions as F

    found = _alone(build, build.target(F.col(H1).alias(NUMBER), H1), build.source.rows, number)
    return _among(there, F.col(H1), found) if found is not None else None


def _alone(build: Build, rows: DataFrame, other: DataFrame, number: int) -> DataFrame | None:
    """The numbers of the rows whose hash the other side, which has so many, does not have."""
    from pyspark.sql import functions as F

    build.set(effort.sharing(build.spark, number))
    known = other.select(F.col(H1).alias(OTHER)).hint("shuffle_hash")
    found = build.keep(rows.join(known, F.col(H1) == F.col(OTHER), "left_anti").select(NUMBER))
    return found if found.count() <= BROADCAST_KEYS else None


def _among(rows: DataFrame, number: Column, found: DataFrame) -> DataFrame:
    from pyspark.sql import functions as F

    return rows.join(broadcast(found, BROADCAST_KEYS), number == F.col(NUMBER), "left_semi")
