"""What a build is made of: the model's result with its key's text and its hashes."""

from __future__ import annotations

import hashlib
import uuid
from collections.abc import Mapping
from functools import cached_property
from threading import Thread
from typing import TYPE_CHECKING

from runtime.columns import H1, H2, HASH, KEY, PARTITION
from runtime.kinds import keys
from runtime.lake import effort, internals
from runtime.lake.hashes import HASHING, with_hashes
from runtime.lake.note import Shape
from runtime.lake.table import ddl, quoted
from runtime.model import Model

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.types import DataType, StructField

#: Rows of the source by which one that changed is known sooner, most often.
FIRST = 5_000
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

#: A build waits so long for its kept frames to go.
RELEASE_SECONDS = 1.0


class Source:
    """The result as it was `given`. `integers` are decimals of the lake that DuckDB calls whole numbers; `chained` has
    hashes made by private parts of Spark."""

    def __init__(self, model: Model, given: DataFrame, integers: frozenset[str], *, chained: bool) -> None:
        self.model, self.given, self.integers, self.chained = model, given, integers, chained
        self.is_read_once = False  # then there is nothing to keep
        self._held: list[DataFrame] = []

    @property
    def is_kept(self) -> bool:
        """Whether the rows are computed once, so that they can be laid together without computing them in one task."""
        return bool(self._held)

    @cached_property
    def is_outside(self) -> bool:
        """Whether another database is asked, of which nobody says how much it tells."""
        return effort.has_unknown(self.given)

    @property
    def told(self) -> int | None:
        """About how many bytes it told this build, once the rows are there."""
        return internals.scanned_bytes(self._held[0]) if self.is_outside and self._held else None

    def read_again(self) -> None:
        """What was read once has to be read more often after all."""
        self.is_read_once = False
        for made in ("plain", "rows"):
            self.__dict__.pop(made, None)

    def release(self) -> None:
        """Nothing that was computed on the way stays behind. To let a frame go, Spark waits for any other build that is
        computing one of its own just then; this build does not."""
        if self._held:
            releasing = Thread(target=lambda: [frame.unpersist() for frame in self._held], name="release", daemon=True)
            releasing.start()
            releasing.join(RELEASE_SECONDS)

    # what it is

    @property
    def shape(self) -> Shape:
        """A table of another kind or key cannot be compared with."""
        return Shape(HASHING, self.model.kind, tuple(name.lower() for name in self.model.key))

    @cached_property
    def fields(self) -> list[StructField]:
        """The SELECT's columns as the lake keeps them."""
        from pyspark.sql import types as t

        return [
            t.StructField(f.name, t.StringType() if isinstance(f.dataType, t.NullType) else f.dataType)
            for f in self.given.schema.fields
        ]

    @property
    def types(self) -> dict[str, DataType]:
        return {f.name: f.dataType for f in self.fields}

    @property
    def names(self) -> list[str]:
        return [f.name for f in self.fields]

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

    # its rows

    @cached_property
    def plain(self) -> DataFrame:
        """The SELECT's columns and the key's text (null where any column of the key is)."""
        from pyspark.sql import types as t

        plain = self.given
        if any(isinstance(f.dataType, t.NullType) for f in plain.schema.fields):
            plain = plain.selectExpr(
                *[f"CAST({quoted(f.name)} AS {ddl(f.dataType)}) AS {quoted(f.name)}" for f in self.fields]
            )
        if not self.is_read_once and effort.is_dear(self.given):
            plain = self._kept(plain)

        if self.model.kind == "partition":
            return plain.withColumn(PARTITION, keys.partition_text(self.model.key, self.types))
        return plain.withColumn(KEY, keys.key_text(self.model.key, self.types)) if self.model.key else plain

    def _kept(self, plain: DataFrame) -> DataFrame:
        """Computed once. Spark keeps equal plans of all sessions once: a plan unlike any other's does not go when
        another build ends."""
        from pyspark import StorageLevel

        kept = plain.selectExpr("*", f"'{uuid.uuid4().hex}' AS __ondatra_build").persist(StorageLevel.MEMORY_AND_DISK)
        self._held.append(kept)
        return kept.drop("__ondatra_build")

    @cached_property
    def rows(self) -> DataFrame:
        """The same with both hashes."""
        return self.hashed(self.plain)

    def hashed(self, rows: DataFrame) -> DataFrame:
        return with_hashes(rows, self.names, self.integers, chained=self.chained)

    def take_down_places(self, column: str) -> None:
        """From here on each row has its place in the result in this column."""
        from pyspark.sql import functions as F

        self.plain = self.plain.withColumn(column, F.monotonically_increasing_id())
        self.rows = self.hashed(self.plain)

    @cached_property
    def first(self) -> str:
        """What the first rows are; one task reads them."""
        return hashlib.sha256(repr(sorted(row[0] for row in self.rows.select(H1).head(FIRST))).encode()).hexdigest()
