"""A database that is locked or away for a moment ends nothing: what was asked of it is asked again."""

from __future__ import annotations

import functools
import logging
import time
from collections.abc import Callable
from typing import ParamSpec, TypeVar

from django.db import InterfaceError, OperationalError, connection

P = ParamSpec("P")
T = TypeVar("T")
log = logging.getLogger("ondatra.database")
#: Seconds for which a database that is locked or away is asked again.
PATIENCE = 120.0


def patiently(work: Callable[P, T]) -> Callable[P, T]:
    """Tries again while the database is locked or away for a moment. What it does should bear being done twice."""

    @functools.wraps(work)
    def tried(*args: P.args, **kwargs: P.kwargs) -> T:
        end = time.monotonic() + PATIENCE
        while True:
            try:
                return work(*args, **kwargs)
            except (OperationalError, InterfaceError) as error:
                if connection.in_atomic_block or time.monotonic() > end:
                    raise
                log.warning("the database is asked again: %s", error)
                connection.close()
                time.sleep(0.5)

    return tried
