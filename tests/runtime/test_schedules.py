"""`@schedule`."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from runtime.errors import ConfigError
from runtime.project import schedules

NOON = datetime(2026, 1, 15, 12, 7, 30, tzinfo=UTC)


@pytest.mark.parametrize(
    "text, expected",
    [
        ("every 15m", datetime(2026, 1, 15, 12, 15, tzinfo=UTC)),
        ("EVERY 6 h", datetime(2026, 1, 15, 18, tzinfo=UTC)),
        ("every 1d", datetime(2026, 1, 16, tzinfo=UTC)),
        ("0 6 * * *", datetime(2026, 1, 16, 6, tzinfo=UTC)),
        ("*/5 * * * *", datetime(2026, 1, 15, 12, 10, tzinfo=UTC)),
        ("30 8 * * mon", datetime(2026, 1, 19, 8, 30, tzinfo=UTC)),
    ],
)
def test_the_next_time_is_the_first_one_after_now(text: str, expected: datetime) -> None:
    assert schedules.next_time(text, NOON) == expected


def test_the_moment_itself_is_not_next() -> None:
    assert schedules.next_time("0 6 * * *", datetime(2026, 1, 15, 6, tzinfo=UTC)) == datetime(
        2026, 1, 16, 6, tzinfo=UTC
    )


def test_a_time_that_never_comes_is_no_schedule() -> None:
    with pytest.raises(ConfigError, match="a time that comes is expected; '0 0 31 2 [*]' never does"):
        schedules.check("0 0 31 2 *")


@pytest.mark.parametrize("text", ["sometimes", "every 0m", "every 15", "61 * * * *", "* * * * * *", ""])
def test_anything_else_says_what_is_expected(text: str) -> None:
    with pytest.raises(ConfigError, match="five fields.*every 15m.*found"):
        schedules.check(text)
