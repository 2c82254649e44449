"""Rows of older chunks that wait: which of them are composed anew with newer changes, and which hold those up."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from runtime.staging import changes, states
from runtime.staging import chunks as chunk_files
from runtime.staging.changes import Shape
from runtime.staging.chunks import WaitingChunk
from runtime.staging.feed import ChangeFeed
from runtime.staging.layout import spark_path

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

#: What tells where a waiting row lies.
PLACE = ("__ondatra_chunk", "__ondatra_at", "__ondatra_waits", "__ondatra_state")
#: A chunk and the states of some of its rows, 0 for all others.
Chosen = tuple[WaitingChunk, states.States]


def needs_stage(waiting: Sequence[WaitingChunk]) -> bool:
    """Whether something waits for the end of a job, so that staging may find work though the table did not change."""
    return any(chunk.waits and bool(np.any(chunk.states == states.BLOCKED)) for chunk in waiting)


class Waiting:
    """The chunks that have undelivered rows, oldest first."""

    def __init__(self, spark: SparkSession, shape: Shape, chunks: Sequence[WaitingChunk]) -> None:
        self.spark, self.shape = spark, shape
        self.chunks = [c for c in chunks if states.undelivered(c.states).any()]

    def choose(self, feed: ChangeFeed, *, everything: bool) -> list[Chosen]:
        """For each chunk the state of the rows that are composed anew: all, or those of units that have newer changes.

        BLOCKED marks rows whose job is open; they only tell that newer changes of their unit must wait.
        """
        if not self.chunks:
            return []

        unit = self.shape.together
        picked = self.rows([(c, _marks(c)) for c in self.chunks], [unit])
        if not everything:
            picked = picked.join(self._newer(feed, picked), unit, "left_semi")
        if (blocked := self.blocked()) is not None:
            picked = _without_held(picked, blocked, unit)

        positions = _positions(picked)
        return [(c, _at(positions[c.id], _marks(c))) for c in self.chunks if c.id in positions]

    def _newer(self, feed: ChangeFeed, mine: DataFrame) -> DataFrame:
        """The units that have newer changes, in the feed or behind a job."""
        unit = self.shape.together
        parts = [frame.select(unit) for frame in feed.frames]
        if needs_stage(self.chunks):
            parts.append(mine.filter("__ondatra_waits").select(unit))

        newer = parts[0]
        for part in parts[1:]:
            newer = newer.union(part)
        return newer

    def blocked(self) -> DataFrame | None:
        """The units of rows whose job is open; None where there is no job."""
        sent = [c for c in self.chunks if not c.waits]
        jobs = [(c, np.where(c.states == states.BLOCKED, c.states, 0).astype(np.uint8)) for c in sent]
        jobs = [(c, marks) for c, marks in jobs if marks.any()]
        return self.rows(jobs, [self.shape.together]) if jobs else None

    def rows(self, chosen: list[Chosen], columns: list[str] | None = None) -> DataFrame:
        """The rows that have a mark, read where they lie; `columns` or, with None, all as `compose` wants them, and
        PLACE."""
        marks = self._as_table(chosen)
        alike: dict[str, list[str]] = {}  # files of one schema are read together
        for c, _ in chosen:
            alike.setdefault(str(chunk_files.read_schema(c.url).remove_metadata()), []).append(spark_path(c.url))

        found: DataFrame | None = None
        for paths in alike.values():
            frame = self._marked(paths, marks)
            part = frame.selectExpr(*(columns if columns is not None else self._as_rows(frame)), *PLACE)
            found = part if found is None else found.unionByName(part)
        assert found is not None
        return found

    def _as_table(self, chosen: list[Chosen]) -> DataFrame:
        return self.spark.createDataFrame(
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

    def _marked(self, paths: list[str], marks: DataFrame) -> DataFrame:
        """The rows of some files that have a mark, with `__ondatra_state`."""
        from pyspark.sql import functions as F

        frame = self.spark.read.option("recursiveFileLookup", "true").parquet(*paths)
        metadata = frame.metadataColumn("_metadata")  # also where the model has a column of that name
        name = F.substring_index(metadata["file_path"], "/", -2)  # a task gives its files of several parts one name
        frame = frame.withColumns({"__ondatra_name": name, "__ondatra_at": metadata["row_index"]})

        state = F.expr("substring(__ondatra_marks, cast(__ondatra_at + 1 as int), 1)")
        return (
            frame.join(F.broadcast(marks), F.col("__ondatra_name") == F.col("__ondatra_file"))
            .withColumn("__ondatra_state", state)
            .filter("__ondatra_state <> X'00'")
        )

    def _as_rows(self, frame: DataFrame) -> list[str]:
        return [
            *changes.aligned(frame, self.shape),
            *changes.CARRIED_ALONG,
            f"__ondatra_age AS {changes.VERSION}",
            f"__ondatra_state = X'{states.UNKNOWN:02x}' AS {changes.UNKNOWN}",
            f"__ondatra_state = X'{states.BLOCKED:02x}' AS {changes.BLOCKED}",
        ]


def _marks(chunk: WaitingChunk) -> states.States:
    """The states that count in composing. What waits for a job behind it was never sent itself."""
    if chunk.waits:
        return np.where(states.undelivered(chunk.states), states.UNTRIED, 0).astype(np.uint8)
    return np.where(states.undelivered(chunk.states), chunk.states, 0).astype(np.uint8)


def _at(positions: NDArray[np.int64], marks: states.States) -> states.States:
    """The marks at these positions, 0 at all others."""
    some = np.zeros(len(marks), dtype=np.uint8)
    some[positions] = marks[positions]
    return some


def _without_held(picked: DataFrame, blocked: DataFrame, unit: str) -> DataFrame:
    """What else waits of a unit whose job is open stays as it is."""
    at = ["__ondatra_chunk", "__ondatra_at"]
    held = picked.join(blocked.select(unit), unit, "left_semi").filter(
        f"not __ondatra_waits and __ondatra_state <> X'{states.BLOCKED:02x}'"
    )
    return picked.join(held.select(*at), at, "left_anti")


def _positions(picked: DataFrame) -> dict[int, NDArray[np.int64]]:
    """The places of the rows in their chunk files, by chunk."""
    found = picked.select("__ondatra_chunk", "__ondatra_at").toArrow()
    chunk, at = (found.column(i).to_numpy() for i in (0, 1))
    order = np.argsort(chunk, kind="stable")
    ids, starts = np.unique(chunk[order], return_index=True)
    return dict(zip(ids.tolist(), np.split(at[order], starts[1:]), strict=True)) if len(ids) else {}
