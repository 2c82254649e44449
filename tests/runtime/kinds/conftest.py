from __future__ import annotations

from typing import Any

import pytest

from runtime.spark import session


@pytest.fixture(scope="session")
def spark() -> Any:
    return session()
