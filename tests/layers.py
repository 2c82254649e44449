"""The layers of the suite, by what a test needs: found at collection, from its fixtures, markers and place.

A fast test needs no Spark, no browser and no server's process; one that starts such a thing all the same fails.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from enum import IntEnum
from pathlib import Path
from typing import Any

import pytest

CONFORMANCE = Path(__file__).resolve().parent / "conformance"
#: What a server's test needs; a fixture that makes one out of these counts as well.
SERVERS = {"redis_url", "postgres_url", "s3"}
#: Programs of servers and browsers, and the script that starts Spark's Java machine.
DEAR = {
    "chromium",
    "chromium-browser",
    "google-chrome",
    "initdb",
    "node",
    "pg_ctl",
    "pocketbase",
    "redis-server",
    "spark-submit",
    "weed",
}
WAY_OUT = "a fast test started {}: mark it spark, browser or server, or use the fixture of that name"


class Layer(IntEnum):
    """In the order in which they run: quick ones first, so that a mistake shows soon."""

    FAST = 0
    SERVER = 1
    SPARK = 2
    BROWSER = 3
    CONFORMANCE = 4


#: What else lies there; `bin/test fast` does not look into these folders.
FOLDERS = {"browser": Layer.BROWSER, "cluster": Layer.SERVER, "conformance": Layer.CONFORMANCE}


def layer_of(item: pytest.Item) -> Layer:
    fixtures = set(getattr(item, "fixturenames", ()))
    if item.path.is_relative_to(CONFORMANCE):
        return Layer.CONFORMANCE
    if "page" in fixtures or item.get_closest_marker("browser"):
        return Layer.BROWSER
    if "spark" in fixtures or item.get_closest_marker("spark"):
        return Layer.SPARK
    if fixtures & SERVERS or item.get_closest_marker("server"):
        return Layer.SERVER
    return FOLDERS.get(item.path.parent.name, Layer.FAST)


_started: list[str] | None = None  # what a fast test has started, while one runs


@contextmanager
def nothing_dear() -> Iterator[None]:
    """Refuses to start a browser, a server or Spark within; in processes below this one, Spark."""
    global _started
    outside = _started
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SPARK_HOME", f"/{WAY_OUT.format('Spark')}")  # where such a process looks for its script
        _started = []
        try:
            yield
        finally:
            _started = outside


def refused() -> str:
    """What was refused within, whether or not somebody swallowed the error; empty if nothing was."""
    return WAY_OUT.format(_started[0]) if _started else ""


def _refuse_dear(event: str, arguments: tuple[Any, ...]) -> None:
    """Hears of each process before it is started."""
    if event != "subprocess.Popen" or _started is None:
        return

    executable, command = arguments[:2]
    words = [command] if isinstance(command, str | bytes | Path) else list(command)
    for name in (Path(str(word)).name for word in (executable, *words)):
        if name.removesuffix(".exe") in DEAR:
            _started.append(name)
            raise RuntimeError(WAY_OUT.format(name))


sys.addaudithook(_refuse_dear)
