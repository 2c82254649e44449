"""Which processes live. A process holds an operating-system lock for life, so a free lock proves that it is dead."""

from __future__ import annotations

import contextlib
import datetime as dt
import fcntl
import os
import socket
import threading
import time
from pathlib import Path
from typing import IO, Any

from django.conf import settings
from django.db import close_old_connections, connection, connections
from django.db.models import QuerySet
from django.utils import timezone

from ondatra_web.models import Delivery, Run, Worker

#: A held lock whose heartbeat is older than this is taken over: the machine may be gone or the process stopped.
LOST_AFTER = dt.timedelta(seconds=60)
HEARTBEAT_SECONDS = 10
#: Advisory lock numbers of workers start here, out of the way of other users of the database.
ADVISORY_BASE = 0x0D_A7_2A << 32

_mine: dict[int, tuple[Worker, Any]] = {}  # process id -> its row and what holds its lock
_seen: dict[
    int, tuple[dt.datetime, float]
] = {}  # worker -> its heartbeat, and since when this process sees the same one (monotonic)
_guard = threading.Lock()


def me(kind: str = "run") -> Worker:
    """This process's row. The first call makes it, takes the lock and starts the heartbeat; it should stand before a
    transaction, not in one: a rollback would take the row away again, and its number would go to another process."""
    with _guard:
        if os.getpid() not in _mine:
            worker = Worker.objects.create(kind=kind, host=socket.gethostname(), pid=os.getpid())
            _mine[os.getpid()] = worker, _hold(worker)
            threading.Thread(target=_beat, args=(worker.pk,), name="heartbeat", daemon=True).start()
        return _mine[os.getpid()][0]


def is_me(worker: Worker) -> bool:
    return os.getpid() in _mine and _mine[os.getpid()][0].pk == worker.pk


def alive(kind: str, host: str | None = None) -> int:
    """How many processes of that kind, of that host or of all, tell that they live; one that just died may be among
    them."""
    since = timezone.now() - LOST_AFTER
    told = Worker.objects.filter(kind=kind, ended_at=None, heartbeat_at__gt=since)
    return (told if host is None else told.filter(host=host)).count()


def is_dead(worker: Worker | None) -> bool:
    """Whether that process is gone; what it had claimed is then free. None (never claimed) counts as dead."""
    if worker is None or worker.ended_at is not None:
        return True
    return not is_me(worker) and (_lock_is_free(worker) or _is_silent(worker))


def is_anothers(worker: Worker | None) -> bool:
    """Whether what that process had claimed is held by a living one other than this."""
    return worker is not None and not is_me(worker) and not is_dead(worker)


def _is_silent(worker: Worker) -> bool:
    """Whether its heartbeat stands still: the process was stopped, or its machine is gone.

    A clock that was set proves nothing. On one machine all processes share the monotonic clock, which the lock's file
    tells; else a worker that was seen before must also have been silent for as long as this process looks on.
    """
    if worker.lock and worker.host == socket.gethostname():
        with contextlib.suppress(OSError, ValueError):
            return time.monotonic() - float(Path(worker.lock).read_text()) > LOST_AFTER.total_seconds()
    old, now = timezone.now() - worker.heartbeat_at > LOST_AFTER, time.monotonic()
    if worker.pk not in _seen:
        _seen[worker.pk] = worker.heartbeat_at, now
        return old
    beat, since = _seen[worker.pk]
    if beat != worker.heartbeat_at:
        _seen[worker.pk] = worker.heartbeat_at, now
        return False
    return now - since > LOST_AFTER.total_seconds() or old and now - since > 2 * HEARTBEAT_SECONDS


def _hold(worker: Worker) -> Any:
    if connection.vendor == "postgresql":
        own = connections["default"].copy()  # type: ignore[no-untyped-call]  # a session of its own: the lock lives as long as it
        own.inc_thread_sharing()  # the heartbeat looks after it
        _keep_session(own, worker.pk)
        return own
    folder = settings.ONDATRA.locks_dir
    folder.mkdir(parents=True, exist_ok=True)
    worker.lock = str(folder / f"worker-{worker.pk}.lock")
    file = open(worker.lock, "w")  # noqa: SIM115  held open for the life of the process
    fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    _tell_time(file)
    worker.save(update_fields=["lock"])
    return file


def _keep_session(own: Any, pk: int) -> None:
    """Takes the advisory lock where the session that held it is gone: a database that was started anew knows no
    locks."""
    try:
        with own.cursor() as cursor:
            cursor.execute("SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND pid = pg_backend_pid()")
            if not cursor.fetchone()[0]:
                cursor.execute("SELECT pg_advisory_lock(%s)", [ADVISORY_BASE + pk])
    except Exception:
        own.close()  # the next beat connects anew
        raise


def _tell_time(file: IO[str]) -> None:
    os.pwrite(file.fileno(), f"{time.monotonic():020.3f}".encode(), 0)


def _lock_is_free(worker: Worker) -> bool:
    if not worker.lock:
        if connection.vendor != "postgresql":
            return False  # made but not yet locked: its heartbeat decides
        with connection.cursor() as cursor:
            cursor.execute("SELECT pg_try_advisory_lock(%s)", [ADVISORY_BASE + worker.pk])
            free = bool(cursor.fetchone()[0])
            if free:
                cursor.execute("SELECT pg_advisory_unlock(%s)", [ADVISORY_BASE + worker.pk])
            return free
    if worker.host != socket.gethostname():
        return False
    file: IO[str] | None = None
    try:
        file = open(worker.lock)  # noqa: SIM115
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except FileNotFoundError:
        return True
    except OSError:
        return False
    finally:
        if file:
            file.close()
    Worker.objects.filter(pk=worker.pk, ended_at=None).update(ended_at=timezone.now())
    with contextlib.suppress(OSError):
        Path(worker.lock).unlink()
    return True


def give_back(delivery_id: int, lease: int) -> None:
    """A claim that this process, which lives on, will not work on: free at the next heartbeat that reaches the
    database."""
    _give_back(Delivery.objects.filter(pk=delivery_id, lease=lease).exclude(status=Delivery.Status.CLOSED))


def give_back_run(run_id: int, lease: int) -> None:
    """The same of a run that this process will not end."""
    _give_back(Run.objects.filter(pk=run_id, lease=lease, status__in=Run.ACTIVE))


def _give_back(claimed: QuerySet[Any]) -> None:
    _given_back.append(claimed)
    with contextlib.suppress(Exception):
        _free_given_back()


_given_back: list[QuerySet[Any]] = []


def _free_given_back() -> None:
    while _given_back:
        _given_back[0].update(owner=None)
        _given_back.pop(0)


def _beat(pk: int) -> None:
    while True:
        threading.Event().wait(HEARTBEAT_SECONDS)
        with contextlib.suppress(Exception):  # a database that is down for a while must not end the heartbeat
            if not _keep_lock(pk):
                return
            close_old_connections()
            Worker.objects.filter(pk=pk).update(heartbeat_at=timezone.now())
            _free_given_back()
            connection.close()


def _keep_lock(pk: int) -> bool:
    """Whether the process still goes by that row. A function, so that nothing holds the lock while the thread waits for
    time or the database."""
    mine = _mine.get(os.getpid())
    if mine is None or mine[0].pk != pk:
        return False  # a test ended it
    worker, lock = mine
    if worker.lock:
        _tell_time(lock)
    else:
        _keep_session(lock, pk)
    return True
