"""From a table's changes to chunk files: reads the feed, composes it with what waits, writes files in delivery order.

Nothing here touches the database: what `stage` returns is made true by one transaction of the caller; files that no
transaction names are orphans that a sweeper removes.
"""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from runtime.columns import CHANGE_TYPE, H1, H2, HASH, KEY, OURS, RECORD, ROWID
from runtime.errors import HistoryGone
from runtime.lake import effort
from runtime.model import Column, Model
from runtime.staging import changes, states
from runtime.staging import chunks as chunk_files
from runtime.staging.changes import Shape
from runtime.staging.chunks import CARRIED, CHANGES, WAITS, WaitingChunk
from runtime.staging.layout import ONE_TASK, spark_path, write

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from runtime.kinds.built import Feed

#: Bytes of a row that waits, about.
ROW = 200
#: What tells where a waiting row lies.
PLACE = ("__ondatra_chunk", "__ondatra_at", "__ondatra_waits", "__ondatra_state")


class FeedTable(Protocol):
    """What staging needs of a lake table."""

    def feed(self, spark: SparkSession, start: int, end: int) -> DataFrame: ...
    def read(self, spark: SparkSession, version: int | None = None) -> DataFrame: ...
    def size(self) -> int: ...


@dataclass(frozen=True)
class StageRequest:
    """The feed of versions mark + 1 to `version`; changes of versions above `own_from` are this run's own, older ones
    are carried."""

    model: Model
    table: FeedTable
    mark: int | None
    version: int
    own_from: int
    waiting: tuple[WaitingChunk, ...]
    out_url: str
    chunk_rows: int = 50_000
    full: bool = False
    columns: tuple[Column, ...] = ()  # the SELECT's, in its order
    forgo: bool = False  # with full: the feed is gone, so only the current rows and what waits are sent
    made: Feed | None = None  # what the commit of `version` added to the feed, where it was just made

    @property
    def start(self) -> int:
        return 0 if self.mark is None else self.mark + 1

    @property
    def is_made(self) -> bool:
        """Whether the feed need not be read."""
        return self.made is not None and self.start == self.version


@dataclass(frozen=True)
class StagedChunk:
    """One file. Rows of a chunk that `waits` are newer changes of rows whose job is open.

    The caller keeps such a chunk with every row BLOCKED, without a delivery; its URL tells later runs what it is.
    """

    url: str
    rows: int
    records: int
    phase: int
    change_counts: dict[str, int]
    carried: bool
    waits: bool = False
    deletes: int = 0  # records that count as deleted; for scd2 those of versions that are no longer current


@dataclass(frozen=True)
class Staged:
    """What a run has to send that is new, and the positions of older chunks that it replaces."""

    chunks: tuple[StagedChunk, ...] = ()
    superseded: dict[int, NDArray[np.int64]] = field(default_factory=dict)
    changed: int = 0
    deleted: int = 0
    carried: int = 0


def needs_stage(waiting: tuple[WaitingChunk, ...]) -> bool:
    """Whether something waits for the end of a job, so that staging may find work though the table did not change."""
    return any(chunk.waits and bool(np.any(chunk.states == states.BLOCKED)) for chunk in waiting)


def stage(spark: SparkSession, request: StageRequest) -> Staged:
    """Writes the chunk files of everything that changed since the mark. Raises HistoryGone."""
    with effort.fit(spark, _size(request)):
        return _Staging(spark, request).run()


def _size(request: StageRequest) -> int:
    """Bytes to go through, about."""
    few = (
        request.is_made
        and not request.full
        and effort.are_few(sum(request.made.counts.values()) if request.made else 0)
    )
    return ROW * sum(len(c.states) for c in request.waiting) + (0 if few else request.table.size())


def stage_again(spark: SparkSession, request: StageRequest, wanted: Sequence[Any]) -> Staged:
    """Writes the chosen rows as the table holds them, told as under --full; `wanted` are their keys, or row ids where
    rows stand alone."""
    staging = _Staging(spark, request)
    current = staging._current()
    together = staging.shape.together
    chosen = spark.createDataFrame(
        pa.table({together: pa.array(wanted, pa.string() if together == KEY else pa.int64())})
    )
    current = current.join(chosen, together, "left_semi")
    return staging._staged(
        write(
            changes.again(None, None, current, staging.shape),
            staging.shape,
            request.out_url,
            len(wanted),
            request.chunk_rows,
        ),
        {},
    )


