"""What happened to one thing over all runs, from an index: one row a record, sorted by identifier, in a few files.

The index of a sync is derived: it may be deleted at any time and is made again. Record files that it does not cover yet
are asked directly, so that an answer is never older than the files. Index files are merged as they grow, so that there
are few, and each names the record files that it covers.
"""

from __future__ import annotations

import fcntl
import os
import uuid
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import lru_cache
from pathlib import Path
from typing import Any

import duckdb
import orjson
import pyarrow as pa
import pyarrow.parquet as pq

from runtime.errors import StoreError
from runtime.records import duck
from runtime.records.query import FileRef, Filter, Opened, opened, roots

#: What the index says of each record; the rest is fetched by `place`.
COLUMNS = (
    "identifier",
    "sync_run_id",
    "status",
    "status_message",
    "operation",
    "change_type",
    "outcome",
    "batch_ended_at",
)
NAMES = (*COLUMNS, "place")
#: Long messages are cut in the index; the record has them whole.
LONGEST_MESSAGE = 300
#: A new index file is merged with one that is at most this many times as large.
GROWTH = 4
#: An index file is written anew without expired records once they are this part of the record files that it covers.
GONE_SHARE = 4
#: Comes after whatever may follow the beginning of a text.
LAST = "\U0010ffff"
_GROUP_ROWS = 20_000
#: Record files read at once while the index is made: bounds its memory.
_FILES_AT_ONCE = 64


