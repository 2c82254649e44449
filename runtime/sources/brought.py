"""What executors elsewhere read of source files: files of the driver's disk, brought to the staging area, and what they
wrote there themselves of files that they have too. Both stay until this process ends."""

from __future__ import annotations

import atexit
import datetime as dt
import fcntl
import threading
import uuid
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import lru_cache
from pathlib import Path
from typing import IO

from runtime.config import from_env
from runtime.errors import StoreError
from runtime.lake.table import path_of
from runtime.store.base import Store
from runtime.store.opening import open_store

FOLDER = "sources"
#: What a process left that died on another machine lies there for so many days: longer than any run.
KEPT_DAYS = 7
#: A process that lives longer begins another folder after so many, before one on another machine takes it for dead.
ANEW_DAYS = 3
#: States of one read that are kept: builds side by side may have begun with one that is no longer the newest.
MOST_STATES = 3
#: As long may a read take whose parts are put into a bucket.
UPLOAD_SECONDS = 6 * 3600
_guard = threading.Lock()
_bringing: dict[str, threading.Lock] = {}  # by read
_brought: dict[tuple[str, str], dict[str, tuple[str, ...]]] = {}  # by folder, read and state


def bring(of: str, state: str, files: Mapping[str, Path]) -> list[str]:
    """The paths, as Spark takes them, of these files by their new names. One state `of` a read is brought once; those
    before the last ones go, since no build reads them any more."""

    def put(store: Store, folder: str) -> list[str]:
        paths = [f"{folder}/{new}" for new in files]
        for path, file in zip(paths, files.values(), strict=True):
            store.put_file(path, file)
        return paths

    return _once(of, state, put)


def made(of: str, state: str, make: Callable[[Path | None, Callable[[str], str]], bool]) -> list[str]:
    """The same of files that executors write, if `make` says that they did; none if not. It is told the folder, if all
    machines have it, and of each file the address at which it is put there, if not."""

    def put(store: Store, folder: str) -> list[str]:
        there = store.local(folder) if store.near else None
        return [folder] if make(there, lambda name: store.upload_url(f"{folder}/{name}", UPLOAD_SECONDS)) else []

    return _once(of, state, put)


def _once(of: str, state: str, put: Callable[[Store, str], list[str]]) -> list[str]:
    store, mine = place()
    with _guard:
        states, guard = _brought.setdefault((mine, of), {}), _bringing.setdefault(of, threading.Lock())
    with guard:  # models that are built side by side may read the same
        if state not in states:
            attempt = f"{mine}/{of}/{state}/{uuid.uuid4().hex}"  # beside what one that was broken off left
            paths = tuple(path_of(store.url_of(path)) for path in put(store, attempt))
            if not paths:
                return []
            states[state] = paths
            for old in list(states)[:-MOST_STATES]:
                del states[old]
                with suppress(StoreError):  # it goes with the process
                    store.delete_prefix(f"{mine}/{of}/{old}")
        return list(states[state])


def place() -> tuple[Store, str]:
    """The folder of this process, in its store: for whatever executors read until this process ends, or sooner."""
    with _guard:
        return _mine(from_env().staging_url, _today().toordinal() // ANEW_DAYS)


@lru_cache(maxsize=1)
def _mine(staging_url: str, since: int) -> tuple[Store, str]:
    """Its name begins with today's date; a lock that goes with the process says that it is in use."""
    forget_dead()
    store, name = open_store(staging_url), f"{_today()}-{uuid.uuid4().hex[:12]}"
    lock = _lock(name)
    lock.parent.mkdir(parents=True, exist_ok=True)
    held = lock.open("w")
    fcntl.flock(held, fcntl.LOCK_EX)
    atexit.register(_end, store, name, held)
    return store, f"{FOLDER}/{name}"


def _end(store: Store, name: str, held: IO[str]) -> None:
    with suppress(StoreError):  # then it is forgotten as one of a dead process
        store.delete_prefix(f"{FOLDER}/{name}")
        _lock(name).unlink(missing_ok=True)
    held.close()


def forget_dead() -> None:
    """What processes left goes: those that died on this machine, and on others after some days."""
    store = open_store(from_env().staging_url)
    with suppress(StoreError, ValueError):  # a folder of another kind has no date
        for name in sorted({path.split("/")[1] for path in store.list(FOLDER)}):
            days, lock = (_today() - dt.date.fromisoformat(name[:10])).days, _lock(name)
            if _is_free(lock) if lock.exists() else days > KEPT_DAYS:
                store.delete_prefix(f"{FOLDER}/{name}")
                _lock(name).unlink(missing_ok=True)


def _today() -> dt.date:
    return dt.datetime.now(dt.UTC).date()


def _lock(name: str) -> Path:
    return from_env().locks_dir / f"{FOLDER}-{name}.lock"


def _is_free(lock: Path) -> bool:
    """Whether the process is known to be gone; of one on another machine there is no lock here."""
    try:
        with lock.open() as file:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True
