"""One version of a table as a frame, with as few questions to Delta as it takes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from runtime.lake import proof, transactions
from runtime.lake.table import LakeTable

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


def read(spark: SparkSession, table: LakeTable, version: int) -> DataFrame:
    """The table at that version. Asked for by its number, Delta makes out the table's state anew, by several jobs: the
    newest version is read as what it is."""
    if (frame := _listed(spark, table, version)) is not None:
        return frame
    if table.is_local:
        frame = table.read(spark)
        if table.version(spark) == version:  # nothing was committed since, so this is what was read
            return frame
    return table.read(spark, version)


def _listed(spark: SparkSession, table: LakeTable, version: int) -> DataFrame | None:
    if not proof.reads(spark):
        return None
    try:
        found = transactions.listed(spark, table.path)
    except Exception as error:
        proof.give_up(spark, error)
        return None
    return found[1] if found and found[0] == version else None
