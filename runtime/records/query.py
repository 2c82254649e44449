"""Questions about record files, answered with DuckDB over named files: the database knows each file and what it counts.

Pages go by position: files whose counts say that they hold nothing are not opened, and no page sorts or skips rows
that a count can skip. Files with fewer columns (7 or 8, as others write them) or more are read by name.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pyarrow.parquet as pq

from runtime.errors import ConfigError, StoreError
from runtime.records import duck, exact
from runtime.records.duck import quoted
from runtime.store.base import Store
from runtime.tracking import messages
from runtime.tracking.files import SCHEMA

NAMES = tuple(SCHEMA.names)
#: What a person may call a status -> the words in the files.
STATUSES: dict[str, tuple[str, ...]] = {
    "success": ("succeeded",),
    "succeeded": ("succeeded",),
    "rejected": ("rejected",),
    "invalid": ("NULL", "DUPLICATE"),
    "null": ("NULL",),
    "duplicate": ("DUPLICATE",),
    "planned": ("planned",),
}
SHOWN = {
    "succeeded": "Success",
    "rejected": "Rejected",
    "NULL": "Invalid",
    "DUPLICATE": "Invalid",
    "planned": "Planned",
}
_TYPES = {"string": "VARCHAR", "int64": "BIGINT", "int32": "INTEGER", "timestamp[us, tz=UTC]": "TIMESTAMPTZ"}
#: Files looked at together where no count tells which of them hold a match; the last group is all the rest.
GROUPS = (2, 16)


@dataclass(frozen=True)
class FileRef:
    """A record file as the database knows it. Without `counts` or `operations` it is opened to be counted."""

    store: Store
    path: str
    rows: int
    counts: Mapping[str, int] | None = None
    operations: Mapping[str, int] | None = None  # "status|operation|change_type" -> rows
    min_identifier: str | None = None
    max_identifier: str | None = None
    run_id: int | None = None

    @property
    def name(self) -> str:
        """`records_updated.3`: unique within a run."""
        return self.path.rsplit("/", 1)[-1].removesuffix(".parquet")


@dataclass(frozen=True)
class Filter:
    """What is looked for; what is None does not matter. `message` is a substring without case in which `%` stands for
    anything, `pattern` a message group, `identifiers` exact ones (plain and masked forms), `prefix` the beginning of
    one."""

    status: str | None = None
    operation: str | None = None
    change_type: str | None = None
    message: str | None = None
    identifier: str | None = None
    prefix: str | None = None
    pattern: str | None = None
    identifiers: tuple[str, ...] = ()

    @property
    def statuses(self) -> tuple[str, ...]:
        """As in the files; empty for all. Raises ConfigError."""
        if not self.status:
            return ()
        try:
            return STATUSES[self.status.lower()]
        except KeyError:
            raise ConfigError(f"there is no status {self.status!r}; there are: {', '.join(STATUSES)}") from None

    @property
    def exact(self) -> tuple[str, ...]:
        return (*self.identifiers, *(() if self.identifier is None else (self.identifier,)))

    @property
    def by_counts(self) -> bool:
        """Whether the files' counts alone tell how many rows match."""
        return not (self.exact or self.prefix or self.message or self.pattern)

    def matches(self, file: FileRef) -> int | None:
        """How many rows of the file match, where its counts tell."""
        if self.operation or self.change_type:
            if file.operations is None:
                return None
            split = [(k.split("|"), n) for k, n in file.operations.items()]
            return sum(
                n
                for (status, operation, change), n in split
                if (not self.statuses or status in self.statuses)
                and self.operation in (None, "", operation)
                and self.change_type in (None, "", change)
            )
        if not self.statuses:
            return file.rows
        return None if file.counts is None else sum(file.counts.get(s, 0) for s in self.statuses)

    def may_hold(self, file: FileRef) -> bool:
        """Whether it is worth opening the file."""
        if self.matches(file) == 0:
            return False
        low, high = file.min_identifier, file.max_identifier
        if low is None or high is None:
            return True
        if self.exact and not any(low <= text <= high for text in self.exact):
            return False
        return not self.prefix or (
            low[: len(self.prefix)] <= self.prefix <= high[: len(self.prefix)] if self.prefix else True
        )

    def where(self) -> tuple[str, dict[str, Any]]:
        """The condition with its bound values."""
        parts: list[str] = []
        values: dict[str, Any] = {}

        def add(sql: str, **bound: Any) -> None:
            parts.append(sql)
            values.update(bound)

        if self.statuses:
            add(
                f"status IN ({', '.join(map(quoted, self.statuses))})"
            )  # our own words, so that files are pruned by them
        if self.operation:
            add("operation = $operation", operation=self.operation)
        if self.change_type:
            add("change_type = $change_type", change_type=self.change_type)
        if len(self.exact) == 1:
            add("identifier = $identifier", identifier=self.exact[0])
        elif self.exact:
            add("list_contains($identifiers, identifier)", identifiers=list(self.exact))
        if self.prefix:
            add("starts_with(identifier, $prefix)", prefix=self.prefix)
        if self.message and "%" not in self.message:
            # most rows have no message, and to see that costs less than to look for text in none
            add("status_message IS NOT NULL AND contains(lower(status_message), lower($message))", message=self.message)
        elif self.message:
            add(
                r"status_message ILIKE $message ESCAPE '\'",
                message="%" + re.sub(r"([\\_])", r"\\\1", self.message) + "%",
            )
        if self.pattern:
            add(r"status_message LIKE $pattern ESCAPE '\'", pattern=messages.like(self.pattern))
        return " AND ".join(parts) or "true", values


