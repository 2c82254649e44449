"""What a set of rows comes to, in whatever order they stand: equal sets have equal digests."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import astuple, dataclass
from typing import TYPE_CHECKING, Any

from runtime.columns import H1, H2

if TYPE_CHECKING:
    from pyspark.sql import Column as SparkColumn
    from pyspark.sql import Row

#: Of a row that was aggregated, the columns of a digest are called PREFIX_n and so on.
PARTS = ("n", "x", "y", "s")


@dataclass(frozen=True)
class Digest:
    """The number of rows, the exclusive ors of both hashes, and the sum of the second one's upper half (of equal rows,
    pairs cancel out in the former)."""

    rows: int = 0
    x: int = 0
    y: int = 0
    sum: int = 0

    @classmethod
    def of(cls, row: Row | Mapping[str, Any], prefix: str = "d") -> Digest:
        """From one row of aggregates."""
        return cls(*(int(row[f"{prefix}_{part}"] or 0) for part in PARTS))

    @classmethod
    def from_numbers(cls, numbers: Sequence[Any]) -> Digest:
        """Raises ValueError where these are not the four of a digest."""
        n, x, y, s = map(int, numbers)
        return cls(n, x, y, s)

    @property
    def numbers(self) -> tuple[int, ...]:
        return astuple(self)

    @property
    def text(self) -> str:
        """64 hexadecimal digits."""
        return hashlib.sha256(json.dumps(list(self.numbers)).encode()).hexdigest()

    def __add__(self, more: Digest) -> Digest:
        return Digest(self.rows + more.rows, self.x ^ more.x, self.y ^ more.y, self.sum + more.sum)

    def __sub__(self, less: Digest) -> Digest:
        return Digest(self.rows - less.rows, self.x ^ less.x, self.y ^ less.y, self.sum - less.sum)


def row_digests() -> list[SparkColumn]:
    """Aggregates over rows with hashes that `Digest.of` reads."""
    from pyspark.sql import functions as F

    made = zip(PARTS, ("sum(1)", f"bit_xor({H1})", f"bit_xor({H2})", f"sum(shiftright({H2}, 32))"), strict=True)
    return [F.expr(what).alias(f"d_{part}") for part, what in made]
