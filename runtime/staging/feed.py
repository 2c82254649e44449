"""What changed in a table since the mark."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from runtime.errors import HistoryGone
from runtime.staging.request import StageRequest

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

#: What Spark and Delta say where a version's files or log are no longer there.
GONE = (
    "DELTA_VERSION_NOT_FOUND",
    "DELTA_LOG_FILE_NOT_FOUND",
    "DELTA_TRUNCATED_TRANSACTION_LOG",
    "FILE_NOT_EXIST",
    "FileNotFoundException",
    "DELTA_VERSIONS_NOT_CONTIGUOUS",
    "DELTA_NO_RECREATABLE_HISTORY_FOUND",
)


@dataclass(frozen=True)
class ChangeFeed:
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


def read_feed(spark: SparkSession, request: StageRequest) -> ChangeFeed:
    """Raises HistoryGone."""
    start, last = request.start, request.version
    if start > last or (request.forgo and request.full):
        return ChangeFeed([], {})
    if request.made is not None and request.is_made:
        made = request.made.rows.selectExpr("*", f"{last}L AS _commit_version")
        return ChangeFeed([made], {(last, kind): rows for kind, rows in request.made.counts.items()})

    try:
        frame = request.table.feed(spark, start, last)
        return ChangeFeed([frame], _count(frame))
    except Exception as error:
        if any(mark in str(error) for mark in GONE):
            raise HistoryGone(
                f"the changes of {request.model.name} since version {start} are no longer kept; confirm sends every "
                f"current row as --full, deletes since then cannot be known"
            ) from error
        if start == last or "SCHEMA" not in str(error).upper():
            raise
    return _by_version(spark, request)


def _by_version(spark: SparkSession, request: StageRequest) -> ChangeFeed:
    """Where the schema changed on the way, one frame cannot hold all versions."""
    frames = [request.table.feed(spark, version, version) for version in range(request.start, request.version + 1)]
    counts = [_count(frame) for frame in frames]
    kept = [(frame, some) for frame, some in zip(frames, counts, strict=True) if some]
    return ChangeFeed([frame for frame, _ in kept], {key: n for _, some in kept for key, n in some.items()})


def _count(frame: DataFrame) -> dict[tuple[int, str], int]:
    """Rows of the feed by version and change type; the first read of it, and a narrow one."""
    rows = frame.groupBy("_commit_version", "_change_type").count().collect()
    return {(int(row[0]), str(row[1])): int(row[2]) for row in rows}
