"""Work that is left behind, and calls announced ahead."""

from __future__ import annotations

import queue
import threading
import time

import pytest

from runtime.delivery.calls import Pace
from runtime.threads import side_by_side, sleep, supervised


def test_what_the_work_raised_is_raised_where_it_is_waited_for() -> None:
    def fail() -> None:
        raise ValueError("no")

    with pytest.raises(ValueError, match="no"):
        supervised(fail, lambda: False, abandon=lambda: None, ends=lambda: None)


def test_a_thread_that_cannot_tidy_up_is_not_waited_for_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    told: queue.Queue[threading.ExceptHookArgs] = queue.Queue()
    monkeypatch.setattr(threading, "excepthook", told.put)

    def broken() -> None:
        raise OSError("no tidying")

    began = time.monotonic()
    supervised(lambda: None, lambda: False, abandon=lambda: None, ends=broken)
    assert time.monotonic() - began < 2
    assert str(told.get(timeout=5).exc_value) == "no tidying"


def test_work_that_does_not_end_after_a_cancel_is_left_behind() -> None:
    gate, left = threading.Event(), threading.Event()
    began = time.monotonic()
    supervised(lambda: gate.wait(30) and None, lambda: True, abandon=left.set, ends=lambda: None)
    assert left.is_set() and 2 < time.monotonic() - began < 4.5
    gate.set()


def test_work_side_by_side_is_taken_in_order_by_so_many_and_stops_at_an_error() -> None:
    lock, seen, most, now = threading.Lock(), [], [0], [0]

    def one(i: int) -> None:
        with lock:
            seen.append(i)
            now[0] += 1
            most[0] = max(most[0], now[0])
        time.sleep(0.02)
        with lock:
            now[0] -= 1
        if i == 20:
            raise ValueError("twenty")

    with pytest.raises(ValueError, match="twenty"):
        side_by_side(3, ((lambda i=i: one(i)) for i in range(1_000)), ends=lambda: None)
    assert most[0] == 3 and seen[:3] == [0, 1, 2] and 20 < len(seen) < 30


def test_slow_calls_are_announced_one_by_one_and_quick_ones_together() -> None:
    slow, quick = Pace(1), Pace(1)
    assert [slow.next(float(i + 1)) for i in range(5)] == [1] * 5
    assert [quick.next(1 + i / 1_000) for i in range(5)] == [1, 4, 16, 64, 256]


def test_a_sleep_ends_soon_after_a_cancel_and_says_so() -> None:
    began = time.monotonic()
    assert not sleep(30, lambda: time.monotonic() - began > 0.1)
    assert time.monotonic() - began < 2


def test_a_sleep_that_nobody_cancels_takes_its_time() -> None:
    began = time.monotonic()
    assert sleep(0.05, lambda: False)
    assert time.monotonic() - began >= 0.05
