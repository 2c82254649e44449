"""What all kinds share: the source made ready, the one data commit, and the memory that makes an unchanged source
cheap."""

from __future__ import annotations

import hashlib
import json
import uuid
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

from runtime.kinds import keys
from runtime.kinds.built import BuildOptions, Built, Feed
from runtime.lake import effort, note, proof
from runtime.lake.digest import Digest, row_digests
from runtime.lake.hashes import HASHING, with_hashes
from runtime.lake.note import KeptFilters, Lost, Note, Shape
from runtime.lake.table import H1, H2, HASH, KEY, PARTITION, ROWID, LakeTable, ddl, quoted
from runtime.model import Model

if TYPE_CHECKING:
    from pyspark.sql import Column as SparkColumn
    from pyspark.sql import DataFrame, Row, SparkSession
    from pyspark.sql.types import DataType, StructField

#: Up to so many keys are handed to every task; above, both sides are shuffled.
BROADCAST_KEYS = 500_000
#: Rows of the source by which one that changed is known sooner, most often.
FIRST = 5_000
USER_METADATA = "spark.databricks.delta.commitInfo.userMetadata"
#: What a kind keeps of each row besides the SELECT's columns, the row id and the hashes.
EXTRAS: Mapping[str, tuple[tuple[str, str], ...]] = {
    "table": (),
    "append": (),
    "merge": ((KEY, "STRING"),),
    "tracked": ((KEY, "STRING"), (HASH, "STRING")),
    "partition": ((PARTITION, "STRING"),),
    "scd2": (
        ("valid_from_snapshot", "BIGINT"),
        ("valid_to_snapshot", "BIGINT"),
        ("is_current", "BOOLEAN"),
        (KEY, "STRING"),
    ),
}


@dataclass(frozen=True)
class Counts:
    """Rows of the source by what becomes of them, and the table's rows that go. Records, not rows of the feed."""

    source: int = 0
    unchanged: int = 0
    invalid: int = 0
    changed: int = 0
    deleted: int = 0
    digest: Digest = Digest()  # of the whole source
    invalid_digest: str = ""

    @classmethod
    def of(cls, row: Row | Mapping[str, Any], *, changed: int, deleted: int = 0) -> Counts:
        """From one row of `totals`."""
        source, invalid = int(row["source"] or 0), int(row["invalid"] or 0)
        return cls(
            source,
            source - invalid - changed,
            invalid,
            changed,
            deleted,
            Digest.of(row),
            Digest.of(row, "i").text if invalid else "",
        )


def broadcast(rows: DataFrame, number: int) -> DataFrame:
    """A small side goes to every task whole, so that the other side stays where it is."""
    from pyspark.sql import functions as F

    return F.broadcast(rows) if number <= BROADCAST_KEYS else rows


def retyped(value: str, old: DataType, new: DataType) -> str:
    """An expression for the same content in another type; NULL where there is none."""
    from pyspark.sql import types as t

    nested = (t.StructType, t.ArrayType, t.MapType)
    if isinstance(old, nested) or isinstance(new, nested):
        return (
            f"from_json(to_json({value}), '{ddl(new)}')"
            if isinstance(old, nested) and isinstance(new, nested)
            else f"CAST(NULL AS {ddl(new)})"
        )
    if isinstance(old, t.NumericType) and isinstance(new, t.NumericType):
        return f"try_cast({value} AS {ddl(new)})"
    return f"try_cast(CAST({value} AS STRING) AS {ddl(new)})"


