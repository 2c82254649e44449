"""From a table's changes to chunk files: reads the feed, composes it with what waits, writes files in delivery order.

Nothing here touches the database: what `stage` returns is made true by one transaction of the caller; files that no
transaction names are orphans that a sweeper removes.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from runtime.columns import H1, H2, HASH, KEY, OURS, RECORD, ROWID
from runtime.lake import effort
from runtime.staging import changes, states
from runtime.staging.changes import Shape
from runtime.staging.feed import ChangeFeed, read_feed
from runtime.staging.layout import ONE_TASK, write
from runtime.staging.measure import measured
from runtime.staging.request import Staged, StageRequest
from runtime.staging.waiting import PLACE, Chosen, Waiting, needs_stage

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

#: Delta's own column of a change feed.
FEED_KIND = "_change_type"
#: Bytes of a row that waits, about.
ROW = 200


def stage(spark: SparkSession, request: StageRequest) -> Staged:
    """Writes the chunk files of everything that changed since the mark. Raises HistoryGone."""
    with effort.fit(spark, _size(request)):
        return _Staging(spark, request).run()


def stage_again(spark: SparkSession, request: StageRequest, wanted: Sequence[Any]) -> Staged:
    """Writes the chosen rows as the table holds them, told as under --full; `wanted` are their keys, or row ids where
    rows stand alone."""
    return _Staging(spark, request).again(wanted)


def _size(request: StageRequest) -> int:
    """Bytes to go through, about."""
    made = sum(request.made.counts.values()) if request.made else 0
    few = request.is_made and not request.full and effort.are_few(made)
    return ROW * sum(len(c.states) for c in request.waiting) + (0 if few else request.table.size())


class _Staging:
    def __init__(self, spark: SparkSession, request: StageRequest) -> None:
        self.spark, self.request = spark, request
        self.shape = self._shape()
        self.waiting = Waiting(spark, self.shape, request.waiting)

    def run(self) -> Staged:
        r = self.request
        feed = read_feed(self.spark, r)
        # A first run has delivered nothing: everything is an insert anyhow.
        full = r.full and not (r.mark is None and not self.waiting.chunks)
        if not (feed.rows or full or needs_stage(self.waiting.chunks)):
            return Staged()

        chosen = self.waiting.choose(feed, everything=full)
        most = feed.rows + sum(int((marks != 0).sum()) for _, marks in chosen)
        rows = self._net(feed, chosen, most, full=full)
        if full:
            current = self._current()
            most += current.count()
            rows = changes.again(rows, self.waiting.blocked(), current, self.shape)

        superseded = _superseded(chosen)
        if rows is None:
            return Staged(superseded=superseded)
        return self._written(rows, most, superseded)

    def again(self, wanted: Sequence[Any]) -> Staged:
        """The current rows of some units."""
        together = self.shape.together
        keys = pa.array(wanted, pa.string() if together == KEY else pa.int64())
        chosen = self.spark.createDataFrame(pa.table({together: keys}))

        current = self._current().join(chosen, together, "left_semi")
        return self._written(changes.again(None, None, current, self.shape), len(wanted), {})

    def _written(self, rows: DataFrame, most: int, superseded: dict[int, NDArray[np.int64]]) -> Staged:
        urls = write(rows, self.shape, self.request.out_url, most, self.request.chunk_rows)
        return measured(urls, self.shape.kind, superseded)

    def _shape(self) -> Shape:
        """The SELECT's columns in its order, then what the table has besides."""
        r = self.request
        known = r.made.rows if r.made and r.is_made else r.table.read(self.spark, r.version)
        fields = {f.name.lower(): f for f in known.schema.fields if not f.name.startswith(OURS)}
        fields.pop(FEED_KIND, None)
        first = [fields.pop(c.name.lower()) for c in r.columns if c.name.lower() in fields]
        hashes = [fields.pop(HASH)] if HASH in fields else []
        return Shape(r.model.kind, (*first, *fields.values(), *hashes), r.model.key)

    def _net(self, feed: ChangeFeed, chosen: list[Chosen], most: int, *, full: bool) -> DataFrame | None:
        """The net change; None where there is none."""
        r = self.request
        if chosen or len(feed.versions) > 1 or (full and feed.rows):
            small = most <= r.chunk_rows * ONE_TASK
            return changes.compose(self._all(feed, chosen), self.shape, r.own_from, small=small)
        if feed.rows:
            (version,) = feed.versions
            return changes.direct(self._all(feed, []), self.shape, feed.types, carried=version <= r.own_from)
        return None

    def _all(self, feed: ChangeFeed, chosen: list[Chosen]) -> DataFrame:
        """Every row that is composed, of the feed and of older chunks."""
        parts = [changes.feed_rows(frame, self.shape) for frame in feed.frames]
        if chosen:
            parts.append(self.waiting.rows(chosen).drop(*PLACE))

        rows = parts[0]
        for part in parts[1:]:
            rows = rows.unionByName(part)
        return rows

    def _current(self) -> DataFrame:
        """The table's rows as `changes.again` wants them."""
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


def _superseded(chosen: list[Chosen]) -> dict[int, NDArray[np.int64]]:
    """The positions of older chunks that the new ones replace; rows whose job is open stay."""
    found = {c.id: np.flatnonzero((marks != 0) & (marks != states.BLOCKED)) for c, marks in chosen}
    return {chunk: positions for chunk, positions in found.items() if len(positions)}
