"""What the tests of push functions begin with."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from push_bench import Bench
from web_server import WebServer, web_server

from runtime.push.http import client


@pytest.fixture
def server() -> Iterator[WebServer]:
    with web_server() as made:
        yield made


@pytest.fixture
def bench(tmp_path: Path, server: WebServer) -> Bench:
    return Bench(tmp_path, server.url)


@pytest.fixture(params=["asleep", "awake"])
def waiting(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Both ways in which the client waits for an answer; the second one is otherwise for destinations that are proved
    to be near."""
    if request.param == "awake":
        monkeypatch.setattr(client, "NEAR_AFTER", 0)
        monkeypatch.setattr(client, "NEAR", 0.01)
