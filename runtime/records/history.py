"""What happened to things over all runs, from an index: one row a record, sorted by identifier, in a few files.

The index of an organization is derived: it may be deleted at any time and is made again. Record files that it does not
cover yet are asked directly (`unindexed`), so that an answer is never older than the files. Index files are merged as
they grow, so that there are few, and each names the record files that it covers.
"""

from __future__ import annotations

import fcntl
import os
import uuid
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import duckdb
import orjson
import pyarrow as pa
import pyarrow.parquet as pq

from runtime.errors import StoreError
from runtime.records import duck, newest, unindexed
from runtime.records.filter import FileRef, Filter
from runtime.records.newest import NAMES
from runtime.records.opened import opened, roots
from runtime.records.unindexed import COLUMNS, key

#: Long messages are cut in the index; the record has them whole.
LONGEST_MESSAGE = 300
#: A new index file is merged with one that is at most this many times as large.
GROWTH = 4
#: An index file is written anew without expired records once they are this part of the record files that it covers.
GONE_SHARE = 4
_GROUP_ROWS = 20_000
#: Record files read at once while the index is made: bounds its memory.
_FILES_AT_ONCE = 64


@dataclass(frozen=True)
class Settled:
    """Which record files need not be compared with what the index covers, by their ids in the database: those up to
    `upto` are in it, without those that were `left`. `gone` are runs in it that are no longer kept."""

    upto: int = 0
    left: tuple[int, ...] = ()
    gone: tuple[str, ...] = ()


