"""What the tests of the dialect share."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from typing import Any

import pytest


@pytest.fixture(scope="module")
def spark() -> Iterator[Any]:
    """A session of its own, beside a DuckDB whose process is in UTC."""
    from runtime.lake.spark import session

    before = os.environ.get("TZ")
    os.environ["TZ"] = "UTC"
    time.tzset()
    yield session().newSession()
    if before is None:
        del os.environ["TZ"]
    else:
        os.environ["TZ"] = before
    time.tzset()
