"""Settings that cannot be used: told all at once by `manage.py check`, and before any other command starts."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from typing import Any

from django.conf import settings
from django.core import checks

from runtime import faults
from runtime.config import Wrong
from runtime.errors import ConfigError
from runtime.project import schedules


def wrong() -> list[Wrong]:
    """Every setting that is wrong, in the order of its number."""
    return sorted([*settings.ONDATRA.wrong, *settings.WRONG_OF_DJANGO, *_rules()], key=lambda w: (w.number, w.name))


def _rules() -> Iterator[Wrong]:
    """What only other modules know to be right."""
    upkeep, fault = settings.ONDATRA.upkeep, settings.ONDATRA.fault
    try:
        if upkeep != "off":
            schedules.check(upkeep)
    except ConfigError:
        expected = "off, cron text of five fields such as '0 3 * * *', or 'every 12h' is expected"
        yield Wrong(16, "ONDATRA_UPKEEP", upkeep, expected)
    if fault and fault not in faults.POINTS:
        yield Wrong(17, "ONDATRA_FAULT", fault, f"one of {', '.join(faults.POINTS)} is expected")


def told(app_configs: Any, **kwargs: Any) -> Sequence[checks.CheckMessage]:
    """For Django's framework of checks."""
    ignored = [checks.Warning(str(r), id="ondatra.W031") for r in settings.ONDATRA.spark_refused]
    return [*(checks.Error(w.message, hint=w.expected, id=w.id) for w in wrong()), *ignored]


def refuse() -> None:
    """Ends a process that could only go wrong, with a line for each setting."""
    found = wrong()
    for one in found:
        print(f"{one.id} {one}", file=sys.stderr)
    if found:
        raise SystemExit(2)