@dataclass
class Job:
    """One build while it runs."""

    spark: SparkSession
    model: Model
    table: LakeTable
    given: DataFrame
    run_id: int
    options: BuildOptions
    delivered_rows: int
    ordered: bool
    integers: frozenset[str] = frozenset()  # decimals of the lake that DuckDB calls whole numbers
    fresh: bool = False  # the table has no row yet, known without reading it
    version: int = -1
    began: int = -1  # the version that the source is compared with
    small: bool = False  # both sides fit into one task
    usual: dict[str, str] = field(default_factory=dict)
    held: list[DataFrame] = field(default_factory=list)
    seen: Digest | None = None  # the source's, if one scan has told it
    filters: KeptFilters | None = None  # which filters are of the table as this build leaves it
    feed: Feed | None = None  # what the data commit adds to the change feed, where that is at hand
    quick: bool = True  # private parts of Spark and Delta may be used where they work
    wrote: bool = False  # a commit was begun whose end this build may not have seen

    def open(self) -> None:
        """Looks at what there is; a table of another kind or key starts anew."""
        exists = self.table.exists(self.spark)
        if exists and (self.options.full or note.read(self.spark, self.table).shape not in (None, self.shape)):
            self.table.remove(self.spark)
            exists = False
        self.version = self.began = self.table.version(self.spark) if exists else -1
        self.fresh = self.version < 0 or (self.version == 0 and self.table.is_new(self.spark))
        size = effort.size(self.given) + (0 if self.fresh else self.table.size())
        self.small = size < effort.LITTLE
        self.usual = effort.change(self.spark, effort.settings(size))

    def close(self) -> None:
        """Nothing that was computed or set on the way stays behind."""
        effort.change(self.spark, self.usual)
        for frame in self.held:
            frame.unpersist()

    @cached_property
    def is_quick(self) -> bool:
        """Whether private parts of Spark and Delta may be used: for little they give nothing."""
        return self.quick and not self.small and proof.works(self.spark, self.table)

    @property
    def may_be_made_again(self) -> bool:
        """Whether a quick build that failed wrote nothing."""
        if self.wrote or not self.__dict__.get("is_quick"):
            return False
        return self.began == (self.table.version(self.spark) if self.table.exists(self.spark) else -1)

    def set(self, settings: Mapping[str, str]) -> None:
        """Session settings until the build ends."""
        self.usual = {**effort.change(self.spark, settings), **self.usual}

    @property
    def shape(self) -> Shape:
        """A table of another kind or key cannot be compared with."""
        return Shape(HASHING, self.model.kind, self.model.key)

    # the source

    @cached_property
    def fields(self) -> list[StructField]:
        """The SELECT's columns as the lake keeps them."""
        from pyspark.sql import types as t

        return [
            t.StructField(f.name, t.StringType() if isinstance(f.dataType, t.NullType) else f.dataType)
            for f in self.given.schema.fields
        ]

    @property
    def names(self) -> list[str]:
        return [f.name for f in self.fields]

    @cached_property
    def plain(self) -> DataFrame:
        """The SELECT's columns and the key's text (null where any column of the key is)."""
        from pyspark.sql import types as t

        plain = self.given
        if any(isinstance(f.dataType, t.NullType) for f in plain.schema.fields):
            plain = plain.selectExpr(
                *[f"CAST({quoted(f.name)} AS {ddl(f.dataType)}) AS {quoted(f.name)}" for f in self.fields]
            )
        if effort.is_dear(self.given):
            plain = self._kept(plain)
        types = {f.name: f.dataType for f in self.fields}
        if self.model.kind == "partition":
            return plain.withColumn(PARTITION, keys.partition_text(self.model.key, types))
        return plain.withColumn(KEY, keys.key_text(self.model.key, types)) if self.model.key else plain

    def _kept(self, plain: DataFrame) -> DataFrame:
        """Computed once. Spark keeps equal plans of all sessions once: a plan unlike any other's does not go when
        another build ends."""
        from pyspark import StorageLevel

        kept = plain.selectExpr("*", f"'{uuid.uuid4().hex}' AS __ondatra_build").persist(StorageLevel.MEMORY_AND_DISK)
        self.held.append(kept)
        return kept.drop("__ondatra_build")

    @cached_property
    def source(self) -> DataFrame:
        """The same with both hashes."""
        return self.hashed(self.plain)

    def hashed(self, rows: DataFrame) -> DataFrame:
        return with_hashes(rows, self.names, self.integers, chained=self.is_quick)

    @property
    def extras(self) -> list[tuple[str, str]]:
        """What the table keeps besides: (name, type)."""
        keyed = [(KEY, "STRING")] if self.model.kind == "append" and self.model.key else []
        return [*EXTRAS[self.model.kind], *keyed, (H1, "BIGINT"), (H2, "BIGINT")]

    @property
    def columns(self) -> list[str]:
        """Every column of the table but the row id."""
        return [*self.names, *(name for name, _ in self.extras)]

    @property
    def signature(self) -> tuple[tuple[str, str], ...]:
        return tuple(sorted((f.name, f.dataType.simpleString()) for f in self.fields))

    # the memory

    def unchanged(self) -> Built | None:
        """Nothing to do if the source is what the newest version was built from: one scan of the source, none of the
        table."""
        known = self.note
        asked = known.shape == self.shape and known.on_missing == self.model.on_missing
        if not asked or known.version != self.version or known.columns != self.signature:
            return None
        row = self.source.agg(*row_digests()).head()
        assert row is not None
        self.seen = Digest.of(row)
        if self.seen.text != known.digest:
            return None
        counts = Counts(
            self.seen.rows, self.seen.rows - known.invalid, known.invalid, 0, 0, self.seen, known.invalid_digest
        )
        return self._built("unchanged", counts, self.version)

    @cached_property
    def first(self) -> str:
        """What the source's first rows are; one task reads them."""
        return hashlib.sha256(repr(sorted(row[0] for row in self.source.select(H1).head(FIRST))).encode()).hexdigest()

    @cached_property
    def note(self) -> Note:
        return note.read(self.spark, self.table) if self.version >= 0 else Note()

    def built(self, counts: Counts, previous: int) -> Built:
        """The end of a build that wrote, or found an empty source for a new table."""
        self._remember(counts)
        return self._built("built", counts, previous)

    def settled(self, counts: Counts) -> Built:
        """The end of a build whose source says nothing new, though it may say it in other types."""
        before = self.version
        self.filters = self.filters or self.note.filters
        self.prepare()
        self._remember(counts)
        return self._built("unchanged", counts, before)

    def _remember(self, counts: Counts) -> None:
        fresh = Note(
            version=self.version,
            shape=self.shape,
            on_missing=self.model.on_missing,
            columns=self.signature,
            digest=counts.digest.text,
            invalid=counts.invalid,
            invalid_digest=counts.invalid_digest,
            source=counts.digest,
            filters=self.filters,
            first=self.first if self.filters else "",
            changed=0 if self.fresh else counts.changed + counts.deleted,
        )
        note.write(self.spark, self.table, fresh)

    def _built(self, action: str, counts: Counts, previous: int) -> Built:
        invalid = keys.invalid_rows(self, previous) if counts.invalid else None
        return Built(
            action,
            self.version,
            previous,
            counts.source,
            counts.source,
            counts.invalid,
            counts.invalid_digest,
            invalid,
            counts.deleted,
            self.feed,
        )

    # steps

    def keep(self, frame: DataFrame) -> DataFrame:
        """Computed now, once; what follows is planned quickly, because the plan behind it is forgotten."""
        return frame.localCheckpoint(eager=True)

    def laid(self, rows: DataFrame) -> DataFrame:
        """Little goes into one file."""
        return rows.coalesce(1) if self.small else rows

    def target(self, *columns: str | SparkColumn, where: str | None = None) -> DataFrame:
        """The table before the data commit, only these columns."""
        # read as the newest version, which it is: asked for by its number, Delta would make out its files twice
        frame = self.table.read(self.spark)
        return (frame.filter(where) if where else frame).select(*columns)

    def same_key(self, left: str, right: str) -> SparkColumn:
        """The condition under which two key texts mean the same key: in a list, 1 and "1" do."""
        from pyspark.sql import functions as F

        was = dict(self.note.columns)
        is_now = {f.name: f.dataType.simpleString() for f in self.fields}
        if len(self.model.key) == 1 or all(was.get(n) == is_now[n] for n in self.model.key):
            return F.col(left) == F.col(right)
        bare = "regexp_replace({}, '\"(-?[0-9][0-9.]*|true|false)\"', '$1')"
        return F.expr(bare.format(left)) == F.expr(bare.format(right))

    def chosen(self, changes: DataFrame, number: int, on: str) -> DataFrame:
        """The source's rows whose key stands in `changes`, with its columns; only these are hashed."""
        return self.hashed(self.plain.join(broadcast(changes, number), on))

    def both(self, rows: DataFrame | None, old: DataFrame | None) -> DataFrame:
        """The change set of a MERGE, computed once: new rows and the row ids of old ones."""
        if rows is not None:
            for name, kind in ((ROWID, "BIGINT"), ("__do", "STRING")):
                rows = rows if name in rows.columns else rows.selectExpr("*", f"CAST(NULL AS {kind}) AS {name}")
            rows = rows.selectExpr(*map(quoted, self.columns), ROWID, "__do")
        if rows is None or old is None:
            found = rows if rows is not None else old
        else:
            found = rows.unionByName(old, allowMissingColumns=True)
        assert found is not None
        missing = [n for n in self.columns if n not in found.columns]
        types = {**{f.name: ddl(f.dataType) for f in self.fields}, **dict(self.extras)}
        return self.keep(
            self.laid(found.selectExpr("*", *[f"CAST(NULL AS {types[n]}) AS {quoted(n)}" for n in missing]))
        )

    # writing

    def prepare(self, changes: DataFrame | None = None, *, all_new: bool = False) -> int:
        """The table with the columns of the source; the version before the data commit.

        A column of a new type has no values at first. Rows that keep their content get them back, which is no change;
        those in `changes` do not: the old image of a row has None there. With `all_new` no row is kept.
        """
        if self.version >= 0 and (self.note.version, self.note.columns) == (self.version, self.signature):
            return self.version
        with self.told():
            if self.version < 0:
                self.table.create(self.spark, [*((f.name, ddl(f.dataType)) for f in self.fields), *self.extras])
            else:
                self._evolve(changes, keep=not all_new and not self.fresh)
        self.version = self.table.version(self.spark)
        return self.version

    def _evolve(self, changes: DataFrame | None, *, keep: bool) -> None:
        """A build that dies between the two steps leaves a note, so that the next one gives the values back."""
        want = {f.name: f.dataType for f in self.fields}
        found = self.table.differences(self.spark, want, [name for name, _ in self.extras])
        lost = self.note.lost
        if found.replaced:
            before = lost or Lost(self.began, ())
            lost = Lost(before.version, tuple(sorted({*found.replaced, *before.columns})))
            note.write(self.spark, self.table, Note(shape=self.shape, lost=lost))
        if found:
            self.table.alter(self.spark, want, found)
        if lost and keep:
            self._refill(lost.version, lost.columns, changes)

    def _refill(self, version: int, lost: Sequence[str], changes: DataFrame | None) -> None:
        from pyspark.sql import functions as F

        old = self.table.read(self.spark, version)
        had = {f.name: f.dataType for f in old.schema.fields}
        want = {f.name: f.dataType for f in self.fields}
        lost = [n for n in lost if n in had and n in want]
        if changes is not None and ROWID in changes.columns:
            old = old.join(
                changes.filter(F.col(ROWID).isNotNull()).select(ROWID, F.lit(True).alias("__changes")), ROWID, "left"
            )
        else:
            old = old.withColumn("__changes", F.lit(False))
        columns = [
            F.expr(f"CASE WHEN __changes IS NOT TRUE THEN {retyped(quoted(n), had[n], want[n])} END").alias(n)
            for n in lost
        ]
        kept = [quoted(n) for n in self.table.read(self.spark).columns if n in had and n not in lost]
        old.select(*kept, *columns).write.format("delta").mode("overwrite").option("dataChange", "false").save(
            self.table.path
        )

    @contextmanager
    def told(self) -> Iterator[None]:
        """Commits made here carry the run id."""
        self.spark.conf.set(USER_METADATA, json.dumps({"run": self.run_id}))
        try:
            yield
        finally:
            self.spark.conf.unset(USER_METADATA)

    @contextmanager
    def committing(self) -> Iterator[None]:
        """What is done here may be there afterwards even if it failed."""
        self.wrote = True
        yield

    def insert(self, rows: DataFrame, *, mode: str = "append") -> None:
        """The data commit of new rows; "overwrite" takes every old one away."""
        with self.told():
            self.laid(rows).selectExpr(*map(quoted, self.columns)).write.format("delta").mode(mode).save(
                self.table.path
            )
        self.version = self.table.version(self.spark)

    def merge(self, rows: DataFrame, number: int, update: Mapping[str, str] | None, *, inserts: bool = True) -> None:
        """The data commit of a small change set with `__do`: D deletes the row id's row, U updates it; without a row id
        it is inserted.

        Without `inserts` the join with the table is an inner one, which moves no row of it.
        """
        from delta.tables import DeltaTable

        with self.told():
            step = (
                DeltaTable.forPath(self.spark, self.table.path)
                .alias("t")
                .merge(broadcast(rows, number).alias("s"), f"t.{ROWID} = s.{ROWID}")
            )
            step = step.whenMatchedDelete("s.__do = 'D'")
            if update is not None:
                step = step.whenMatchedUpdate("s.__do = 'U'", {quoted(c): value for c, value in update.items()})
            if inserts:
                step = step.whenNotMatchedInsert(values={quoted(c): f"s.{quoted(c)}" for c in self.columns})
            step.execute()
        self.version = self.table.version(self.spark)
