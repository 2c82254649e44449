"""Units and calls: the rows of one key stand together, and no call cuts them apart."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa

from runtime.staging.chunks import KEYED_UNITS


def unit_starts(table: pa.Table, kind: str) -> np.ndarray[Any, Any]:
    """The first row of each unit; rows of a unit stand together."""
    n = table.num_rows
    if kind not in KEYED_UNITS or n == 0:
        return np.arange(n)
    keys = table.column("__ondatra_key").combine_chunks().dictionary_encode().indices.to_numpy(zero_copy_only=False)
    return np.concatenate(([0], np.flatnonzero(keys[1:] != keys[:-1]) + 1))


def cut_calls(
    starts: np.ndarray[Any, Any], n: int, wanted: np.ndarray[Any, Any], batch_size: int
) -> Iterator[list[int]]:
    """Calls as lists of units; one that does not fit goes into the next call, one that is larger goes alone."""
    ends = np.append(starts[1:], n)
    call: list[int] = []
    rows = 0
    for unit in np.flatnonzero(wanted):
        size = int(ends[unit] - starts[unit])
        if call and rows + size > batch_size:
            yield call
            call, rows = [], 0
        call.append(int(unit))
        rows += size
    if call:
        yield call


class Pace:
    """How many calls are announced at once: about as many as end within `seconds`, so that announcing costs little and
    names few rows too many."""

    def __init__(self, least: int, seconds: float = 0.05, most: int = 2_000) -> None:
        self.least, self.seconds, self.most = max(1, least), seconds, most
        self.n = self.least
        self._at = 0.0

    def next(self, now: float) -> int:
        """The next number; `now` is a monotonic clock."""
        if self._at:
            took = max(now - self._at, 1e-6)
            self.n = max(self.least, min(int(self.n * self.seconds / took), self.n * 4, self.most))
        self._at = now
        return self.n