class HistoryIndex:
    """The index of one sync in a folder of this machine."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def find(
        self, files: Sequence[FileRef], identifiers: Sequence[str], *, prefix: str | None = None, limit: int = 200
    ) -> list[dict[str, Any]]:
        """Records of these identifiers, and of all that begin with `prefix`, newest first; only of these files, which
        are those that are still kept."""
        covered = self.covered()
        chosen = [Filter(identifiers=tuple(identifiers))] if identifiers else []
        chosen += [Filter(prefix=prefix)] if prefix else []

        kept = {key(f) for f in files} & covered
        found = [row for one in chosen for row in (self._indexed(kept, one, limit) if kept else [])]
        missing = [f for f in files if key(f) not in covered]
        found += [row for one in chosen for row in _asked(missing, one, limit)]

        unique = {row["place"]: row for row in found}
        return sorted(
            unique.values(),
            key=lambda r: (int(r["sync_run_id"] or 0), str(r["batch_ended_at"]), r["place"]),
            reverse=True,
        )[:limit]

    def covered(self) -> set[str]:
        """The record files that are in the index."""
        return {name for place in self._places() for name in _covers(place)}

    def refresh(self, files: Sequence[FileRef]) -> int:
        """Adds what is missing; how many files that were. Does nothing while another process does it."""
        with self._alone() as mine:
            if not mine:
                return 0
            covered = self.covered()
            missing = [f for f in files if key(f) not in covered]
            for at in range(0, len(missing), _FILES_AT_ONCE):
                self._add(missing[at : at + _FILES_AT_ONCE])
            self._merge({key(f) for f in files})
        return len(missing)

    # files

    def _places(self) -> list[Path]:
        return sorted(self.folder.glob("*.parquet"), key=lambda p: p.name)

    @contextmanager
    def _alone(self) -> Iterator[bool]:
        self.folder.mkdir(parents=True, exist_ok=True)
        with (self.folder / "lock").open("w") as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                yield False
                return
            yield True

    def _add(self, files: Sequence[FileRef]) -> None:
        problems: list[str] = []
        parts = [one for part in opened(files, problems) for one in part.each()]
        tables, covered = [], list[str]()
        with duck.cursor(roots(files), seconds=0) as cursor:
            for part in parts:
                sql = (
                    f"SELECT {_picked(part.files[0])} FROM ({part.source(position=True)}) WHERE identifier IS NOT NULL"
                )
                with suppress(*duck.DAMAGED):  # a damaged file stays out of the index; the run's page names it
                    tables.append(cursor.sql(sql, params=part.values).to_arrow_table())
                    covered += [key(f) for f in part.files]
        if tables:
            self._write(pa.concat_tables(tables).sort_by([("identifier", "ascending")]), covered)

    def _write(self, table: pa.Table, covers: Sequence[str]) -> Path:
        place = self.folder / f"{uuid.uuid4().hex}.parquet"
        temporary = place.with_suffix(".part")
        pq.write_table(
            table.replace_schema_metadata({"ondatra.covers": orjson.dumps(list(covers))}),
            temporary,
            compression="zstd",
            row_group_size=_GROUP_ROWS,
            use_dictionary=[n for n in NAMES if n not in ("identifier", "place")],
        )
        os.replace(temporary, place)
        return place

    def _merge(self, kept: set[str]) -> None:
        """Drops what is no longer kept, once that is much of a file, and merges files of like size, two at a time."""
        for place in self._places():
            covers = _covers(place)
            gone = sum(name not in kept for name in covers)
            if gone == len(covers):
                place.unlink()
            elif gone * GONE_SHARE >= len(covers):
                self._rewrite([place], kept)
        while True:
            sizes = sorted((p.stat().st_size, p) for p in self._places())
            pairs = [
                (a, b) for (small, a), (large, b) in zip(sizes, sizes[1:], strict=False) if small * GROWTH >= large
            ]
            if not pairs:
                return
            self._rewrite(pairs[0], kept)

    def _rewrite(self, places: Sequence[Path], kept: set[str]) -> None:
        """One file instead of these, without what is no longer kept."""
        temporary = self.folder / f"{uuid.uuid4().hex}.part"
        covers = [name for place in places for name in _covers(place)]
        gone = sorted(set(covers) - kept)
        with duckdb.connect(
            ":memory:", config={"threads": 2, "memory_limit": "1GB", "temp_directory": str(self.folder / "spill")}
        ) as one:
            one.execute(
                f"COPY (SELECT * FROM read_parquet($places, hive_partitioning = false) WHERE NOT list_contains($gone, "
                f"split_part(place, ':', 1)) "
                f"ORDER BY identifier) TO {duck.quoted(str(temporary))} (FORMAT parquet, COMPRESSION zstd, "
                f"ROW_GROUP_SIZE {_GROUP_ROWS}, "
                f"KV_METADATA {{'ondatra.covers': "
                f"{duck.quoted(orjson.dumps([c for c in covers if c in kept]).decode())}}})",
                {"places": [str(p) for p in places], "gone": gone},
            )
        os.replace(temporary, temporary.with_suffix(".parquet"))
        for place in places:
            place.unlink()

    def _indexed(self, kept: set[str], chosen: Filter, limit: int) -> list[dict[str, Any]]:
        where, values = _matches(chosen)
        sql = f"SELECT {', '.join(NAMES)} FROM read_parquet($files, hive_partitioning = false) WHERE {where}"
        if chosen.prefix:
            sql += _newest(limit)

        for attempt in (1, 2):
            try:
                with duck.cursor({self.folder.parent}) as one:  # one connection for the indexes of all syncs
                    rows = duck.tuples(one, sql, {"files": list(map(str, self._places())), **values})
                return [dict(zip(NAMES, r, strict=True)) for r in rows if r[-1].rpartition(":")[0] in kept]
            except StoreError:
                if attempt == 2:  # the first time a merge may have removed a file under our hands
                    raise
        return []


def _matches(chosen: Filter) -> tuple[str, dict[str, Any]]:
    """The condition, such that row groups of files sorted by identifier are left out by their bounds."""
    if chosen.prefix:
        return "identifier >= $low AND identifier <= $high", {"low": chosen.prefix, "high": chosen.prefix + LAST}
    bound = {f"i{n}": text for n, text in enumerate(chosen.identifiers)}
    return " OR ".join(f"identifier = ${name}" for name in bound), bound


def _newest(limit: int) -> str:
    """As many begin alike as there are; only the newest of them are read whole."""
    return f" ORDER BY TRY_CAST(sync_run_id AS BIGINT) DESC, batch_ended_at DESC LIMIT {limit}"


def key(file: FileRef) -> str:
    """A record file within its sync: `7/records_updated.0`."""
    return "/".join(file.path.removesuffix(".parquet").split("/")[-2:])


@lru_cache(maxsize=1_024)
def _covers(place: Path) -> tuple[str, ...]:
    """Index files never change under their name."""
    try:
        said = pq.read_schema(place).metadata or {}
    except (OSError, pa.ArrowException):
        return ()
    return tuple(orjson.loads(said.get(b"ondatra.covers", b"[]")))


def _picked(file: FileRef) -> str:
    shown = [
        f"left(status_message, {LONGEST_MESSAGE}) AS status_message" if n == "status_message" else n for n in COLUMNS
    ]
    return ", ".join([*shown, f"{duck.quoted(key(file))} || ':' || __row AS place"])


def _asked(files: Sequence[FileRef], chosen: Filter, limit: int) -> list[dict[str, Any]]:
    """The same from the record files themselves, by their bounds and bloom filters."""
    where, values = chosen.where()
    if chosen.prefix:
        where += _newest(limit)
    candidates = [f for f in files if chosen.may_hold(f)]
    if not candidates:
        return []

    found = []
    with duck.cursor(roots(candidates)) as one:
        for part in opened(candidates, []):
            try:
                found += _asked_of(one, part, where, values)
            except duck.DAMAGED:
                for each in part.each() if len(part.files) > 1 else ():
                    with suppress(*duck.DAMAGED):
                        found += _asked_of(one, each, where, values)
    return found


def _asked_of(one: duck.Cursor, part: Opened, where: str, values: Mapping[str, Any]) -> list[dict[str, Any]]:
    keys = {str(p): key(f) for p, f in zip(part.places, part.files, strict=True)}
    file = "__file" if len(part.files) > 1 else duck.quoted(str(part.places[0]))
    sql = f"SELECT {', '.join(COLUMNS)}, __row, {file} FROM ({part.source(COLUMNS, position=True)}) WHERE {where}"
    return [
        {**dict(zip(COLUMNS, row, strict=False)), "place": f"{keys[row[-1]]}:{row[-2]}"}
        for row in duck.tuples(one, sql, {**values, **part.values})
    ]
