"""How long to wait before the next try."""

from __future__ import annotations

import pytest

from runtime.push.backoff import backoff


@pytest.mark.parametrize(("attempt", "middle"), [(1, 0.5), (2, 1.0), (5, 8.0)])
def test_the_wait_doubles_with_each_attempt_give_or_take_a_half(attempt: int, middle: float) -> None:
    waits = [backoff(0.5, attempt) for _ in range(200)]

    assert 0.5 * middle <= min(waits) < middle < max(waits) <= 1.5 * middle


def test_no_wait_is_asked_for_where_the_function_says_none() -> None:
    assert backoff(0, 3) == 0


def test_a_thousandth_attempt_still_gets_a_number() -> None:
    assert backoff(1.0, 5_000) == pytest.approx(2**32, rel=0.5)
