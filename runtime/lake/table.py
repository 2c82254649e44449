"""A model's Delta table, addressed by its path."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import unquote, urlsplit

from runtime.columns import OURS, ROWID
from runtime.lake import hadoop, transactions

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import DataType

#: 90 days: longer than the longest pause after which a sync may go on from its mark.
PROPERTIES = {
    "delta.enableChangeDataFeed": "true",
    "delta.enableDeletionVectors": "true",
    "delta.columnMapping.mode": "name",
    "delta.enableTypeWidening": "true",
    "delta.deletedFileRetentionDuration": "interval 90 days",
    "delta.logRetentionDuration": "interval 90 days",
    # statistics are read by nobody: every read of a table is of all its files
    "delta.dataSkippingNumIndexedCols": "0",
}
#: The row id as Delta's own schema has it, for what `create` says in SQL.
IDENTITY = {
    "name": ROWID,
    "type": "long",
    "nullable": True,
    "metadata": {"delta.identity.start": 1, "delta.identity.step": 1, "delta.identity.allowExplicitInsert": True},
}
WHOLE = ("tinyint", "smallint", "int", "bigint")
WIDENINGS = (
    {(a, b) for i, a in enumerate(WHOLE) for b in WHOLE[i + 1 :]}
    | {("float", "double")}
    | {(a, "double") for a in WHOLE[:3]}
)


def quoted(name: str) -> str:
    """A name as Spark SQL takes it, whatever its characters."""
    return "`" + name.replace("`", "``") + "`"


def literal(text: str) -> str:
    """A text as Spark SQL takes it."""
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"


def ddl(kind: DataType) -> str:
    """A type as SQL takes it, with its fields' names quoted."""
    from pyspark.sql import types as t

    if isinstance(kind, t.StructType):
        return "STRUCT<" + ", ".join(f"{quoted(f.name)}: {ddl(f.dataType)}" for f in kind.fields) + ">"
    if isinstance(kind, t.ArrayType):
        return f"ARRAY<{ddl(kind.elementType)}>"
    if isinstance(kind, t.MapType):
        return f"MAP<{ddl(kind.keyType)}, {ddl(kind.valueType)}>"
    # the session reads the bare word as a time without a zone
    return "TIMESTAMP_LTZ" if isinstance(kind, t.TimestampType) else kind.simpleString().upper()


def path_of(url: str) -> str:
    """What Spark takes as a path: a local path for file URLs, s3a for S3."""
    if url.startswith("file:"):
        return unquote(urlsplit(url).path)
    return url.replace("s3://", "s3a://", 1)


def _listed(columns: Sequence[tuple[str, str]]) -> str:
    return ", ".join(f"{quoted(name)} {kind}" for name, kind in columns)


@dataclass(frozen=True)
class Differences:
    """Columns by what becomes of them, as they are to be called; `gone` ones as the table calls them.

    One whose name changes its case, or its type to one that is no widening, is replaced: it goes, and comes anew.
    """

    widened: tuple[str, ...]
    replaced: tuple[str, ...]
    gone: tuple[str, ...]
    new: tuple[str, ...]

    def __bool__(self) -> bool:
        return bool(self.widened or self.gone or self.new)


