"""What a build remembers beside its table, in `_ondatra/source.json`, so that the next one has less to do.

A note that is missing, broken or of another version of the program costs a look at the table, and nothing else.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from runtime.columns import H1
from runtime.lake import hadoop
from runtime.lake.digest import Digest
from runtime.lake.table import LakeTable

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

#: Delta leaves folders alone whose name begins with an underscore.
FILE = "_ondatra/source.json"


@dataclass(frozen=True)
class Shape:
    """What decides whether a table can be compared with. `hashing` is the number of the way in which rows are
    hashed; the key's columns stand in lower case, because one whose name only changes its case keeps the key."""

    hashing: int
    kind: str
    key: tuple[str, ...]


@dataclass(frozen=True)
class Lost:
    """Columns whose values a build took away and did not give back yet, and the version that has them."""

    version: int
    columns: tuple[str, ...]


@dataclass(frozen=True)
class KeptFilters:
    """Files of the filters of a table's rows: `whole` of all `rows` as they were when it was made, `changed` of those
    that builds have `added` since, whose hashes lie in the files `hashes`. Both are of the hash column `on`."""

    whole: str
    changed: str
    on: str = H1
    hashes: tuple[str, ...] = ()
    rows: int = 0
    added: int = 0

    @classmethod
    def of(cls, found: Mapping[str, Any]) -> KeptFilters:
        whole, changed = map(str, found["files"])
        hashes = tuple(map(str, found["hashes"]))
        return cls(whole, changed, str(found.get("on", H1)), hashes, int(found["rows"]), int(found["added"]))

    @property
    def said(self) -> dict[str, Any]:
        return {
            "files": [self.whole, self.changed],
            "on": self.on,
            "hashes": self.hashes,
            "rows": self.rows,
            "added": self.added,
        }


@dataclass(frozen=True)
class Note:
    """Of the source that the table's `version` was built from.

    `columns` are its (name, type) in order of their names, `digest` and `invalid_digest` the texts of the digests of
    all its rows and of those without a usable key, `source` the numbers of the former, `first` says what its first rows
    were, `changed` how many rows that build changed or deleted, and `read` about how many bytes it read.
    """

    version: int | None = None
    shape: Shape | None = None
    on_missing: str = ""
    columns: tuple[tuple[str, str], ...] = ()
    digest: str = ""
    invalid: int = 0
    invalid_digest: str = ""
    source: Digest | None = None
    filters: KeptFilters | None = None
    first: str = ""
    changed: int = 0
    lost: Lost | None = None
    read: int | None = None

    @classmethod
    def of(cls, text: str) -> Note:
        """From the file's text. An empty note where that says nothing that could be understood."""
        try:
            return _read(json.loads(text))
        except (AttributeError, LookupError, TypeError, ValueError):
            return cls()

    @property
    def text(self) -> str:
        return json.dumps({name: value for name, value in self._said().items() if value is not None})

    def _said(self) -> dict[str, Any]:
        shape = [self.shape.hashing, self.shape.kind, self.shape.key] if self.shape else None
        return {
            "version": self.version,
            "shape": shape,
            "asked": [*shape, self.on_missing] if shape and self.version is not None else None,
            "columns": self.columns,
            "digest": self.digest,
            "invalid": self.invalid,
            "invalid_digest": self.invalid_digest,
            "source": self.source.numbers if self.source else None,
            "filter": self.filters.said if self.filters else None,
            "first": self.first or None,
            "changed": self.changed,
            "read": self.read,
            "lost": {"version": self.lost.version, "columns": self.lost.columns} if self.lost else None,
        }


def read(spark: SparkSession, table: LakeTable) -> Note:
    """What the last build noted; an empty note if it noted nothing."""
    place = f"{table.path}/{FILE}"
    try:
        return Note.of(Path(place).read_text(encoding="utf-8") if table.is_local else hadoop.read_text(spark, place))
    except OSError:
        return Note()


def write(spark: SparkSession, table: LakeTable, note: Note) -> None:
    """Replaces the note as a whole."""
    place = f"{table.path}/{FILE}"
    if not table.is_local:
        hadoop.write_text(spark, place, note.text)
        return
    Path(place).parent.mkdir(exist_ok=True)
    fresh = Path(place).with_suffix(".new")
    fresh.write_text(note.text, encoding="utf-8")
    fresh.replace(place)


def _read(found: Mapping[str, Any]) -> Note:
    shape, asked, lost = found.get("shape"), found.get("asked"), found.get("lost")
    return Note(
        version=found.get("version"),
        shape=Shape(int(shape[0]), str(shape[1]), tuple(str(name).lower() for name in shape[2])) if shape else None,
        on_missing=str(asked[3]) if asked else "",
        columns=tuple((str(name), str(kind)) for name, kind in found.get("columns") or ()),
        digest=str(found.get("digest") or ""),
        invalid=int(found.get("invalid") or 0),
        invalid_digest=str(found.get("invalid_digest") or ""),
        source=Digest.from_numbers(found["source"]) if found.get("source") else None,
        filters=_filters(found.get("filter")),
        first=str(found.get("first") or ""),
        changed=int(found.get("changed") or 0),
        read=int(found["read"]) if found.get("read") is not None else None,
        lost=Lost(int(lost["version"]), tuple(map(str, lost["columns"]))) if lost else None,
    )


def _filters(found: Any) -> KeptFilters | None:
    """None of an earlier version, which kept one more for each build."""
    return KeptFilters.of(found) if found and "hashes" in found else None
