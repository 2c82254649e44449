"""Record files, opened by name and read by column: with fewer columns (7 or 8, as others write) or with more."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from runtime.errors import StoreError
from runtime.records import duck
from runtime.records.duck import quoted
from runtime.records.filter import FileRef
from runtime.tracking.schema import SCHEMA

NAMES = tuple(SCHEMA.names)
_TYPES = {"string": "VARCHAR", "int64": "BIGINT", "int32": "INTEGER", "timestamp[us, tz=UTC]": "TIMESTAMPTZ"}


@dataclass(frozen=True)
class Opened:
    """Files that follow one another and have the same columns."""

    files: tuple[FileRef, ...]
    places: tuple[Path, ...]
    columns: duck.Columns

    def select(self, where: str, columns: Sequence[str] = NAMES, *, position: bool = False) -> str:
        """A SELECT of the named columns of the rows that match."""
        if self.columns.exact:  # a condition of the files' own columns costs less to plan
            told = re.sub(r"\b__row\b", "file_row_number", where)
            return f"{self.source(columns, position=position)} WHERE {told}"
        return f"SELECT * FROM ({self.source(columns, position=position)}) WHERE {where}"

    def count(self, where: str) -> str:
        """How many rows match."""
        position = "__row" in where
        if self.columns.exact and not position:
            return f"SELECT count(*) FROM {self._table(position)} WHERE {where}"
        used = [n for n in NAMES if re.search(rf"\b{n}\b", where)] or ["identifier"]
        return f"SELECT count(*) FROM ({self.source(used, position=position)}) WHERE {where}"

    def source(self, columns: Sequence[str] = NAMES, *, position: bool = False) -> str:
        """A SELECT of the named columns; one that the files lack is NULL. With the row's position in its file and,
        where there are several, the file."""
        picked = columns if self.columns.exact else [f"CAST({self._told(n)} AS {_type(n)}) AS {n}" for n in columns]
        extra = ["file_row_number AS __row", *["filename AS __file"] * (len(self.files) > 1)] if position else []
        return f"SELECT {', '.join([*picked, *extra])} FROM {self._table(position)}"

    def _table(self, position: bool) -> str:
        several = ", filename = true" if len(self.files) > 1 else ""
        options = f", file_row_number = true{several}" if position else ""
        return f"read_parquet($files{options}, hive_partitioning = false)"

    def _told(self, name: str) -> str:
        return name if name in self.columns.names else self._missing(name)

    def _missing(self, name: str) -> str:
        """Older files say only in their path to which sync and run they belong."""
        parts = self.files[0].path.split("/")
        told = {"sync_configuration_id": -3, "sync_run_id": -2}.get(name)
        return (
            quoted(parts[told])
            if told and len(parts) >= 3 and len({f.path.rsplit("/", 1)[0] for f in self.files}) == 1
            else "NULL"
        )

    def each(self) -> Iterator[Opened]:
        """One file at a time."""
        for file, place in zip(self.files, self.places, strict=True):
            yield Opened((file,), (place,), self.columns)

    @property
    def values(self) -> dict[str, Any]:
        return {"files": [str(p) for p in self.places]}


def opened(files: Sequence[FileRef], problems: list[str]) -> Iterator[Opened]:
    """The files in groups of equal columns, in order; one that cannot be read is reported and left out."""
    group: list[tuple[FileRef, Path]] = []
    columns: duck.Columns | None = None
    for file, place in zip(files, _local(files, problems), strict=True):
        if place is None:
            continue
        try:
            mine = duck.columns_of(place)
        except StoreError as error:
            problems.append(str(error))
            continue
        if "identifier" not in mine.names:
            problems.append(f"{file.name}.parquet is no record file: it has no column `identifier`")
            continue
        if columns is not None and mine != columns:
            yield Opened(tuple(f for f, _ in group), tuple(p for _, p in group), columns)
            group = []
        group.append((file, place))
        columns = mine
    if columns is not None:
        yield Opened(tuple(f for f, _ in group), tuple(p for _, p in group), columns)


def _type(name: str) -> str:
    return _TYPES[str(SCHEMA.field(name).type)]


def _local(files: Sequence[FileRef], problems: list[str]) -> Sequence[Path | None]:
    stores = {id(f.store): f.store for f in files}
    if len(stores) == 1:
        try:
            return next(iter(stores.values())).locals([f.path for f in files])
        except StoreError:
            pass  # one by one, to learn which
    found: list[Path | None] = []
    for file in files:
        try:
            found.append(file.store.local(file.path))
        except StoreError as error:
            problems.append(str(error))
            found.append(None)
    return found


def roots(files: Sequence[FileRef]) -> set[Path]:
    """The folders that may be read for these files: the record folder of one organization, or a cache."""
    stores = {id(f.store): f.store for f in files}
    found = set()
    for at, top in {
        (id(f.store), "/".join(f.path.split("/", 2)[:2])) for f in files
    }:  # few, where there are many files
        root = stores[at].local_root()
        found.add(
            root / top
            if top.startswith("sync_tracking_datasets/") and (root / "sync_tracking_datasets").is_dir()
            else root
        )
    return found
