"""What a build writes: the table with the source's columns, and one data commit."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

from runtime.columns import ROWID
from runtime.kinds.amounts import Amounts
from runtime.kinds.memory import Memory
from runtime.kinds.source import Source
from runtime.lake import effort
from runtime.lake.note import Lost
from runtime.lake.table import LakeTable, ddl, literal, quoted

if TYPE_CHECKING:
    from pyspark.sql import Column as SparkColumn
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import DataType, StructField

#: Up to so many keys are handed to every task; above, both sides are shuffled.
BROADCAST_KEYS = 500_000
#: Of rows of the table that the build changes.
CHANGED = "__ondatra_changed"
USER_METADATA = "spark.databricks.delta.commitInfo.userMetadata"


def broadcast(rows: DataFrame, number: int) -> DataFrame:
    """A small side goes to every task whole, so that the other side stays where it is."""
    from pyspark.sql import functions as F

    return F.broadcast(rows) if number <= BROADCAST_KEYS else rows


def retyped(value: str, old: DataType, new: DataType, depth: int = 0) -> str:
    """An expression for the same content in another type; NULL where there is none. Fields are found by their names,
    without case where none has the very name."""
    from pyspark.sql import types as t

    if old.simpleString() == new.simpleString():
        return value
    item = f"x{depth}"
    if isinstance(old, t.StructType) and isinstance(new, t.StructType):
        had = {f.name.lower(): f for f in old.fields} | {f.name: f for f in old.fields}
        parts = [(f, had.get(f.name) or had.get(f.name.lower())) for f in new.fields]
        fields = [
            f"{literal(f.name)}, "
            + (retyped(f"{value}.{quoted(h.name)}", h.dataType, f.dataType, depth) if h else _nothing(f.dataType))
            for f, h in parts
        ]
        return f"CASE WHEN {value} IS NOT NULL THEN named_struct({', '.join(fields)}) END"
    if isinstance(old, t.ArrayType) and isinstance(new, t.ArrayType):
        return f"transform({value}, {item} -> {retyped(item, old.elementType, new.elementType, depth + 1)})"
    if isinstance(old, t.MapType) and isinstance(new, t.MapType) and old.keyType == new.keyType:
        values = retyped(item, old.valueType, new.valueType, depth + 1)
        return f"transform_values({value}, (k{depth}, {item}) -> {values})"
    return _retyped_whole(value, old, new)


def _retyped_whole(value: str, old: DataType, new: DataType) -> str:
    from pyspark.sql import types as t

    nested = (t.StructType, t.ArrayType, t.MapType)
    if isinstance(old, nested) and isinstance(new, nested):
        return f"from_json(to_json({value}), {literal(ddl(new))})"
    if isinstance(old, nested) or isinstance(new, nested):
        return _nothing(new)
    if isinstance(old, t.NumericType) and isinstance(new, t.NumericType):
        return f"try_cast({value} AS {ddl(new)})"
    return f"try_cast(CAST({value} AS STRING) AS {ddl(new)})"


def _nothing(kind: DataType) -> str:
    return f"CAST(NULL AS {ddl(kind)})"


class Writer:
    """Of one table. `version` is its newest one, -1 where there is none; `began` the one that the build compares with.
    A `fresh` table has no row, little (`small`) goes into one file. Created `at_once`, a table has its first rows from
    the start."""

    def __init__(
        self,
        spark: SparkSession,
        table: LakeTable,
        source: Source,
        memory: Memory,
        run_id: int,
        version: int,
        *,
        fresh: bool,
        small: bool,
        at_once: bool,
    ) -> None:
        self.spark, self.table, self.source, self.memory, self.run_id = spark, table, source, memory, run_id
        self.version, self.began, self.fresh, self.small, self.at_once = version, version, fresh, small, at_once
        self.is_committing = False  # since then it cannot be known whether a commit that failed is there

    def look(self) -> None:
        """A commit was made."""
        self.version = self.table.version(self.spark)

    def laid(self, rows: DataFrame, number: int | None, *, computed: bool = False) -> DataFrame:
        """Little goes into one file, and so do few rows that are there already."""
        few = number is not None and effort.are_few(number) and (computed or self.source.is_kept)
        return rows.coalesce(1) if self.small or few else rows

    # the table

    def prepare(self, changes: DataFrame | None = None, on: str = ROWID, *, all_new: bool = False) -> int:
        """The table with the columns of the source, if it needs to be there first; the version before the data commit.

        A column of a new type has no values at first. Rows that keep their content get them back, which is no change;
        those of `changes`, told by the column `on`, do not: the old image of a row has None there. With `all_new` no
        row is kept.
        """
        if self.version < 0:
            return self.version if self.at_once else self.create()
        if not self.memory.is_of(self.version):
            with self.told():
                self._evolve(changes, on, keep=not all_new and not self.fresh)
            self.look()
        return self.version

    def create(self) -> int:
        """The table, where it is not there: empty."""
        if self.version < 0:
            self.table.clear(self.spark)
            with self.told():
                self.table.create(self.spark, self._columns)
            self.look()
        return self.version

    @property
    def _columns(self) -> list[tuple[str, str]]:
        return [*((f.name, ddl(f.dataType)) for f in self.source.fields), *self.source.extras]

    def _evolve(self, changes: DataFrame | None, on: str, *, keep: bool) -> None:
        """A build that dies between the two steps leaves a note, so that the next one gives the values back."""
        want = self.source.types
        found = self.table.differences(self.spark, want, [name for name, _ in self.source.extras])
        lost = self.memory.note.lost
        if found.replaced:
            before = lost or Lost(self.began, ())
            lost = Lost(before.version, tuple(sorted({*found.replaced, *before.columns})))
            self.memory.remember_lost(lost)
        if found:
            self.table.alter(self.spark, want, found)
        if lost and keep:
            self._refill(lost.version, lost.columns, changes, on)

    def _refill(self, version: int, lost: Sequence[str], changes: DataFrame | None, on: str) -> None:
        from pyspark.sql import functions as F

        old = self.table.read(self.spark, version)
        had, want = {f.name.lower(): f for f in old.schema.fields}, self.source.types
        lost = [n for n in lost if n.lower() in had and n in want]

        if changes is not None:
            told = changes.filter(F.col(on).isNotNull()).select(on, F.lit(True).alias(CHANGED))
            old = old.join(told, on, "left")
        else:
            old = old.withColumn(CHANGED, F.lit(False))

        columns = [self._value(had[n.lower()], n).alias(n) for n in lost]
        kept = [quoted(n) for n in self.table.read(self.spark).columns if n.lower() in had and n not in lost]
        old.select(*kept, *columns).write.format("delta").mode("overwrite").option("dataChange", "false").save(
            self.table.path
        )

    def _value(self, old: StructField, name: str) -> SparkColumn:
        """What a row has in the column under its new name or type. A key in other letters stays the key of old images,
        too: a delete without it could not be done."""
        from pyspark.sql import functions as F

        kind = self.source.types[name]
        value = retyped(quoted(old.name), old.dataType, kind)
        same_key = name in self.source.model.key and old.dataType.simpleString() == kind.simpleString()
        return F.expr(value if same_key else f"CASE WHEN {CHANGED} IS NOT TRUE THEN {value} END")

    # the data commit

    @contextmanager
    def told(self) -> Iterator[None]:
        """Commits made here carry the run id."""
        self.spark.conf.set(USER_METADATA, json.dumps({"run": self.run_id}))
        try:
            yield
        finally:
            self.spark.conf.unset(USER_METADATA)

    def insert(self, rows: DataFrame, number: int | None, *, computed: bool = False, mode: str = "append") -> None:
        """So many new rows, None where nobody counted them; "overwrite" takes every old one away."""
        laid = self.laid(rows, number, computed=computed).selectExpr(*map(quoted, self.source.columns))
        with self.told():
            if self.version < 0:
                commit = self.table.begun(self.spark, self._columns, laid)
                self.is_committing = True
                commit()
            else:
                laid.write.format("delta").mode(mode).save(self.table.path)
        self.look()

    def merge(self, rows: DataFrame, amounts: Amounts, update: Mapping[str, str] | None) -> None:
        """What `Build.merge` takes. Without rows to insert the join with the table is an inner one, which moves no row
        of it."""
        from delta.tables import DeltaTable

        with self.told():
            step = (
                DeltaTable.forPath(self.spark, self.table.path)
                .alias("t")
                .merge(broadcast(rows, amounts.all).alias("s"), f"t.{ROWID} = s.{ROWID}")
            )
            step = step.whenMatchedDelete("s.__ondatra_do = 'D'")
            if update is not None:
                step = step.whenMatchedUpdate("s.__ondatra_do = 'U'", {quoted(c): value for c, value in update.items()})
            if amounts.inserted:
                step = step.whenNotMatchedInsert(values={quoted(c): f"s.{quoted(c)}" for c in self.source.columns})
            step.execute()
        self.look()
