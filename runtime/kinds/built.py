"""What a build is asked and what it answers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


@dataclass(frozen=True)
class BuildOptions:
    """`confirmed_deletes` is the number that a person has seen and allowed; `full` starts the table anew."""

    confirmed_deletes: int | None = None
    full: bool = False


@dataclass(frozen=True)
class Feed:
    """What the change feed has from the version `since` to the newest one, all of it of that one's commit: the table's
    columns and `_change_type`, and how many rows have each type."""

    rows: DataFrame
    counts: Mapping[str, int]
    since: int


@dataclass(frozen=True)
class Built:
    """How a build ended. Changes of versions above `previous_version` are its own.

    `invalid` gives the rows that have no usable key, computed when asked; None where there are none. `feed` is what the
    build's commit adds to the change feed, where it is at hand: it need not be read then.
    """

    action: str
    version: int
    previous_version: int | None
    rows: int
    source: int
    invalid_rows: int
    invalid_digest: str
    invalid: DataFrame | None
    deletes: int
    feed: Feed | None = None
