"""Calls are cut between units, numbered, and announced as many at a time as end soon."""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np

from runtime.delivery import entries
from runtime.delivery.answers import Answers, Entry
from runtime.delivery.chunk import Chunk
from runtime.staging import states


class Call(NamedTuple):
    """One call of push() with its further attempts."""

    number: int
    units: list[int]


def cut_calls(
    starts: np.ndarray[Any, Any], n: int, wanted: np.ndarray[Any, Any], batch_size: int
) -> Iterator[list[int]]:
    """Calls as lists of units; one that does not fit goes into the next call, one that is larger goes alone."""
    sizes = (np.append(starts[1:], n) - starts).tolist()
    call: list[int] = []
    rows = 0
    for unit in np.flatnonzero(wanted).tolist():
        size = sizes[unit]
        if call and rows + size > batch_size:
            yield call
            call, rows = [], 0
        call.append(unit)
        rows += size
    if call:
        yield call


def numbered(chunk: Chunk, answers: Answers, *, in_order: bool, batch_size: int) -> Iterator[Call]:
    """The calls with what has no answer yet. Rows that failed in an earlier run never share a call with new ones, and
    go behind them, unless their order counts."""
    if not chunk.n:
        return
    open_units = np.logical_or.reduceat(~answers.answered(), chunk.starts)
    old = np.logical_or.reduceat(chunk.states != states.UNTRIED, chunk.starts)
    parts = [open_units] if in_order else [open_units & ~old, open_units & old]

    number = int(answers.call.max()) + 1 if answers.call.any() else chunk.claim.first_call
    for part in parts:
        for units in cut_calls(chunk.starts, chunk.n, part, batch_size):
            yield Call(number, units)
            number += 1


def announced(calls: Iterator[Call], chunk: Chunk, begin: Callable[[Entry], None]) -> Iterator[Call]:
    """The calls, each only after it is durable that it may have begun: after a crash no other row counts as unknown."""
    pace = Pace(chunk.claim.slots)
    while some := list(itertools.islice(calls, pace.next(time.monotonic()))):
        begin(entries.begun(some[0].number, np.concatenate([chunk.rows_of(call.units) for call in some])))
        yield from some


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
