"""Questions about record files, answered with DuckDB over named files: the database knows each file and what it counts.

Pages go by position: files whose counts say that they hold nothing are not opened, and no page sorts or skips rows
that a count can skip.
"""

from __future__ import annotations

import itertools
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any
from urllib.parse import unquote

import pyarrow.parquet as pq

from runtime.errors import ConfigError, StoreError
from runtime.records import duck, exact
from runtime.records.duck import quoted
from runtime.records.filter import FileRef, Filter
from runtime.records.opened import NAMES, Opened, opened, roots
from runtime.store.base import Store

#: Files looked at together where no count tells which of them hold a match; the last group is all the rest.
GROUPS = (2, 16)
#: Texts that tell which part of a text is rare.
SAMPLE = 300


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
    if where != "true":
        rest = [f for f in rest if chosen.may_hold(f)]
    groups = [([head], f"({where}) AND __row > {behind}")] if head is not None and chosen.may_hold(head) else []
    if not groups:
        offset, rest = _skip(rest, chosen, offset)
    if not groups and not rest:
        return found
    if chosen.sampled:
        where, values = chosen.where(_sample(rest[:1], chosen.sampled))
    following = ((group, where) for group in _groups(rest, chosen, offset + limit + 1))
    for group, condition in itertools.chain(groups, following):
        with duck.cursor(roots(group)) as one:
            for part in opened(group, found.problems):
                offset = _read(one, part, condition, values, found, offset, limit + 1)
        if len(found.rows) > limit:
            last = found.places[limit - 1] if limit else after
            return Page(found.rows[:limit], found.places[:limit], last, found.problems)
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
    if not chosen.by_counts:
        return offset, files
    while offset and at < len(files) and (n := chosen.matches(files[at])) is not None and n <= offset:
        offset -= n
        at += 1
    return offset, files[at:]


def _groups(files: Sequence[FileRef], chosen: Filter, wanted: int) -> Iterator[Sequence[FileRef]]:
    """Files that are read together: where counts tell, as many as fill the page; else all, and where they would have to
    be fetched few, more, all."""
    if not chosen.by_counts:
        bounds = [0, *(() if chosen.exact or all(f.store.near for f in files) else GROUPS), len(files)]
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
        f"__row BETWEEN {offset} AND {offset + wanted - 1}"
        if alone and where == "true"
        else f"{where} LIMIT {wanted} OFFSET {offset}"
    )
    try:
        rows = duck.tuples(one, part.select(cut, position=True), bound)
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
    found.rows.extend([dict(zip(NAMES, row, strict=False)) for row in rows])
    found.places.extend([f"{alone or names[row[-1]]}:{row[at]}" for row in rows])
    return left


def _sample(files: Sequence[FileRef], column: str) -> list[str]:
    """Texts of the first file, which is read anyway."""
    for part in opened(files, []):
        sql = part.select(f"{column} IS NOT NULL LIMIT {SAMPLE}", [column])
        with suppress(StoreError), duck.cursor(roots(files)) as one:
            return [text for (text,) in duck.tuples(one, sql, part.values)]
    return []


def _counted(one: duck.Cursor, part: Opened, where: str, values: Mapping[str, Any]) -> int:
    """As _count, without files that are damaged."""
    try:
        return _count(one, part, where, values)
    except duck.DAMAGED:
        return sum(_counted(one, each, where, values) for each in part.each()) if len(part.files) > 1 else 0


def _count(one: duck.Cursor, part: Opened, where: str, values: Mapping[str, Any]) -> int:
    return int(duck.tuples(one, part.count(where), {**values, **part.values})[0][0])


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
            rows = duck.tuples(one, part.select(f"__row = {int(row)}", position=True), part.values)
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
        if chosen.sampled:
            where, values = chosen.where(_sample(unknown[:1], chosen.sampled))
        with duck.cursor(roots(unknown)) as one:
            total += sum(_counted(one, part, where, values) for part in opened(unknown, []))
    return total


def tally(files: Sequence[FileRef]) -> Counter[tuple[str, str, str]]:
    """(status, operation, change type) -> rows, from what was counted when the files were written."""
    total: Counter[tuple[str, str, str]] = Counter()
    for file in files:
        told = file.operations or {f"{status}||": n for status, n in (file.counts or {}).items()}
        for said, n in told.items():
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
    where = re.sub(r"\$(\w+)", lambda m: _literal(values[m[1]]), where)
    folders = sorted({f.store.url_of(f.path).rsplit("/", 1)[0] for f in files})
    globs = [unquote(folder.removeprefix("file://")) + "/*.parquet" for folder in folders]
    source = quoted(globs[0]) if len(globs) == 1 else f"[{', '.join(map(quoted, globs))}]"
    return f"SELECT *\nFROM read_parquet({source}, hive_partitioning = false)" + (
        f"\nWHERE {where}" if where != "true" else ""
    )


def _literal(value: Any) -> str:
    """A bound value as SQL."""
    if isinstance(value, list):
        return f"[{', '.join(map(quoted, value))}]"
    return quoted(value) if isinstance(value, str) else str(value)
