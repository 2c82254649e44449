"""What the tests of kinds share: one model's table, built from literal rows, and its change feed as tuples."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from copy import copy
from pathlib import Path
from typing import Any, Self

import pytest
from pyspark.sql.types import StructType

from runtime import kinds
from runtime.columns import H1
from runtime.lake import effort
from runtime.lake.table import LakeTable, quoted
from runtime.model import MaxDeletes, Model, Sink

#: What a table of some rows is begun with, and sources of it in which rows have no key of use, with their number.
ROWS = [(i, f"n{i}") for i in range(40)]
UNUSABLE = pytest.mark.parametrize(
    "rows, invalid",
    [
        ([*ROWS[:-1], (39, "N"), (None, "x"), (5, "twice")], 3),
        ([*ROWS, (5, "n5")], 2),
        ([*ROWS[:-1], (39, "N"), (39, "O")], 2),
    ],
    ids=["none and one that is there", "the same content twice", "two new contents"],
)


def _values(rows: Sequence[Sequence[Any]], schema: str) -> str:
    """A query of literal rows, whose size Spark knows, as it knows a file's."""
    fields = StructType.fromDDL(schema).fields
    names = ", ".join(f"c{i}" for i in range(len(fields)))
    cast = ", ".join(f"CAST(c{i} AS {f.dataType.simpleString()}) AS {quoted(f.name)}" for i, f in enumerate(fields))
    said = [", ".join("NULL" if v is None else f"'{v}'" for v in row) for row in rows] or [
        ", ".join(["NULL"] * len(fields))
    ]
    return (
        f"SELECT {cast} FROM VALUES {', '.join(f'({row})' for row in said)} AS t({names}) WHERE "
        f"{'true' if rows else 'false'}"
    )


def count_as_large(patch: pytest.MonkeyPatch) -> None:
    """Tables of a few rows count as large, with Spark's settings for little, which take two thirds of the time."""
    little = effort.settings(0)
    patch.setattr(effort, "settings", lambda *_: little)
    patch.setattr(effort, "LITTLE", 0)
    patch.delenv("ONDATRA_PLAIN_BUILD", raising=False)


class Built:
    """One table. `build` is one run; `changes` the feed of what it committed."""

    def __init__(
        self,
        spark: Any,
        folder: Path,
        kind: str,
        *key: str,
        on_missing: str = "ignore",
        max_deletes: MaxDeletes | None = None,
    ) -> None:
        self.spark, self.table, self.delivered = spark, LakeTable((folder / "table").as_uri()), 0
        self.model = Model(
            "sync.out",
            "models/sync/out.sql",
            folder / "out.sql",
            "SELECT 1",
            1,
            kind=kind,
            key=key,  # type: ignore[arg-type]
            on_missing=on_missing,
            max_deletes=max_deletes,
            sink=Sink("echo"),
        )  # type: ignore[arg-type]
        self.last: kinds.Built | None = None

    def build(
        self, *rows: Sequence[Any], schema: str = "id INT, n STRING", sql: str | None = None, **options: Any
    ) -> kinds.Built:
        source = self.spark.sql(sql or _values(rows, schema))
        ordered = bool(options.pop("ordered", False))
        self.last = kinds.build_model(
            self.spark,
            self.model,
            self.table,
            source,
            run_id=7,
            options=kinds.BuildOptions(**options),
            delivered_rows=self.delivered,
            ordered=ordered,
        )
        self.delivered = self.last.source - self.last.invalid_rows
        return self.last

    def another(self, folder: Path) -> Self:
        """A table that holds the same, made in the same way."""
        made = copy(self)
        made.table = LakeTable((folder / "table").as_uri())
        shutil.copytree(self.table.path, made.table.path)
        return made

    def changes(self, *columns: str) -> list[tuple[Any, ...]]:
        """The feed of the last build, these columns, as SQL names them, sorted."""
        assert self.last is not None
        first = (self.last.previous_version or 0) + 1
        if first > self.last.version:
            return []
        with effort.fit(self.spark, -1):
            feed = self.table.feed(self.spark, first, self.last.version)
            return sorted(
                (tuple(r) for r in feed.selectExpr("_change_type", *(columns or ("id", "n"))).collect()), key=repr
            )

    def rows(self, *columns: str) -> list[tuple[Any, ...]]:
        """What the table holds, sorted."""
        with effort.fit(self.spark, -1):
            return sorted(
                (tuple(r) for r in self.table.read(self.spark).selectExpr(*(columns or ("id", "n"))).collect()),
                key=repr,
            )

    def invalid(self) -> list[tuple[Any, ...]]:
        """The columns, the check that failed and the key of each."""
        assert self.last is not None
        return [tuple(r) for r in self.last.invalid.drop(H1).collect()] if self.last.invalid is not None else []
