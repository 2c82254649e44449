"""Not too often."""

from __future__ import annotations

import time
from typing import Any


class Throttle:
    """Lets the same thing pass no more often than every so many seconds."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._passed: dict[Any, float] = {}

    def passes(self, thing: Any) -> bool:
        now = time.monotonic()
        if now - self._passed.get(thing, float("-inf")) <= self._seconds:
            return False
        self._passed[thing] = now
        return True

    def forget(self) -> None:
        self._passed.clear()
