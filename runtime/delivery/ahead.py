"""The next call, begun while the answer of the one before is still written down: a destination that answers at once
need not wait for that."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass

from runtime.delivery.calls import Call
from runtime.delivery.chunk import Index
from runtime.push.call import CallResult, Prepared
from runtime.push.statuses import OK

#: Of calls that take longer (seconds) none is made ready before its turn: that would gain nothing, and name it among
#: those that may have begun.
QUICK = 0.05


@dataclass
class Attempt:
    """One push() call of some units of a numbered call; `out` once it has begun."""

    number: int
    attempt: int
    units: list[int]
    index: Index
    push: Prepared
    out: bool = False


class Ahead:
    """Calls in their order, one out at a time. While a quick one is out, the next is made ready; it begins as soon as
    every row of that one was taken, unless then the run is `over`."""

    def __init__(
        self,
        calls: Iterator[Call],
        ready: Callable[[Call], Attempt],
        begin: Callable[[Attempt], None],
        over: Callable[[], bool],
    ) -> None:
        self._calls, self._ready, self._begin, self._over = calls, ready, begin, over
        self._next: Attempt | None = None
        self._at, self._quick = 0.0, False

    def take(self) -> Attempt | None:
        """The next one, where it is out or nothing is over."""
        now = time.monotonic()
        self._at, self._quick = now, now - self._at < QUICK
        attempt, self._next = self._next or self._made(), None
        return attempt if attempt and (attempt.out or not self._over()) else None

    def look(self) -> None:
        """A call is out: the time to make the next one ready."""
        if self._quick and self._next is None:
            self._next = self._made()

    def follow(self, result: CallResult) -> None:
        """How it ended. Raises what `begin` raises."""
        all_taken = result.job_ref is None and all(outcome is OK for outcome in result.outcomes)
        if self._next and not self._next.out and all_taken and not self._over():
            self._begin(self._next)

    def settle(self) -> None:
        """Where something went wrong in between, nobody writes down what the next one answers; nothing is left out."""
        if self._next and self._next.out:
            with suppress(Exception):
                self._next.push.result()

    def _made(self) -> Attempt | None:
        call = next(self._calls, None)
        return self._ready(call) if call else None
