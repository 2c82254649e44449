"""The data commit of found changes, in place: new rows replace the old ones with their key."""

from __future__ import annotations

from typing import TYPE_CHECKING

from runtime.columns import KEY, ROWID
from runtime.kinds import in_place
from runtime.kinds.amounts import Amounts
from runtime.kinds.build import Build
from runtime.kinds.in_place import CHANGE
from runtime.kinds.sieve.found import Found
from runtime.lake.table import quoted

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def write(build: Build, found: Found) -> None:
    """Makes the commit; `build.version` is its version then, and `build.feed` what it tells the change feed."""
    amounts = Amounts(found.updated, found.inserted, found.counts.deleted)
    in_place.write(build, found.opened, _new(build, found), _old(found), amounts)


def _new(build: Build, found: Found) -> DataFrame:
    from pyspark.sql import functions as F

    known = found.old.select(F.col(KEY).alias("__ondatra_known"), F.col(ROWID))
    new = found.new.join(F.broadcast(known), F.col(KEY) == F.col("__ondatra_known"), "left")
    return new.select(*map(quoted, build.source.columns), ROWID)


def _old(found: Found) -> DataFrame:
    from pyspark.sql import functions as F

    replaced = found.old.withColumn(CHANGE, F.lit("update_preimage"))
    return replaced if found.gone is None else replaced.unionByName(found.gone.withColumn(CHANGE, F.lit("delete")))
