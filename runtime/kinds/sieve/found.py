"""What `find` found in a large table: the changes, and where the old rows lie."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from runtime.kinds.counts import Counts
from runtime.lake.transactions import Opened

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


@dataclass(frozen=True)
class Found:
    """`new`: rows of the source with hashes, `old` and `gone`: rows of the table and where they lie; all computed.
    `new` are `updated` rows, whose keys `old` has, and `inserted` ones."""

    opened: Opened
    counts: Counts
    new: DataFrame
    old: DataFrame
    gone: DataFrame | None
    updated: int
    inserted: int
