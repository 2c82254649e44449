"""Rate limits: at most n requests in any window of some seconds, over all that share a budget."""

from __future__ import annotations

import re
import threading
import time
import uuid
from collections import deque
from collections.abc import Callable
from datetime import UTC
from email.utils import parsedate_to_datetime
from pathlib import Path
from typing import Any, Protocol, cast

from runtime.errors import OndatraError
from runtime.push.http.answers import Answer
from runtime.threads import wait

#: How long a Redis that does not answer is waited for before the call fails.
REDIS_PATIENCE = 30.0
#: Seconds that a destination can make its budget rest, whatever it asks for: a run must not sit for years.
LONGEST_PAUSE = 3600.0
_SECONDS = re.compile(r"\+?(\d+(\.\d*)?|\.\d+)(e[+-]?\d+)?|\+?inf(inity)?", re.ASCII | re.IGNORECASE)


class Limiter(Protocol):
    """A sliding window for each key."""

    def take(self, key: str, n: int, seconds: float, cancelled: Callable[[], bool]) -> None:
        """Waits until fewer than n requests of this budget lie within the last `seconds`. Raises Cancelled."""

    def pause(self, key: str, until: float) -> None:
        """No request of this budget before that Unix time, or for LONGEST_PAUSE at most."""


def retry_after(answer: Answer, now: float) -> float | None:
    """Seconds that the server asks to wait, at most LONGEST_PAUSE; it may say seconds or a date, and that by its own
    clock where it tells the time. None for what is neither or lies in the past."""
    said = answer.headers.get("retry-after", "").strip()
    if not said:
        return None
    if _SECONDS.fullmatch(said):
        return min(float(said), LONGEST_PAUSE)
    when, theirs = _moment(said), _moment(answer.headers.get("date", ""))
    if when is None:
        return None
    seconds = when - (now if theirs is None else theirs)
    return min(seconds, LONGEST_PAUSE) if seconds >= 0 else None


def _moment(text: str) -> float | None:
    try:
        when = parsedate_to_datetime(text)
    except (TypeError, ValueError, OverflowError, IndexError):
        return None
    return (when if when.tzinfo else when.replace(tzinfo=UTC)).timestamp()


class MemoryLimiter:
    """For one process: tests, push_test, a run without a database."""

    def __init__(self) -> None:
        self._hits: dict[str, deque[float]] = {}
        self._paused: dict[str, float] = {}
        self._lock = threading.Lock()

    def take(self, key: str, n: int, seconds: float, cancelled: Callable[[], bool]) -> None:
        while (left := self._try(key, n, seconds)) > 0:
            wait(left, cancelled, "its rate limit")

    def pause(self, key: str, until: float) -> None:
        with self._lock:
            left = min(until - time.time(), LONGEST_PAUSE)
            self._paused[key] = max(self._paused.get(key, 0.0), time.monotonic() + left)

    def _try(self, key: str, n: int, seconds: float) -> float:
        """Takes one request, or says how long to wait before asking again."""
        with self._lock:
            now = time.monotonic()
            if (paused := self._paused.get(key, 0.0) - now) > 0:
                return paused
            hits = self._hits.setdefault(key, deque())
            while hits and hits[0] <= now - seconds:
                hits.popleft()
            if len(hits) >= n:
                return max(hits[0] + seconds - now, 0.001)
            hits.append(now)
            return 0.0


_TAKE = Path(__file__).with_name("take.lua").read_text(encoding="utf-8")


class RedisLimiter:
    """One budget for all workers and machines that share a Redis.

    The script is ours because the packaged limiters count in whole seconds of each client's own clock.
    """

    def __init__(self, url: str, prefix: str = "") -> None:
        import redis

        self._redis: Any = redis.Redis.from_url(url, socket_timeout=5, socket_connect_timeout=5)
        self._take = self._redis.register_script(_TAKE)
        self._prefix = f"ondatra:limit:{prefix}"

    def take(self, key: str, n: int, seconds: float, cancelled: Callable[[], bool]) -> None:
        """Raises Cancelled, and OndatraError when Redis stays away: without it nobody knows the budget."""
        milliseconds = max(1, round(seconds * 1000))
        while True:
            left = self._patiently(
                lambda: self._take(
                    keys=[self._name(key), self._name(key) + ":pause"],
                    args=[n, milliseconds, uuid.uuid4().hex, round(LONGEST_PAUSE * 1000)],
                ),
                cancelled,
            )
            if not left:
                return
            wait(cast(int, left) / 1000, cancelled, "its rate limit")

    def pause(self, key: str, until: float) -> None:
        left = round(min(until - time.time(), LONGEST_PAUSE) * 1000)
        name = self._name(key) + ":pause"
        if left > 0 and self._patiently(lambda: self._redis.pttl(name), lambda: False) < left:
            self._patiently(lambda: self._redis.set(name, left, px=left), lambda: False)

    def _name(self, key: str) -> str:
        return self._prefix + key

    @staticmethod
    def _patiently(command: Callable[[], Any], cancelled: Callable[[], bool]) -> Any:
        import redis

        end = time.monotonic() + REDIS_PATIENCE
        while True:
            try:
                return command()
            except (redis.ConnectionError, redis.TimeoutError) as error:
                if time.monotonic() > end:
                    raise OndatraError(f"Redis, which keeps the rate limits, does not answer: {error}") from None
                wait(1.0, cancelled, "Redis")