@dataclass(frozen=True)
class Page:
    """Rows with the files' columns; `places[i]` is the address of row i, `next` what to give as `after` for more."""

    rows: list[dict[str, Any]] = field(default_factory=list)
    places: list[str] = field(default_factory=list)
    next: str | None = None
    problems: list[str] = field(default_factory=list)


def planned_file(store: Store, path: str, run_id: int | None = None) -> FileRef:
    """A file that the database does not know; it is counted here."""
    said = pq.read_table(store.local(path), columns=["status", "operation", "change_type"], partitioning=None)
    counted = said.group_by(said.column_names).aggregate([([], "count_all")]).to_pylist()
    operations = {f"{r['status']}|{r['operation']}|{r['change_type'] or ''}": r["count_all"] for r in counted}
    return FileRef(store, path, said.num_rows, {"planned": said.num_rows}, operations, run_id=run_id)


# reading


@dataclass(frozen=True)
class Opened:
    """Files that follow one another and have the same columns."""

    files: tuple[FileRef, ...]
    places: tuple[Path, ...]
    names: frozenset[str]

    def source(self, columns: Sequence[str] = NAMES, *, position: bool = False) -> str:
        """A SELECT of the named columns; one that the files lack is NULL. With the row's position in its file and,
        where there are several, the file."""
        picked = [
            f"CAST({name} AS {_TYPES[str(SCHEMA.field(name).type)]}) AS {name}"
            if name in self.names
            else f"CAST({self._missing(name)} AS {_TYPES[str(SCHEMA.field(name).type)]}) AS {name}"
            for name in columns
        ]
        extra = ["file_row_number AS __row", *["filename AS __file"] * (len(self.files) > 1)] if position else []
        options = ", file_row_number = true, filename = true" if position else ""
        return f"SELECT {', '.join([*picked, *extra])} FROM read_parquet($files{options}, hive_partitioning = false)"

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
            yield Opened((file,), (place,), self.names)

    @property
    def values(self) -> dict[str, Any]:
        return {"files": [str(p) for p in self.places]}


def opened(files: Sequence[FileRef], problems: list[str]) -> Iterator[Opened]:
    """The files in groups of equal columns, in order; one that cannot be read is reported and left out."""
    group: list[tuple[FileRef, Path]] = []
    names: frozenset[str] = frozenset()
    for file, place in zip(files, _local(files, problems), strict=True):
        if place is None:
            continue
        try:
            mine = frozenset(duck.columns_of(place)) & frozenset(NAMES)
        except StoreError as error:
            problems.append(str(error))
            continue
        if "identifier" not in mine:
            problems.append(f"{file.name}.parquet is no record file: it has no column `identifier`")
            continue
        if group and mine != names:
            yield Opened(tuple(f for f, _ in group), tuple(p for _, p in group), names)
            group = []
        group.append((file, place))
        names = mine
    if group:
        yield Opened(tuple(f for f, _ in group), tuple(p for _, p in group), names)


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


