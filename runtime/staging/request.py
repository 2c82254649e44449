"""What staging is asked for, and what it answers."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

import numpy as np
from numpy.typing import NDArray

from runtime.model import Column, Model
from runtime.staging.chunks import WaitingChunk

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from runtime.kinds.built import Feed


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
    made: Feed | None = None  # what the feed has of the commit of `version`, where it was just made

    @property
    def start(self) -> int:
        return 0 if self.mark is None else self.mark + 1

    @property
    def is_made(self) -> bool:
        """Whether the feed need not be read."""
        return self.made is not None and self.made.since <= self.start <= self.version


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
