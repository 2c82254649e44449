"""A limit of time for questions to DuckDB: one thread watches all of them, and sleeps while there are none."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

import duckdb

_busy: dict[duckdb.DuckDBPyConnection, float] = {}
_guard = threading.Lock()
_called = threading.Event()
_watching: list[threading.Thread] = []


@contextmanager
def limited(con: duckdb.DuckDBPyConnection, seconds: float) -> Iterator[None]:
    """Interrupts what the connection does when its time is over: duckdb.InterruptException."""
    _busy[con] = time.monotonic() + seconds
    if not _called.is_set():
        _start()
    try:
        yield
    finally:
        _busy.pop(con, None)


def _start() -> None:
    with _guard:
        if not _watching or not _watching[0].is_alive():  # also after a fork
            _watching[:] = [threading.Thread(target=_watch, name="duckdb-limit", daemon=True)]
            _watching[0].start()
    _called.set()


def _watch() -> None:
    while True:
        _called.wait()
        time.sleep(0.25)
        now = time.monotonic()
        late = [con for con, until in list(_busy.items()) if until < now]
        for con in late:  # once may come too early for it to be seen
            con.interrupt()
        if not _busy:
            _called.clear()
            if _busy:  # one that came in between
                _called.set()
