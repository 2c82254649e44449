"""What the tests of push functions begin with."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from push_bench import Bench
from web_server import WebServer, web_server

from runtime.store.folder import FolderStore


@pytest.fixture
def server() -> Iterator[WebServer]:
    with web_server() as made:
        yield made


@pytest.fixture
def bench(tmp_path: Path, server: WebServer) -> Bench:
    return Bench(tmp_path, server.url)


@pytest.fixture
def store(tmp_path: Path) -> FolderStore:
    return FolderStore(tmp_path / "store")