# questions


def page(
    files: Sequence[FileRef],
    filter: Filter | None = None,
    *,
    after: str | None = None,
    offset: int = 0,
    limit: int = 100,
) -> Page:
    """At most `limit` rows that match, behind the address `after` and `offset` further matches. Files stay in their
    order."""
    chosen = filter or Filter()
    where, values = chosen.where()
    found = Page()
    head, rest, behind = _cut(files, after)
    rest = [f for f in rest if chosen.may_hold(f)]
    groups = [([head], f"({where}) AND __row > {behind}")] if head is not None and chosen.may_hold(head) else []
    if not groups:
        offset, rest = _skip(rest, chosen, offset)
    if not groups and not rest:
        return found
    with duck.cursor(roots([*([head] if head else []), *rest])) as one:
        for group, condition in [*groups, *((g, where) for g in _groups(rest, chosen, offset + limit + 1))]:
            for part in opened(group, found.problems):
                offset = _read(one, part, condition, values, found, offset, limit + 1)
            if len(found.rows) > limit:
                return Page(
                    found.rows[:limit],
                    found.places[:limit],
                    found.places[limit - 1] if limit else after,
                    found.problems,
                )
    return found


def _cut(files: Sequence[FileRef], after: str | None) -> tuple[FileRef | None, Sequence[FileRef], int]:
    """The file of the address, the files behind it, and the row."""
    if not after:
        return None, files, -1
    name, _, row = after.rpartition(":")
    at = next((i for i, f in enumerate(files) if f.name == name), None)
    if at is None or not is_row(row):
        raise ConfigError(f"there is no page behind {after!r} in this run: begin at the first page")
    return files[at], files[at + 1 :], int(row)


def _skip(files: Sequence[FileRef], chosen: Filter, offset: int) -> tuple[int, Sequence[FileRef]]:
    """Leaves out files whose counts lie wholly before the offset; they are not opened."""
    at = 0
    while (
        chosen.by_counts and offset and at < len(files) and (n := chosen.matches(files[at])) is not None and n <= offset
    ):
        offset -= n
        at += 1
    return offset, files[at:]


def _groups(files: Sequence[FileRef], chosen: Filter, wanted: int) -> Iterator[Sequence[FileRef]]:
    """Files that are read together: where counts tell, as many as fill the page; else few, more, all."""
    if not chosen.by_counts:
        bounds = [0, *(() if chosen.exact else GROUPS), len(files)]
        yield from (files[low:high] for low, high in pairwise(bounds) if files[low:high])
        return
    group: list[FileRef] = []
    total = 0
    for file in files:
        group.append(file)
        total += chosen.matches(file) or 0
        if total >= wanted:
            yield group
            group, total = [], 0
    if group:
        yield group


def _read(
    one: duck.Cursor, part: Opened, where: str, values: Mapping[str, Any], found: Page, offset: int, most: int
) -> int:
    """Adds matching rows up to `most` in all; what is left of the offset."""
    if (wanted := most - len(found.rows)) <= 0:
        return offset
    bound = {**values, **part.values}
    alone = part.files[0].name if len(part.files) == 1 else ""
    # a range of positions skips what lies before it without reading it
    cut = (
        f"AND __row BETWEEN {offset} AND {offset + wanted - 1}"
        if alone and where == "true"
        else f"LIMIT {wanted} OFFSET {offset}"
    )
    try:
        rows = duck.tuples(one, f"SELECT * FROM ({part.source(position=True)}) WHERE {where} {cut}", bound)
        left = 0 if rows or not offset else max(0, offset - _count(one, part, where, values))
    except duck.DAMAGED as error:
        if len(part.files) == 1:
            found.problems.append(duck.unreadable(part.files[0].name, error))
            return offset
        for each in part.each():  # one of them is damaged: the others are shown
            offset = _read(one, each, where, values, found, offset, most)
        return offset
    names = {str(p): f.name for p, f in zip(part.places, part.files, strict=True)}
    at = len(NAMES)
    for row in rows:
        found.rows.append(dict(zip(NAMES, row, strict=False)))
        found.places.append(f"{alone or names[row[-1]]}:{row[at]}")
    return left


