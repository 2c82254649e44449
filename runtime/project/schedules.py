"""`@schedule`: cron text, or `every 15m`."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta

from runtime.errors import ConfigError

UNITS = {"m": 60, "h": 3600, "d": 86400}


def check(text: str) -> None:
    """Raises ConfigError that says what is expected."""
    next_time(text, datetime.now(UTC))


def next_time(text: str, after: datetime) -> datetime:
    """The first moment after `after`, in UTC. `every 15m` counts from midnight UTC, so that restarts do not shift
    it."""
    every = re.fullmatch(r"every\s+(\d+)\s*([mhd])", text.strip(), re.I)
    if every and int(every[1]):
        seconds = int(every[1]) * UNITS[every[2].lower()]
        return datetime.fromtimestamp((int(after.timestamp()) // seconds + 1) * seconds, UTC)
    from croniter import CroniterError, croniter  # of the commands, most ask for no time

    if every or len(text.split()) != 5 or not croniter.is_valid(text):
        raise ConfigError(
            f"cron text of five fields such as '0 6 * * *', or 'every 15m' (m, h, d) is expected; found {text!r}"
        )
    try:
        found: datetime = croniter(text, after.astimezone(UTC)).get_next(datetime)
    except CroniterError:
        raise ConfigError(f"a time that comes is expected; {text!r} never does") from None
    return found if found > after else found + timedelta(minutes=1)
