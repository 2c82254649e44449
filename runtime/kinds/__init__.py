"""Builds: a model's result against its Delta table, one file per kind.

Each kind finds out what changed by hashes, checks `@max_deletes`, and then makes one commit, only if there is anything.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from runtime.kinds import append, merge, one_pass, partition, scd2, table, tracked
from runtime.kinds.build import Asked, Build
from runtime.kinds.built import BuildOptions, Built
from runtime.kinds.sieve import find
from runtime.lake import proof
from runtime.lake.table import LakeTable
from runtime.model import Column, Model

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

__all__ = ["BuildOptions", "Built", "build_model"]

#: DuckDB's whole numbers that only a decimal of the lake can hold.
WHOLE = ("HUGEINT", "UHUGEINT", "UBIGINT", "BIGNUM")
KINDS = {
    "table": table.make,
    "append": append.make,
    "merge": merge.make,
    "tracked": tracked.make,
    "scd2": scd2.make,
    "partition": partition.make,
}


def build_model(
    spark: SparkSession,
    model: Model,
    table: LakeTable,
    source: DataFrame,
    *,
    run_id: int = 0,
    options: BuildOptions | None = None,
    delivered_rows: int = 0,
    ordered: bool = False,
    columns: Sequence[Column] = (),
) -> Built:
    """Brings the table to the source's content. Raises HeldError before it writes when `@max_deletes` says so.

    `columns` are what DuckDB calls the source's; the lake takes its types from the source itself. Where a private part
    of Spark or Delta fails before the commit, the same build is made the plain way.
    """
    integers = frozenset(c.name for c in columns if c.duckdb_type in WHOLE)
    asked = Asked(spark, model, table, source, run_id, options or BuildOptions(), delivered_rows, ordered, integers)
    build = Build(asked)
    try:
        return _made(build)
    except Exception as error:
        if not build.may_be_made_again or not proof.is_to_blame(error):
            raise
        failed = error
    made = _made(Build(asked, quick=False))
    proof.give_up(spark, failed)  # the plain way did it, so the source was not at fault
    return made


def _made(build: Build) -> Built:
    try:
        ahead = one_pass.fits(build) or find.goes_ahead(build)
        unchanged = None if ahead else build.unchanged()
        if unchanged is None:
            build.fit()
        return unchanged or KINDS[build.model.kind](build)
    finally:
        build.close()
