"""What the tests of changes and staging share: small Delta tables, written commit by commit, and chunks as lists."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from runtime.lake import effort
from runtime.lake.table import LakeTable
from runtime.model import Column, Model
from runtime.staging import states
from runtime.staging.chunks import WaitingChunk, read_chunk
from runtime.staging.request import Staged, StageRequest
from runtime.staging.stage import stage

HASHED = [("__ondatra_h1", "BIGINT"), ("__ondatra_h2", "BIGINT")]
COLUMNS = {
    "merge": [("id", "STRING"), ("n", "STRING"), *HASHED, ("__ondatra_key", "STRING")],
    "tracked": [("id", "STRING"), ("n", "STRING"), *HASHED, ("__ondatra_key", "STRING"), ("_content_hash", "STRING")],
    "scd2": [
        ("id", "STRING"),
        ("n", "STRING"),
        ("valid_from_snapshot", "BIGINT"),
        ("valid_to_snapshot", "BIGINT"),
        ("is_current", "BOOLEAN"),
        *HASHED,
        ("__ondatra_key", "STRING"),
    ],
}
#: What a table was just after it was made, and after its first rows: copied for the next one that begins in the same
#: way.
_made: dict[tuple[Any, ...], str] = {}
PLAIN = [("id", "STRING"), ("n", "STRING"), *HASHED]


class Lake:
    """One model's table. Each method is one commit; Spark's settings are those with which the product does so
    little."""

    def __init__(self, spark: Any, folder: Path, kind: str) -> None:
        self.spark, self.kind, self.folder = spark, kind, folder
        self.model = Model("sync.out", "models/sync/out.sql", folder / "out.sql", "SELECT 1", 1, kind=kind, key=("id",))  # type: ignore[arg-type]
        self.table = LakeTable((folder / "table").as_uri())
        self.runs = 0
        self._once((kind,), lambda: self.table.create(spark, COLUMNS.get(kind, PLAIN)))
        self.made = self.version

    @property
    def version(self) -> int:
        return self.table.version(self.spark)

    def _once(self, key: tuple[Any, ...], make: Callable[[], None]) -> None:
        place = self.folder / "table"
        if key in _made:
            shutil.copytree(_made[key], place, dirs_exist_ok=True)
        else:
            with effort.fit(self.spark, 0):
                make()
            _made[key] = tempfile.mkdtemp(dir=os.environ["ONDATRA_DATA_DIR"])
            shutil.copytree(place, _made[key], dirs_exist_ok=True)

    def _new(self, rows: Sequence[tuple[str, str]]) -> None:
        said = ", ".join(f"('{id}', '{n}')" for id, n in rows or [("", "")])
        self.spark.sql(
            f"SELECT id, n, xxhash64(id, n) AS __ondatra_h1, CAST(hash(id, n) AS BIGINT) AS __ondatra_h2, id AS "
            f"__ondatra_key "
            f"FROM VALUES {said} AS t(id, n) WHERE id <> ''"
        ).createOrReplaceTempView("new_rows")

    def insert(self, *rows: tuple[str, str]) -> None:
        self._new(rows)
        if self.version == self.made:
            self._once((self.kind, rows), self.insert_view)
        else:
            self.insert_view()

    def _sql(self, text: str) -> None:
        with effort.fit(self.spark, 0):
            self.spark.sql(text)

    def insert_view(self) -> None:
        """Appends the view new_rows."""
        extra = {
            "tracked": ", concat_ws('|', sort_array(collect_list(n) OVER (PARTITION BY id)))",
            "scd2": f", {self.version + 1}, NULL, true",
        }.get(self.kind, "")
        key = ", __ondatra_key" if self.kind in COLUMNS else ""
        more = {"tracked": ", _content_hash", "scd2": ", valid_from_snapshot, valid_to_snapshot, is_current"}.get(
            self.kind, ""
        )
        names = f"id, n, __ondatra_h1, __ondatra_h2{key}"
        self._sql(f"INSERT INTO {self.table.sql} ({names}{more}) SELECT {names}{extra} FROM new_rows ORDER BY id, n")

    def change(self, rows: Sequence[tuple[str, str]], gone: Sequence[str] = ()) -> None:
        """New states of keys or groups, and keys that vanish, as one MERGE of the kind."""
        self._new(rows)
        keys = ", ".join(f"'{k}'" for k in [*gone, *(k for k, _ in rows)])
        vanished = ", ".join(f"'{k}'" for k in gone) or "''"
        if self.kind == "merge":
            self._sql(f"""
                MERGE INTO {self.table.sql} t USING (SELECT *, false AS gone FROM new_rows UNION ALL
                    SELECT id, n, __ondatra_h1, __ondatra_h2, __ondatra_key, true
                        FROM {self.table.sql} WHERE id IN ({vanished})) s
                ON t.__ondatra_key = s.__ondatra_key WHEN MATCHED AND s.gone THEN DELETE
                WHEN MATCHED THEN UPDATE SET n = s.n, __ondatra_h1 = s.__ondatra_h1, __ondatra_h2 = s.__ondatra_h2
                WHEN NOT MATCHED THEN INSERT (id, n, __ondatra_h1, __ondatra_h2, __ondatra_key)
                VALUES (s.id, s.n, s.__ondatra_h1, s.__ondatra_h2, s.__ondatra_key)""")
        elif self.kind == "scd2":
            now = self.version + 1
            self._sql(f"""
                MERGE INTO {self.table.sql} t USING (SELECT *, CAST(NULL AS BIGINT) AS rid FROM new_rows UNION ALL
                    SELECT id, n, __ondatra_h1, __ondatra_h2, __ondatra_key, __ondatra_rowid
                        FROM {self.table.sql} WHERE is_current AND id IN ({keys})) s
                ON t.__ondatra_rowid = s.rid WHEN MATCHED THEN UPDATE SET is_current = false, valid_to_snapshot = {now}
                WHEN NOT MATCHED THEN INSERT (id, n, __ondatra_h1, __ondatra_h2, __ondatra_key,
                        valid_from_snapshot, valid_to_snapshot, is_current)
                VALUES (s.id, s.n, s.__ondatra_h1, s.__ondatra_h2, s.__ondatra_key, {now}, NULL, true)""")
        else:
            self._sql(f"""
                MERGE INTO {self.table.sql} t USING (
                    SELECT *, concat_ws('|', sort_array(collect_list(n) OVER (PARTITION BY id))) AS h,
                        CAST(NULL AS BIGINT) AS rid
                        FROM new_rows UNION ALL
                    SELECT id, n, __ondatra_h1, __ondatra_h2, __ondatra_key, '', __ondatra_rowid
                        FROM {self.table.sql} WHERE id IN ({keys})) s
                ON t.__ondatra_rowid = s.rid WHEN MATCHED THEN DELETE
                WHEN NOT MATCHED THEN INSERT (id, n, __ondatra_h1, __ondatra_h2, __ondatra_key, _content_hash)
                VALUES (s.id, s.n, s.__ondatra_h1, s.__ondatra_h2, s.__ondatra_key, s.h)""")

    def overwrite(self, *rows: tuple[str, str]) -> None:
        """All rows anew, as kind table does it."""
        self._new(rows)
        names = "id, n, __ondatra_h1, __ondatra_h2"
        self._sql(f"INSERT OVERWRITE {self.table.sql} ({names}) SELECT {names} FROM new_rows ORDER BY id")

    def stage(self, mark: int | None, *waiting: WaitingChunk, own_from: int | None = None, **more: Any) -> Staged:
        self.runs += 1
        version = self.version
        with effort.fit(self.spark, 0):
            return stage(
                self.spark,
                StageRequest(
                    self.model,
                    self.table,
                    mark,
                    version,
                    version - 1 if own_from is None else own_from,
                    waiting,
                    (self.folder / f"run {self.runs}").as_uri(),
                    columns=(Column("id", "VARCHAR", "STRING"), Column("n", "VARCHAR", "STRING")),
                    **more,
                ),
            )


def lines(staged: Staged, *, waits: bool = False) -> list[tuple[str, str, str]]:
    """What is sent, in order: change type, id, n."""
    return [row for chunk in staged.chunks if chunk.waits == waits for row in rows_of(chunk.url)]


def rows_of(url: str) -> list[tuple[str, str, str]]:
    table = read_chunk(url, None)
    return list(zip(*(table.column(c).to_pylist() for c in ("__ondatra_change_type", "id", "n")), strict=True))


def waiting(staged: Staged, state: int, first_id: int = 1) -> list[WaitingChunk]:
    """The chunks of a run as they wait when every row got this state."""
    return [
        WaitingChunk(first_id + i, c.url, np.full(c.rows, states.BLOCKED if c.waits else state, dtype=np.uint8))
        for i, c in enumerate(staged.chunks)
    ]


def column(url: str, name: str) -> list[Any]:
    """What a chunk holds there."""
    return read_chunk(url, None).column(name).to_pylist()
