"""Rate limits: a sliding window, shared by all that have the same budget."""

from __future__ import annotations

import threading
import time

import pytest
from push_bench import run, seconds

from runtime.errors import Cancelled
from runtime.push.http.rate_limits import Limiter, MemoryLimiter, RedisLimiter


@pytest.fixture(params=["memory", pytest.param("redis", marks=pytest.mark.server)])
def limiter(request: pytest.FixtureRequest) -> Limiter:
    if request.param == "memory":
        return MemoryLimiter()
    return RedisLimiter(request.getfixturevalue("redis_url"), f"{request.node.name}:")


def never() -> bool:
    return False


def times(limiter: Limiter, n: int, requests: int, window: float, key: str = "a") -> list[float]:
    found = []
    for _ in range(n):
        limiter.take(key, requests, window, never)
        found.append(time.monotonic())
    return found


def test_no_window_holds_more_than_its_number(limiter: Limiter) -> None:
    at = times(limiter, 10, 3, 0.4)
    assert all(b - a >= 0.35 for a, b in zip(at, at[3:], strict=False)) and at[-1] - at[0] < 10


def test_each_key_has_its_own_budget(limiter: Limiter) -> None:
    assert seconds(lambda: [times(limiter, 2, 2, 60, key) for key in "abc"]) < 20


def test_threads_share_one_budget(limiter: Limiter) -> None:
    found: list[float] = []
    threads = [threading.Thread(target=lambda: found.extend(times(limiter, 3, 4, 0.4))) for _ in range(4)]
    run(threads)
    found.sort()
    assert all(b - a >= 0.35 for a, b in zip(found, found[4:], strict=False))


def test_a_pause_stops_the_budget_and_a_shorter_one_does_not_shorten_it(limiter: Limiter) -> None:
    limiter.pause("a", time.time() + 0.8)
    limiter.pause("a", time.time() + 0.1)
    assert 0.7 <= seconds(lambda: limiter.take("a", 9, 1, never)) < 20
    assert left(limiter, "b") <= 0


def test_a_pause_in_the_past_is_none(limiter: Limiter) -> None:
    limiter.pause("a", time.time() - 5)
    assert left(limiter, "a") <= 0


@pytest.mark.parametrize("until", [9e15, 99999999999.0, float("inf")])
def test_a_pause_lasts_an_hour_at_most(limiter: Limiter, until: float) -> None:
    limiter.pause("a", until)
    assert 3590 < left(limiter, "a") <= 3600


def left(limiter: Limiter, key: str) -> float:
    """Seconds that this budget still rests."""
    if isinstance(limiter, RedisLimiter):
        return float(limiter._redis.pttl(limiter._name(key) + ":pause")) / 1000
    return limiter._try(key, 1, 1)  # type: ignore[attr-defined]


def test_a_wait_ends_with_a_cancel(limiter: Limiter) -> None:
    stop = threading.Event()
    threading.Timer(0.3, stop.set).start()
    limiter.take("a", 1, 60, never)
    began = time.monotonic()
    with pytest.raises(Cancelled):
        limiter.take("a", 1, 60, stop.is_set)
    assert time.monotonic() - began < 20


def test_two_processes_share_one_budget_in_redis(redis_url: str) -> None:
    one, two = RedisLimiter(redis_url, "shared:"), RedisLimiter(redis_url, "shared:")
    one.take("a", 1, 0.5, never)
    assert seconds(lambda: two.take("a", 1, 0.5, never)) >= 0.4


def test_an_emptied_redis_goes_on_with_a_fresh_window(redis_url: str) -> None:
    limiter = RedisLimiter(redis_url, "emptied:")
    limiter.take("a", 1, 60, never)
    limiter._redis.flushall()
    assert seconds(lambda: limiter.take("a", 1, 60, never)) < 20


def test_a_redis_that_is_away_is_waited_for_and_a_cancel_ends_that() -> None:
    limiter = RedisLimiter("redis://127.0.0.1:9/0")
    began = time.monotonic()
    with pytest.raises(Cancelled):
        limiter.take("a", 1, 1, lambda: time.monotonic() - began > 0.5)
    assert time.monotonic() - began < 20