@dataclass
class _Feed:
    """The change feed since the mark, as one frame or one for each version where a column was dropped between."""

    frames: list[DataFrame]
    counts: dict[tuple[int, str], int]

    @property
    def rows(self) -> int:
        return sum(self.counts.values())

    @property
    def versions(self) -> set[int]:
        return {version for version, _ in self.counts}

    @property
    def types(self) -> list[str]:
        return sorted({kind for _, kind in self.counts})


class _Staging:
    def __init__(self, spark: SparkSession, request: StageRequest) -> None:
        self.spark, self.request = spark, request
        self.shape = self._shape()
        self.waiting = [c for c in request.waiting if states.undelivered(c.states).any()]

    def run(self) -> Staged:
        r = self.request
        feed = self._feed()
        # A first run has delivered nothing: everything is an insert anyhow.
        full = r.full and not (r.mark is None and not self.waiting)
        if not (feed.rows or full or needs_stage(tuple(self.waiting))):
            return Staged()
        chosen = self._choose(feed, everything=full)
        superseded = {
            c.id: p for c, marks in chosen for p in [np.flatnonzero((marks != 0) & (marks != states.BLOCKED))] if len(p)
        }
        most = feed.rows + sum(int((marks != 0).sum()) for _, marks in chosen)
        rows: DataFrame | None = None
        if chosen or len(feed.versions) > 1 or (full and feed.rows):
            rows = changes.compose(
                self._all(feed, chosen), self.shape, r.own_from, small=most <= r.chunk_rows * ONE_TASK
            )
        elif feed.rows:
            (version,) = feed.versions
            rows = changes.direct(self._all(feed, []), self.shape, feed.types, carried=version <= r.own_from)
        if full:
            current = self._current()
            most += current.count()
            rows = changes.again(rows, self._blocked(everything=True), current, self.shape)
        if rows is None:
            return Staged(superseded=superseded)
        return self._staged(write(rows, self.shape, r.out_url, most, r.chunk_rows), superseded)

    # what there is

    def _shape(self) -> Shape:
        r = self.request
        fields = {
            f.name.lower(): f for f in r.table.read(self.spark, r.version).schema.fields if not f.name.startswith(OURS)
        }
        first = [fields.pop(c.name.lower()) for c in r.columns if c.name.lower() in fields]
        hashes = [fields.pop(HASH)] if HASH in fields else []
        return Shape(r.model.kind, (*first, *fields.values(), *hashes))

    def _feed(self) -> _Feed:
        r = self.request
        start = r.start
        if start > r.version or (r.forgo and r.full):
            return _Feed([], {})
        if r.made is not None and r.is_made:
            made = r.made.rows.selectExpr("*", f"{r.version}L AS _commit_version")
            return _Feed([made], {(r.version, kind): rows for kind, rows in r.made.counts.items()})
        try:
            frame = r.table.feed(self.spark, start, r.version)
            return _Feed([frame], _count(frame))
        except Exception as error:
            if _is_gone(error):
                raise HistoryGone(
                    f"the changes of {r.model.name} since version {start} are no longer kept; confirm sends every "
                    f"current row as --full, "
                    "deletes since then cannot be known"
                ) from error
            if start == r.version or "SCHEMA" not in str(error).upper():
                raise
        frames = [r.table.feed(self.spark, version, version) for version in range(start, r.version + 1)]
        counts = [_count(frame) for frame in frames]
        kept = [(f, c) for f, c in zip(frames, counts, strict=True) if c]
        return _Feed([f for f, _ in kept], {key: n for _, c in kept for key, n in c.items()})

    def _current(self) -> DataFrame:

        table = self.request.table.read(self.spark, self.request.version)
        if self.shape.kind == "scd2":
            table = table.filter("is_current")
        return table.selectExpr(
            *changes.aligned(table, self.shape),
            f"CAST({ROWID} AS bigint) AS {ROWID}",
            changes.optional(table, KEY, "string"),
            f"true AS {RECORD}",
            changes.optional(table, H1, "bigint"),
            changes.optional(table, H2, "bigint"),
        )

    # what waits

    def _choose(self, feed: _Feed, *, everything: bool) -> list[tuple[WaitingChunk, states.States]]:
        """For each waiting chunk the state of the rows that are composed anew, 0 for all others.

        BLOCKED marks rows whose job is open; they only tell that newer changes of their unit must wait.
        """
        from pyspark.sql import functions as F

        if not self.waiting:
            return []
        unit = self.shape.together
        narrow = self._waiting_rows([(c, _marks(c)) for c in self.waiting], [unit])
        picked = narrow
        if not everything:
            parts = [frame.select(F.col(unit)) for frame in feed.frames] + [
                narrow.filter("__ondatra_waits").select(unit)
            ] * needs_stage(tuple(self.waiting))
            newer = parts[0]
            for part in parts[1:]:
                newer = newer.union(part)
            picked = narrow.join(newer, unit, "left_semi")
        blocked = self._blocked(everything=everything)
        if blocked is not None:  # what else waits of such a unit stays as it is
            held = picked.join(blocked.select(unit), unit, "left_semi").filter(
                f"not __ondatra_waits and __ondatra_state <> X'{states.BLOCKED:02x}'"
            )
            picked = picked.join(
                held.select("__ondatra_chunk", "__ondatra_at"), ["__ondatra_chunk", "__ondatra_at"], "left_anti"
            )
        found = picked.select("__ondatra_chunk", "__ondatra_at").toArrow()
        chunk, at = (found.column(i).to_numpy() for i in (0, 1))
        order = np.argsort(chunk, kind="stable")
        ids, starts = np.unique(chunk[order], return_index=True)
        positions = dict(zip(ids.tolist(), np.split(at[order], starts[1:]), strict=True)) if len(ids) else {}
        chosen = []
        for c in self.waiting:
            if c.id in positions:
                marks = np.zeros(len(c.states), dtype=np.uint8)
                marks[positions[c.id]] = _marks(c)[positions[c.id]]
                chosen.append((c, marks))
        return chosen

    def _blocked(self, *, everything: bool) -> DataFrame | None:
        """The units of rows whose job is open; None where there is no job."""

        jobs = [
            (c, np.where(c.states == states.BLOCKED, c.states, 0).astype(np.uint8)) for c in self.waiting if not c.waits
        ]
        jobs = [(c, marks) for c, marks in jobs if marks.any()]
        return self._waiting_rows(jobs, [self.shape.together]) if jobs else None

    def _waiting_rows(self, chosen: list[tuple[WaitingChunk, states.States]], columns: list[str] | None) -> DataFrame:
        """Rows of waiting chunks that have a mark, read where they lie; `columns` or, with None, all as `compose` wants
        them."""
        from pyspark.sql import functions as F

        marks = self.spark.createDataFrame(
            pa.table(
                {
                    "__ondatra_file": ["/".join(c.url.split("/")[-2:]) for c, _ in chosen],
                    "__ondatra_chunk": pa.array([c.id for c, _ in chosen], pa.int64()),
                    "__ondatra_waits": [c.waits for c, _ in chosen],
                    "__ondatra_age": pa.array(range(-len(chosen), 0), pa.int64()),
                    "__ondatra_marks": pa.array([m.tobytes() for _, m in chosen], pa.binary()),
                }
            )
        )
        groups: dict[str, list[str]] = {}
        for c, _ in chosen:
            groups.setdefault(str(chunk_files.read_schema(c.url).remove_metadata()), []).append(spark_path(c.url))
        found: DataFrame | None = None
        for paths in groups.values():
            frame = self.spark.read.option("recursiveFileLookup", "true").parquet(*paths)
            metadata = frame.metadataColumn("_metadata")  # also where the model has a column of that name
            # A task gives its files in the folders of several parts one name.
            frame = frame.withColumns(
                {
                    "__ondatra_name": F.substring_index(metadata["file_path"], "/", -2),
                    "__ondatra_at": metadata["row_index"],
                }
            )
            frame = (
                frame.join(F.broadcast(marks), F.col("__ondatra_name") == F.col("__ondatra_file"))
                .withColumn("__ondatra_state", F.expr("substring(__ondatra_marks, cast(__ondatra_at + 1 as int), 1)"))
                .filter("__ondatra_state <> X'00'")
            )
            part = frame.selectExpr(*(columns if columns is not None else self._as_rows(frame)), *PLACE)
            found = part if found is None else found.unionByName(part)
        assert found is not None
        return found

    def _as_rows(self, frame: DataFrame) -> list[str]:
        return [
            *changes.aligned(frame, self.shape),
            *changes.CARRIED_ALONG,
            f"__ondatra_age AS {changes.VERSION}",
            f"__ondatra_state = X'{states.UNKNOWN:02x}' AS {changes.UNKNOWN}",
            f"__ondatra_state = X'{states.BLOCKED:02x}' AS {changes.BLOCKED}",
        ]

    def _all(self, feed: _Feed, chosen: list[tuple[WaitingChunk, states.States]]) -> DataFrame:
        """Every row that is composed, of the feed and of older chunks."""
        parts = [changes.feed_rows(frame, self.shape) for frame in feed.frames]
        if chosen:
            parts.append(self._waiting_rows(chosen, None).drop(*PLACE))
        rows = parts[0]
        for part in parts[1:]:
            rows = rows.unionByName(part)
        return rows

    # what comes out

    def _staged(self, urls: list[str], superseded: dict[int, NDArray[np.int64]]) -> Staged:
        with ThreadPoolExecutor(8) as pool:
            made = [chunk for chunk in pool.map(self._measure, urls) if chunk.rows]
        made.sort(key=lambda c: (c.waits, c.phase))
        own = [c for c in made if not c.carried]
        deleted = sum(c.deletes for c in own)
        return Staged(
            tuple(made),
            superseded,
            sum(c.records for c in own) - deleted,
            deleted,
            sum(c.records for c in made if c.carried),
        )

    def _measure(self, url: str) -> StagedChunk:
        """Counts from the file itself, so that they are true of what will be sent."""
        is_scd2 = self.shape.kind == "scd2"
        table = chunk_files.read_columns(url, [CHANGE_TYPE, RECORD, *(["is_current"] if is_scd2 else [])])
        part, record = chunk_files.part_of(url), np.asarray(table.column(RECORD).to_numpy(), dtype=np.bool_)
        gone = (
            ~np.asarray(table.column("is_current").to_numpy(), dtype=np.bool_)
            if is_scd2
            else np.asarray(pc.equal(table.column(CHANGE_TYPE), "delete"))
        )
        return StagedChunk(
            url,
            table.num_rows,
            int(record.sum()),
            int(bool(part & CHANGES)),
            chunk_files.tally(table.column(CHANGE_TYPE)),
            bool(part & CARRIED),
            bool(part & WAITS),
            int((record & gone).sum()),
        )


def _marks(chunk: WaitingChunk) -> states.States:
    """The states that count in composing. What waits for a job behind it was never sent itself."""
    if chunk.waits:
        return np.where(states.undelivered(chunk.states), states.UNTRIED, 0).astype(np.uint8)
    return np.where(states.undelivered(chunk.states), chunk.states, 0).astype(np.uint8)


def _count(frame: DataFrame) -> dict[tuple[int, str], int]:
    """Rows of the feed by version and change type; the first read of it, and a narrow one."""
    rows = frame.groupBy("_commit_version", "_change_type").count().collect()
    return {(int(row[0]), str(row[1])): int(row[2]) for row in rows}


def _is_gone(error: Exception) -> bool:
    text = str(error)
    return any(
        mark in text
        for mark in (
            "DELTA_VERSION_NOT_FOUND",
            "DELTA_LOG_FILE_NOT_FOUND",
            "DELTA_TRUNCATED_TRANSACTION_LOG",
            "FILE_NOT_EXIST",
            "FileNotFoundException",
            "DELTA_VERSIONS_NOT_CONTIGUOUS",
            "DELTA_NO_RECREATABLE_HISTORY_FOUND",
        )
    )
