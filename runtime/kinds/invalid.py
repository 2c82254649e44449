"""Rows of a source that have no usable key."""

from __future__ import annotations

from typing import TYPE_CHECKING

from runtime.columns import H1, KEY
from runtime.kinds.source import Source
from runtime.lake.table import quoted

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

STATUS = "__ondatra_status"
#: In these a key may stand once only.
UNIQUE = ("append", "merge", "scd2")


def invalid_rows(source: Source, before: DataFrame | None) -> DataFrame:
    """The SELECT's columns of these rows, with the check that they failed, their key, and a hash to order by; `before`
    is the table as it was, if it had rows."""
    from pyspark.sql import functions as F

    names = [quoted(n) for n in source.names]
    nobody = source.rows.filter(F.col(KEY).isNull()).selectExpr(*names, f"'NULL' AS {STATUS}", KEY, H1)
    if source.model.kind not in UNIQUE:
        return nobody

    twice = source.rows.filter(F.col(KEY).isNotNull()).groupBy(KEY).count().filter("count > 1").select(KEY)
    if source.model.kind == "append" and before is not None:
        twice = twice.join(before.select(KEY), KEY, "left_anti")
    found = source.rows.join(twice, KEY, "left_semi").selectExpr(*names, f"'DUPLICATE' AS {STATUS}", KEY, H1)
    return nobody.unionByName(found)