@dataclass(frozen=True)
class LakeTable:
    """The table at `url`; its version numbers are Delta's."""

    url: str

    @property
    def path(self) -> str:
        return path_of(self.url)

    @property
    def sql(self) -> str:
        return f"delta.{quoted(self.path)}"

    @property
    def is_local(self) -> bool:
        return self.url.startswith("file:")

    def exists(self, spark: SparkSession) -> bool:
        if self.is_local:
            return any((Path(self.path) / "_delta_log").glob("*.json"))
        from delta.tables import DeltaTable

        return bool(DeltaTable.isDeltaTable(spark, self.path))

    def version(self, spark: SparkSession) -> int:
        """The newest version, read from the log alone."""
        if self.is_local:
            names = os.listdir(Path(self.path) / "_delta_log")
            return max(int(n[:20]) for n in names if n.endswith(".json") and n[:20].isdigit())
        row = spark.sql(f"DESCRIBE HISTORY {self.sql} LIMIT 1").head()
        assert row is not None
        return int(row["version"])

    def size(self) -> int:
        """Bytes of the files of a local table, old ones included, most of which Delta lays into folders of two letters;
        of another's nothing is known, so it counts as large."""
        if not self.is_local:
            return 1 << 33
        found = (file for name in ("*.parquet", "[!_]*/*.parquet") for file in Path(self.path).glob(name))
        return sum(file.stat().st_size for file in found)

    def is_new(self, spark: SparkSession) -> bool:
        """Whether version 0, if that is the newest, was made without rows; the clone of a table has its rows from the
        start."""
        if self.is_local:
            return '"operation":"CREATE TABLE"' in (Path(self.path) / "_delta_log" / f"{0:020}.json").read_text(
                encoding="utf-8"
            )
        row = spark.sql(f"DESCRIBE HISTORY {self.sql} LIMIT 1").head()
        return row is not None and row["operation"] == "CREATE TABLE"

    def create(self, spark: SparkSession, columns: Sequence[tuple[str, str]]) -> None:
        """An empty table, version 0, of these (name, type) columns and the row id. Row ids may be written when rows are
        only rearranged."""
        listed = f"{_listed(columns)}, {quoted(ROWID)} BIGINT GENERATED BY DEFAULT AS IDENTITY"
        told = ", ".join(f"'{k}' = '{v}'" for k, v in PROPERTIES.items())
        spark.sql(f"CREATE TABLE {self.sql} ({listed}) USING delta TBLPROPERTIES ({told})")

    def begun(self, spark: SparkSession, columns: Sequence[tuple[str, str]], rows: DataFrame) -> Callable[[], None]:
        """What `create` makes, with these rows, which have no row id, from the start: they are written; what is
        returned commits both as version 0."""
        from pyspark.sql.types import StructType

        schema = json.loads(StructType.fromDDL(_listed(columns)).json())
        schema["fields"].append(IDENTITY)
        return transactions.begun(spark, self.path, json.dumps(schema), PROPERTIES, rows)

    def clear(self, spark: SparkSession) -> None:
        """Files that a build left which died before its table's first commit: no table is created over them."""
        log = Path(self.path) / "_delta_log"
        if not self.is_local or (Path(self.path).exists() and not (log.exists() and any(log.iterdir()))):
            self.remove(spark)

    def remove(self, spark: SparkSession) -> None:
        """The table and its history are gone."""
        hadoop.remove(spark, self.path)

    def sweep(self, spark: SparkSession, folder: str, prefix: str) -> None:
        """Removes what stands in this folder of the table's own under names that begin so."""
        hadoop.sweep(spark, f"{self.path}/{folder}", prefix)

    def read(self, spark: SparkSession, version: int | None = None) -> DataFrame:
        reader = spark.read.format("delta")
        return (reader.option("versionAsOf", version) if version is not None else reader).load(self.path)

    def feed(self, spark: SparkSession, start: int, end: int) -> DataFrame:
        """The change feed of versions start … end, with _change_type and _commit_version."""
        return (
            spark.read.format("delta")
            .option("readChangeFeed", "true")
            .option("startingVersion", start)
            .option("endingVersion", end)
            .load(self.path)
        )

    def clone_from(self, spark: SparkSession, real: LakeTable) -> None:
        """A table that shares the other's files and may be written without touching it."""
        spark.sql(f"CREATE OR REPLACE TABLE {self.sql} SHALLOW CLONE {real.sql}")

    # the schema

    def differences(self, spark: SparkSession, wanted: Mapping[str, DataType], own: Sequence[str]) -> Differences:
        """What `alter` has to do so that the columns, but for `own` ones, are these."""
        have = {
            f.name: f.dataType.simpleString()
            for f in self.read(spark).schema
            if not f.name.startswith(OURS) and f.name not in own
        }
        want = {name: kind.simpleString() for name, kind in wanted.items()}
        widened = tuple(n for n in want if n in have and is_widening(have[n], want[n]))
        kept = {n for n in want if n in widened or have.get(n) == want[n]}

        gone = tuple(n for n in have if n not in kept)
        new = tuple(n for n in want if n not in kept)
        left = {n.lower() for n in gone}
        return Differences(widened, tuple(n for n in new if n.lower() in left), gone, new)

    def alter(self, spark: SparkSession, wanted: Mapping[str, DataType], found: Differences) -> None:
        """Commits of their own. Whatever was replaced is NULL in every row afterwards."""
        for name in found.widened:
            spark.sql(f"ALTER TABLE {self.sql} ALTER COLUMN {quoted(name)} TYPE {ddl(wanted[name])}")
        if found.gone:
            spark.sql(f"ALTER TABLE {self.sql} DROP COLUMNS ({', '.join(map(quoted, found.gone))})")
        if found.new:
            added = ", ".join(f"{quoted(n)} {ddl(wanted[n])}" for n in found.new)
            spark.sql(f"ALTER TABLE {self.sql} ADD COLUMNS ({added})")


def is_widening(old: str, new: str) -> bool:
    """Whether Delta widens the one simple type to the other in place."""
    if old.startswith("decimal(") and new.startswith("decimal("):
        (p1, s1), (p2, s2) = ([int(x) for x in t[8:-1].split(",")] for t in (old, new))
        return s2 >= s1 and p2 - s2 >= p1 - s1
    return (old, new) in WIDENINGS
