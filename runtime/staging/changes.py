"""The net change: what a destination must be told so that it holds the newest state, given what it was told before.

Rows come from the change feed and from chunks that wait. Each has a `version`: commits of the table, and negative
numbers for waiting chunks, so that older is smaller. Per unit (key, group or row id) only two states count: the image
before the oldest undelivered change and the image after the newest one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from runtime.columns import AGAIN, CHANGE_TYPE, H1, H2, HASH, KEY, PART, RECORD, ROWID
from runtime.lake.table import ddl, quoted
from runtime.staging.chunks import CARRIED, CHANGES, WAITS
from runtime.staging.units import KEYED

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame
    from pyspark.sql.types import StructField

#: What every row carries besides the model's columns, in the order of a chunk file.
CARRIED_ALONG = (ROWID, CHANGE_TYPE, KEY, RECORD, H1, H2, AGAIN)
VERSION, UNKNOWN, BLOCKED = "__ondatra_version", "__ondatra_unknown", "__ondatra_blocked"
BEFORE, AFTER = ("delete", "update_preimage"), ("insert", "update_postimage")


@dataclass(frozen=True)
class Shape:
    """How rows of a kind are put together. `columns` are the model's, in the order of the file, `key` those of its
    key."""

    kind: str
    columns: tuple[StructField, ...]
    key: tuple[str, ...] = ()

    @property
    def together(self) -> str:
        """The column whose equal values are sent together."""
        return KEY if self.kind in KEYED else ROWID

    @property
    def unit(self) -> tuple[str, ...]:
        """The columns that tell one composed thing from another. Versions of scd2 share a key and stay apart."""
        return (KEY, ROWID) if self.kind == "scd2" else (self.together,)

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(field.name for field in self.columns)

    @property
    def order(self) -> tuple[str, ...]:
        """Delivery order within a part, but for the change type, which comes last."""
        return {"merge": (KEY,), "tracked": (KEY,), "scd2": (KEY, "valid_from_snapshot", ROWID)}.get(
            self.kind, (ROWID,)
        )


def aligned(frame: DataFrame, shape: Shape) -> list[str]:
    """The model's columns out of rows that may have an older schema, as SQL: NULL where a column is new or had another
    type. A key in other letters is none that is new.

    As text, because each step of an expression made in Python is a message to the JVM, and there may be a thousand
    columns.
    """
    had = {field.name: field for field in frame.schema.fields}
    keys = {name.lower(): field for name, field in had.items()}

    def column(field: StructField) -> str:
        old = had.get(field.name) or (keys.get(field.name.lower()) if field.name in shape.key else None)
        same = old is not None and old.dataType.simpleString() == field.dataType.simpleString()
        return (
            f"{quoted(old.name) if old is not None and same else f'CAST(NULL AS {ddl(field.dataType)})'} AS "
            f"{quoted(field.name)}"
        )

    return [column(field) for field in shape.columns]


def optional(frame: DataFrame, name: str, spark_type: str) -> str:
    """A column that not every kind or older file has, as SQL."""
    return f"CAST({name if name in frame.columns else 'NULL'} AS {spark_type}) AS {name}"


def feed_rows(frame: DataFrame, shape: Shape) -> DataFrame:
    """Rows of the change feed as `compose` wants them."""
    return frame.selectExpr(
        *aligned(frame, shape),
        f"CAST({ROWID} AS bigint) AS {ROWID}",
        f"_change_type AS {CHANGE_TYPE}",
        optional(frame, KEY, "string"),
        f"true AS {RECORD}",
        optional(frame, H1, "bigint"),
        optional(frame, H2, "bigint"),
        f"false AS {AGAIN}",
        f"CAST(_commit_version AS bigint) AS {VERSION}",
        f"false AS {UNKNOWN}",
        f"false AS {BLOCKED}",
    )


def compose(rows: DataFrame, shape: Shape, own_from: int, *, small: bool = False) -> DataFrame:
    """One net change for each unit, with its `__ondatra_part`. `small` rows go through one task, without a shuffle.

    Rows that are sent `again` under --full say nothing new: what is newer already tells all, but it is told even if it
    leads back to the same content.
    """
    from pyspark.sql import functions as F

    told = _told(rows.coalesce(1) if small else rows, shape, own_from)
    kept = told.withColumn("__ondatra_new_type", _outcome(shape.kind)).filter("__ondatra_new_type IS NOT NULL")
    pair = (
        F.col("__ondatra_new_type").isin("update_preimage", "update_postimage") & F.col("__ondatra_newest").isNotNull()
    )
    renewed = kept.withColumns(
        {
            ROWID: F.when(pair, F.col("__ondatra_newest")).otherwise(F.col(ROWID)),
            CHANGE_TYPE: F.col("__ondatra_new_type"),
            RECORD: (F.col("__ondatra_new_type") != "update_preimage")
            & ~((F.col("__ondatra_new_type") == "delete") & F.col("__ondatra_after")),
            PART: _part(
                F.col("__ondatra_new_type"),
                F.col("__ondatra_after"),
                ~F.col("__ondatra_own") & ~F.col("__ondatra_waits"),
                F.col("__ondatra_waits"),
            ),
        }
    )
    return _with_repeated(renewed.selectExpr(*map(quoted, shape.names), *CARRIED_ALONG, PART), shape)


def _told(rows: DataFrame, shape: Shape, own_from: int) -> DataFrame:
    """Each row with what is known of its unit: two windows over one sort."""
    from pyspark.sql import Window
    from pyspark.sql import functions as F

    unit, together = Window.partitionBy(*shape.unit), Window.partitionBy(shape.together)
    kind, version, real = F.col(CHANGE_TYPE), F.col(VERSION), ~F.col(AGAIN) & ~F.col(BLOCKED)
    dated = rows.withColumns(
        {
            "__ondatra_waits": F.max(BLOCKED).over(together),
            "__ondatra_own": F.max(version).over(together) > own_from,
            "__ondatra_first": F.min(F.when(real, version)).over(unit),
            "__ondatra_last": F.max(F.when(real, version)).over(unit),
            "__ondatra_unsure": F.max(F.col(UNKNOWN) | F.col(AGAIN)).over(unit),
        }
    )
    sided = dated.filter(~F.col(BLOCKED)).withColumns(
        {
            "__ondatra_is_before": real & kind.isin(*BEFORE) & (version == F.col("__ondatra_first")),
            "__ondatra_is_after": real & kind.isin(*AFTER) & (version == F.col("__ondatra_last")),
            "__ondatra_is_gone": real & (kind == "delete") & (version == F.col("__ondatra_last")),
        }
    )
    content = F.col(HASH) if shape.kind == "tracked" else F.struct(H1, H2)
    old, new = (
        F.max(F.when(F.col(side), content)).over(unit) for side in ("__ondatra_is_before", "__ondatra_is_after")
    )
    return sided.withColumns(
        {
            "__ondatra_before": F.max("__ondatra_is_before").over(unit),
            "__ondatra_after": F.max("__ondatra_is_after").over(unit),
            "__ondatra_same": F.lit(False)
            if shape.kind == "scd2"
            else F.coalesce(old == new, F.lit(False)),  # a closed version differs by its end alone
            "__ondatra_newest": F.max(F.when(F.col("__ondatra_is_after"), F.col(ROWID))).over(unit),
        }
    )


def _outcome(kind: str) -> Column:
    """The change type under which a row is sent; null for a row that is not."""
    from pyspark.sql import functions as F

    is_before, is_after, is_gone = F.col("__ondatra_is_before"), F.col("__ondatra_is_after"), F.col("__ondatra_is_gone")
    before, after, unsure = F.col("__ondatra_before"), F.col("__ondatra_after"), F.col("__ondatra_unsure")
    old, new = ("delete", "insert") if kind == "tracked" else ("update_preimage", "update_postimage")
    # The destination holds the group as it was, so these rows of it must go; for other kinds the newest data tell most.
    vanished = is_before if kind == "tracked" else is_gone
    return (
        F.when(F.col("__ondatra_first").isNull(), F.col(CHANGE_TYPE))  # nothing but rows to be sent again
        .when(F.col(AGAIN), None)
        .when(before & after & F.col("__ondatra_same") & ~unsure, None)
        .when(before & after & is_before, F.lit(old))
        .when(before & after & is_after, F.lit(new))
        .when(before & ~after & vanished, F.lit("delete"))
        .when(~before & after & is_after, F.lit("insert"))
        .when(~before & ~after & unsure & is_gone, F.lit("delete"))
    )


def _part(kind: Column, has_new: Column, carried: Column, waits: Column) -> Column:
    """The part of a row as a number: deletes of what vanished come before all else."""
    from pyspark.sql import functions as F

    phase = F.when((kind == "delete") & ~has_new, 0).otherwise(CHANGES)
    return (phase + F.when(carried, CARRIED).otherwise(0) + F.when(waits, WAITS).otherwise(0)).cast("int")


def _with_repeated(rows: DataFrame, shape: Shape) -> DataFrame:
    """Without a key a row's key is its content: a delete is no record if the same content is inserted again.

    A partition is replaced, never only removed: what stands in it now is told, its old rows accompany.
    """
    from pyspark.sql import functions as F

    if shape.kind == "partition":
        return rows.withColumn(RECORD, F.col(RECORD) & (F.col(CHANGE_TYPE) != "delete"))
    if shape.kind != "table":
        return rows
    new = (
        rows.filter(F.col(CHANGE_TYPE) == "insert")
        .select(F.col(H1).alias("__ondatra_r1"), F.col(H2).alias("__ondatra_r2"))
        .distinct()
    )
    is_same = (
        (F.col(CHANGE_TYPE) == "delete") & (F.col(H1) == F.col("__ondatra_r1")) & (F.col(H2) == F.col("__ondatra_r2"))
    )
    return (
        rows.join(new, is_same, "left")
        .withColumn(RECORD, F.col(RECORD) & F.col("__ondatra_r1").isNull())
        .drop("__ondatra_r1", "__ondatra_r2")
    )


def direct(rows: DataFrame, shape: Shape, types: Sequence[str], *, carried: bool) -> DataFrame:
    """The rows of one commit with nothing waiting: they are the net change as they stand."""
    from pyspark.sql import functions as F

    mixed = shape.kind == "tracked" and {"delete", "insert"} <= set(types)  # which groups vanished, and which changed?
    has_new = f"max({CHANGE_TYPE} = 'insert') OVER (PARTITION BY {KEY})" if mixed else f"{CHANGE_TYPE} <> 'delete'"
    made = rows.selectExpr("*", f"{has_new} AS __ondatra_has_new")

    accompanies = f"{CHANGE_TYPE} = 'update_preimage' OR ({CHANGE_TYPE} = 'delete' AND __ondatra_has_new)"
    along = [f"NOT ({accompanies}) AS {RECORD}" if name == RECORD else name for name in CARRIED_ALONG]
    phases = {0 if t == "delete" else CHANGES for t in types}
    if len(phases) == 1:
        part = phases.pop() + (CARRIED if carried else 0)
        made = made.selectExpr(*map(quoted, shape.names), *along, f"{part} AS {PART}")
        return _with_repeated(made, shape) if shape.kind == "partition" else made

    both = _part(F.col(CHANGE_TYPE), F.col("__ondatra_has_new"), F.lit(carried), F.lit(False))
    return _with_repeated(made.withColumn(PART, both).selectExpr(*map(quoted, shape.names), *along, PART), shape)


def again(composed: DataFrame | None, blocked: DataFrame | None, current: DataFrame, shape: Shape) -> DataFrame:
    """Under --full: every current row, and what `compose` found of rows that are gone.

    A row with an undelivered insert is an insert; any other is told as the kind tells a row that is already there.
    """
    from pyspark.sql import functions as F

    unit = list(shape.unit)
    if blocked is not None:  # the job is sending them; what is newer than it waits for its end
        current = current.join(blocked, shape.together, "left_anti")
    there = "update_postimage" if shape.kind in ("merge", "scd2") else "insert"
    if composed is None:
        sent = current.withColumns({CHANGE_TYPE: F.lit(there), AGAIN: F.lit(True), PART: F.lit(CHANGES)})
    else:
        fresh = (
            composed.filter(F.col(CHANGE_TYPE) == "insert")
            .filter(~F.col(AGAIN))
            .select(*unit)
            .distinct()
            .withColumn("__ondatra_fresh", F.lit(True))
        )
        if shape.kind == "tracked":  # a changed group has inserts too, but the destination holds its old rows
            held = composed.filter(F.col(CHANGE_TYPE) == "delete").select(*unit).distinct()
            fresh = fresh.join(held, unit, "left_anti")
        is_fresh = F.col("__ondatra_fresh").isNotNull()
        sent = current.join(fresh, unit, "left").withColumns(
            {CHANGE_TYPE: F.when(is_fresh, "insert").otherwise(there), AGAIN: ~is_fresh, PART: F.lit(CHANGES)}
        )
    columns = [
        *(F.col(quoted(name)) for name in shape.names),
        *map(F.col, CARRIED_ALONG),
        F.col(PART).cast("int").alias(PART),
    ]
    sent = sent.select(*columns)
    if composed is None:
        return sent
    gone = composed.join(current.select(*unit), unit, "left_anti").select(*columns)
    if shape.kind == "tracked":  # old rows of a group that is still there go with its new ones
        old = composed.filter(F.col(CHANGE_TYPE) == "delete").join(current.select(*unit).distinct(), unit, "left_semi")
        gone = gone.unionByName(old.withColumns({RECORD: F.lit(False), PART: F.lit(CHANGES)}).select(*columns))
    return sent.unionByName(gone)