class HistoryIndex:
    """The index of one organization in a folder of this machine."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def find(
        self, files: Sequence[FileRef], identifiers: Sequence[str], *, sync: int | None = None, limit: int = 200
    ) -> list[dict[str, Any]]:
        """Records of these identifiers, newest first; only of these files, which are those of a sync that are still
        kept."""
        covered = self.covered()
        kept = {key(f) for f in files} & covered
        chosen = Filter(identifiers=tuple(identifiers))
        found = self._indexed(kept, chosen, sync) if kept else []
        found += unindexed.ask([f for f in files if key(f) not in covered], chosen, limit)

        unique = {row["place"]: row for row in found}
        return sorted(
            unique.values(),
            key=lambda r: (int(r["sync_run_id"] or 0), str(r["batch_ended_at"]), r["place"]),
            reverse=True,
        )[:limit]

    def things(self, asked: newest.Asked) -> newest.Newest:
        """The newest record of each thing that is asked for, in the order of the syncs."""
        gone = self.settled().gone
        return newest.read(self._answered(lambda one, places: newest.ask(one, places, asked, gone)), asked)

    def covered(self) -> frozenset[str]:
        """The record files that are in the index."""
        return _all_covers(tuple(self._places()))

    def refresh(self, files: Sequence[FileRef], *, all_kept: bool = True) -> int:
        """Adds what is missing; how many files that were. Does nothing while another process does it. What is not among
        `files` leaves the index in time, where they are all that are kept."""
        with self._alone() as mine:
            if not mine:
                return 0
            covered = self.covered()
            missing = [f for f in files if key(f) not in covered]
            for at in range(0, len(missing), _FILES_AT_ONCE):
                self._add(missing[at : at + _FILES_AT_ONCE])
            if all_kept:
                self._drop({key(f) for f in files})
            self._merge()
        return len(missing)

    def settle(self, settled: Settled) -> None:
        """Keeps it as long as the index has no other files than now, or more."""
        told = {**asdict(settled), "files": [p.name for p in self._places()]}
        temporary = self.folder / f"{uuid.uuid4().hex}.part"
        temporary.write_bytes(orjson.dumps(told))
        os.replace(temporary, self.folder / "settled.json")

    def settled(self) -> Settled:
        """What was kept; nothing where files are gone since, since what they covered may be gone with them."""
        try:
            told = orjson.loads((self.folder / "settled.json").read_bytes())
        except (OSError, ValueError):
            return Settled()
        if not set(told.pop("files")) <= {p.name for p in self._places()}:
            return Settled()
        return Settled(told["upto"], tuple(told["left"]), tuple(told["gone"]))

    # files

    def _places(self) -> list[Path]:
        """The newest first."""
        return sorted(self.folder.glob("*.parquet"), key=lambda p: (-_written(p), p.name))

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

    def _drop(self, kept: set[str]) -> None:
        """Drops what is no longer kept, once that is much of a file."""
        for place in self._places():
            covers = _covers(place)
            gone = [name for name in covers if name not in kept]
            if len(gone) == len(covers):
                place.unlink()
            elif len(gone) * GONE_SHARE >= len(covers):
                self._rewrite([place], gone)

    def _merge(self) -> None:
        """Merges files of like size, two at a time."""
        while True:
            sizes = sorted((p.stat().st_size, p) for p in self._places())
            pairs = [
                (a, b) for (small, a), (large, b) in zip(sizes, sizes[1:], strict=False) if small * GROWTH >= large
            ]
            if not pairs:
                return
            self._rewrite(pairs[0])

    def _rewrite(self, places: Sequence[Path], gone: Sequence[str] = ()) -> None:
        """One file instead of these, without the record files that are gone."""
        temporary = self.folder / f"{uuid.uuid4().hex}.part"
        without = set(gone)
        covers = [name for place in places for name in _covers(place) if name not in without]
        with duckdb.connect(
            ":memory:", config={"threads": 2, "memory_limit": "1GB", "temp_directory": str(self.folder / "spill")}
        ) as one:
            one.execute(
                f"COPY (SELECT * FROM read_parquet($places, hive_partitioning = false) WHERE NOT list_contains($gone, "
                f"split_part(place, ':', 1)) "
                f"ORDER BY identifier) TO {duck.quoted(str(temporary))} (FORMAT parquet, COMPRESSION zstd, "
                f"ROW_GROUP_SIZE {_GROUP_ROWS}, "
                f"KV_METADATA {{'ondatra.covers': "
                f"{duck.quoted(orjson.dumps(covers).decode())}}})",
                {"places": [str(p) for p in places], "gone": list(gone)},
            )
        os.replace(temporary, temporary.with_suffix(".parquet"))
        for place in places:
            place.unlink()

    def _indexed(self, kept: set[str], chosen: Filter, sync: int | None) -> list[dict[str, Any]]:
        bound = {f"i{n}": text for n, text in enumerate(chosen.identifiers)}
        sql = (
            f"SELECT {', '.join(NAMES)} FROM read_parquet($files, hive_partitioning = false) "
            f"WHERE ({newest.is_one_of(bound)}){'' if sync is None else ' AND sync_configuration_id = $sync'}"
        )
        rows = self._answered(lambda one, places: duck.tuples(one, sql, {"files": places, "sync": str(sync), **bound}))
        return [dict(zip(NAMES, r, strict=True)) for r in rows if r[-1].rpartition(":")[0] in kept]

    def _answered(self, ask: Callable[[duck.Cursor, Sequence[str]], list[tuple[Any, ...]]]) -> list[tuple[Any, ...]]:
        """What it answers over the index files; nothing where there is none. The first time a merge may have removed a
        file under our hands."""
        for attempt in (1, 2):
            if not (places := list(map(str, self._places()))):
                return []
            try:
                with duck.cursor({self.folder.parent}) as one:  # one connection for the indexes of all organizations
                    return ask(one, places)
            except StoreError:
                if attempt == 2:
                    raise
        return []


def _written(place: Path) -> int:
    try:
        return place.stat().st_mtime_ns
    except OSError:  # a merge has just removed it
        return 0


@lru_cache(maxsize=1_024)
def _covers(place: Path) -> tuple[str, ...]:
    """Index files never change under their name."""
    try:
        said = pq.read_schema(place).metadata or {}
    except (OSError, pa.ArrowException):
        return ()
    return tuple(orjson.loads(said.get(b"ondatra.covers", b"[]")))


@lru_cache(maxsize=16)
def _all_covers(places: tuple[Path, ...]) -> frozenset[str]:
    return frozenset(name for place in places for name in _covers(place))


def _picked(file: FileRef) -> str:
    shown = [
        f"left(status_message, {LONGEST_MESSAGE}) AS status_message" if n == "status_message" else n for n in COLUMNS
    ]
    return ", ".join([*shown, f"{duck.quoted(key(file))} || ':' || __row AS place"])
