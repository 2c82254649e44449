"""Files of the driver's disk, brought to where executors elsewhere read them: the staging area, until this process
ends."""

from __future__ import annotations

import atexit
import datetime as dt
import threading
import uuid
from collections.abc import Mapping
from contextlib import suppress
from functools import lru_cache
from pathlib import Path

from runtime.config import from_env
from runtime.errors import StoreError
from runtime.lake.table import path_of
from runtime.store.base import Store
from runtime.store.opening import open_store

FOLDER = "sources"
#: What a process left that died lies there for so many days: longer than any run.
KEPT_DAYS = 7
#: States of one read that are kept: builds side by side may have begun with one that is no longer the newest.
MOST_STATES = 3
_guard = threading.Lock()
_brought: dict[str, dict[str, tuple[str, ...]]] = {}  # by read and state


def bring(of: str, state: str, files: Mapping[str, Path]) -> list[str]:
    """The paths, as Spark takes them, of these files by their new names. One state `of` a read is brought once; those
    before the last ones go, since no build reads them any more."""
    with _guard:
        states = _brought.setdefault(of, {})
        store, mine = _mine(from_env().staging_url)
        if state not in states:
            paths = [f"{mine}/{of}/{state}/{new}" for new in files]
            for path, file in zip(paths, files.values(), strict=True):
                store.put_file(path, file)
            states[state] = tuple(path_of(store.url_of(path)) for path in paths)
            for old in list(states)[:-MOST_STATES]:
                del states[old]
                with suppress(StoreError):  # it goes with the process
                    store.delete_prefix(f"{mine}/{of}/{old}")
        return list(states[state])


@lru_cache(maxsize=1)
def _mine(staging_url: str) -> tuple[Store, str]:
    """The folder of this process, whose name begins with today's date."""
    store, today = open_store(staging_url), dt.datetime.now(dt.UTC).date()
    _forget_old(store, today)
    mine = f"{FOLDER}/{today}-{uuid.uuid4().hex[:12]}"

    def end() -> None:
        with suppress(StoreError):  # then it is forgotten as an old one
            store.delete_prefix(mine)

    atexit.register(end)
    return store, mine


def _forget_old(store: Store, today: dt.date) -> None:
    with suppress(StoreError):
        for path in list(store.list(FOLDER)):
            date = dt.date.fromisoformat(path.split("/")[1][:10])
            if (today - date).days > KEPT_DAYS:
                store.delete(path)
