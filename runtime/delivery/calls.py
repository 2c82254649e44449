"""Calls are cut between units, and announced as many at a time as end soon."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np


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
