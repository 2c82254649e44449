"""How many rows a build finds of what becomes of them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from runtime.lake.digest import Digest

if TYPE_CHECKING:
    from pyspark.sql import Row


@dataclass(frozen=True)
class Counts:
    """Rows of the source by what becomes of them, and the table's rows that go. Records, not rows of the feed."""

    source: int = 0
    unchanged: int = 0
    invalid: int = 0
    changed: int = 0
    deleted: int = 0
    digest: Digest = Digest()  # of the whole source
    invalid_digest: str = ""

    @classmethod
    def of(cls, row: Row | Mapping[str, Any], *, changed: int, deleted: int = 0) -> Counts:
        """From one row of `groups.totals`."""
        source, invalid = int(row["source"] or 0), int(row["invalid"] or 0)
        return cls(
            source,
            source - invalid - changed,
            invalid,
            changed,
            deleted,
            Digest.of(row),
            Digest.of(row, "i").text if invalid else "",
        )