def _counted(one: duck.Cursor, part: Opened, where: str, values: Mapping[str, Any]) -> int:
    """As _count, without files that are damaged."""
    try:
        return _count(one, part, where, values)
    except duck.DAMAGED:
        return sum(_counted(one, each, where, values) for each in part.each()) if len(part.files) > 1 else 0


def _count(one: duck.Cursor, part: Opened, where: str, values: Mapping[str, Any]) -> int:
    used = [n for n in NAMES if re.search(rf"\b{n}\b", where)] or ["identifier"]
    sql = f"SELECT count(*) FROM ({part.source(used, position='__row' in where)}) WHERE {where}"
    return int(duck.tuples(one, sql, {**values, **part.values})[0][0])


def is_row(text: str) -> bool:
    """Whether an address may name a row so: other digits than ours are no number, and no file has so many rows."""
    return text.isascii() and text.isdigit() and len(text) < 19


def record(files: Sequence[FileRef], place: str) -> dict[str, Any] | None:
    """The record at an address."""
    name, _, row = place.rpartition(":")
    chosen = [f for f in files if f.name == name]
    if not chosen or not is_row(row):
        return None
    with duck.cursor(roots(chosen)) as one:
        for part in opened(chosen, []):
            rows = duck.tuples(
                one, f"SELECT * FROM ({part.source(position=True)}) WHERE __row = {int(row)}", part.values
            )
            return dict(zip(NAMES, rows[0], strict=False)) if rows else None
    return None


def count(files: Sequence[FileRef], filter: Filter | None = None) -> int:
    """How many rows match; no file is opened where their counts tell."""
    chosen = filter or Filter()
    where, values = chosen.where()
    known = [(f, chosen.matches(f) if chosen.by_counts else None) for f in files if chosen.may_hold(f)]
    total = sum(n for _, n in known if n is not None)
    unknown = [f for f, n in known if n is None]
    if unknown:
        with duck.cursor(roots(unknown)) as one:
            total += sum(_counted(one, part, where, values) for part in opened(unknown, []))
    return total


def tally(files: Sequence[FileRef]) -> Counter[tuple[str, str, str]]:
    """(status, operation, change type) -> rows, from what was counted when the files were written."""
    total: Counter[tuple[str, str, str]] = Counter()
    for file in files:
        for said, n in (file.operations or {}).items():
            status, operation, change = said.split("|")
            total[status, operation, change] += n
    return total


def difference(record: Mapping[str, Any]) -> list[tuple[str, Any, Any]]:
    """The fields that changed since the thing was last delivered: name, old, new, with numbers as `exact.Number`. Empty
    where there is no old state."""
    if not record.get("previous_payload") or not record.get("record_payload"):
        return []
    old, new = exact.loads(record["previous_payload"]), exact.loads(record["record_payload"])
    return [(name, old.get(name), new.get(name)) for name in {**new, **old} if old.get(name) != new.get(name)]


def duckdb_query(files: Sequence[FileRef], filter: Filter | None = None) -> str:
    """SQL that gives the same rows in any DuckDB that may read the store."""
    chosen = filter or Filter()
    where, values = chosen.where()
    texts = {n: f"[{', '.join(map(quoted, v))}]" if isinstance(v, list) else quoted(v) for n, v in values.items()}
    where = re.sub(r"\$(\w+)", lambda m: texts[m[1]], where)
    folders = sorted({f.store.url_of(f.path).rsplit("/", 1)[0] for f in files})
    globs = [unquote(folder.removeprefix("file://")) + "/*.parquet" for folder in folders]
    source = quoted(globs[0]) if len(globs) == 1 else f"[{', '.join(map(quoted, globs))}]"
    return f"SELECT *\nFROM read_parquet({source}, hive_partitioning = false)" + (
        f"\nWHERE {where}" if where != "true" else ""
    )
