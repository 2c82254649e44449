"""How long to wait before the next try."""

from __future__ import annotations

import random

#: Doubled so often at most: the wait is then longer than any run, and still a number.
MOST_DOUBLINGS = 32


def backoff(seconds: float, attempt: int) -> float:
    """Seconds to wait after `attempt` (from 1) failed: `seconds`, doubled with each attempt, give or take a half, so
    that those who failed together do not come back together."""
    return seconds * 2 ** min(attempt - 1, MOST_DOUBLINGS) * random.uniform(0.5, 1.5)  # noqa: S311  no secret: waits that differ
