"""A run of the command line in a pipeline worker of the same install: its engine is there already.

The worker listens on a socket in the data folder, which only the install's own user can reach. Lines of JSON go over
it: what is asked for, what a `Watch` is told, the report. The command that asked stays the run's owner: when it is
stopped, or gone, the worker stops the run as the command would have.
"""

from __future__ import annotations

import json
import logging
import os
import re
import socket
import struct
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, TextIO

from django.conf import settings
from django.db import connections
from dramatiq.middleware.threading import raise_thread_exception

from ondatra_web import projects, stopping, workers
from ondatra_web.models import Workspace
from ondatra_web.runs import asking, printed
from ondatra_web.runs.asking import say
from ondatra_web.runs.watch import TOLD, Watch
from runtime.errors import ConfigError, OndatraError, ProjectError
from runtime.lake import spark

log = logging.getLogger("ondatra.handover")
#: Longer addresses of sockets do not exist.
LONGEST = 100
#: What may name a variable in a push function, and what names one that nobody can tell.
NAME, COMPUTED = re.compile(r"[\"'](\w+)[\"']"), re.compile(r"env\.get\((?!\s*[\"'])")


def place() -> Path:
    return asking.place(settings.ONDATRA)


class Listening:
    """Of one worker process, until it ends. One run at a time: another one is told to go elsewhere."""

    def __init__(self) -> None:
        self._socket = socket.socket(socket.AF_UNIX)
        self._at_work = threading.Lock()
        self._walk: threading.Thread | None = None

    def begin(self) -> None:
        """Listens from now on; the newest worker of an install does."""
        if len(str(place())) > LONGEST:
            return
        own = place().with_suffix(f".{os.getpid()}")
        with suppress(FileNotFoundError):
            own.unlink()
        before = os.umask(0o177)
        try:
            self._socket.bind(str(own))
        finally:
            os.umask(before)
        self._socket.listen(4)
        own.replace(place())
        threading.Thread(target=self._listen, name="handed over", daemon=True).start()

    def end(self) -> None:
        """Stops the run at hand and waits until it is tidied up."""
        self._socket.close()
        walk = self._walk
        if walk and walk.is_alive():
            _stop(walk, "the end of its worker")
            walk.join(stopping.SECONDS)

    def _listen(self) -> None:
        while True:
            try:
                wire, _ = self._socket.accept()
            except OSError:  # closed
                return
            threading.Thread(target=self._serve, args=(wire,), name="handed over", daemon=True).start()

    def _serve(self, wire: socket.socket) -> None:
        with (
            suppress(OSError),  # of what is left to be written to one who is gone
            wire,
            wire.makefile("w", encoding="utf-8") as out,
            wire.makefile(encoding="utf-8") as line,
        ):
            if not self._at_work.acquire(blocking=False):
                return
            try:
                asked = json.loads(line.readline())
                if not _is_ours(wire) or (workspace := _workspace(asked)) is None:
                    return
                workers.me("pipeline")
                self._walk = threading.current_thread()
                say(out, {"takes": True})
                with _stopped_by(line):
                    said = _made(workspace, asked, out)
                say(out, said)
            except (OSError, ValueError, KeyboardInterrupt) as error:
                log.info("a run of the command line was not made to its end: %r", error)
            finally:
                self._walk = None
                self._at_work.release()
                connections.close_all()


def _is_ours(wire: socket.socket) -> bool:
    """Whether the system's user who asks is this process's: who ran what is written down."""
    who = struct.unpack("3i", wire.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, struct.calcsize("3i")))
    return who[1] == os.getuid()


def _workspace(asked: Mapping[str, Any]) -> Workspace | None:
    """That of the run, if the run would be the same as in the process that asks, and sooner."""
    if not spark.is_there() or asked["install"] != asking.install(settings.ONDATRA):
        return None
    try:
        workspace = projects.workspace_of(asked["workspace"])
    except ConfigError:  # which the process that asks tells
        return None

    mine, theirs = asking.environment(asked["salt"]), asked["environment"]
    others = {name for name in {*mine, *theirs} if mine.get(name) != theirs.get(name)}
    return workspace if asking.DATABASE not in others and _sees_the_same(workspace, others) else None


def _sees_the_same(workspace: Workspace, others: set[str]) -> bool:
    """Whether no push function can read one of the variables in which two processes differ."""
    if workspace.env_file:
        return True
    project = Path(workspace.project_dir)
    files = [project / "ondatra.toml", *(project / "lib").rglob("*.star")]
    texts = [file.read_text(errors="replace") for file in files if file.is_file()]
    return not any(COMPUTED.search(text) or others.intersection(NAME.findall(text)) for text in texts)


def _made(workspace: Workspace, asked: Mapping[str, Any], out: TextIO) -> dict[str, Any]:
    try:
        told = printed.made(workspace, asked["names"], asked["options"], _Told(out), as_json=asked["json"])
    except ProjectError as error:
        return {"problems": [vars(problem) for problem in error.problems]}
    except OndatraError as error:
        return {"error": str(error), "before": isinstance(error, ConfigError)}
    return {"report": vars(told)}


class _Told(Watch):
    """Everything goes to the command that asked."""

    def __init__(self, out: TextIO) -> None:
        self._out, self._guard = out, threading.Lock()

    def tell(self, name: str, *args: Any) -> None:
        with self._guard, suppress(OSError, ValueError):  # nobody hears it any more: `_stopped_by` sees to it
            say(self._out, {"tell": name, "args": args})


def _teller(name: str) -> Callable[..., None]:
    return lambda self, *args: self.tell(name, *args)


for _name in TOLD:
    setattr(_Told, _name, _teller(_name))


@contextmanager
def _stopped_by(line: TextIO) -> Iterator[None]:
    """Stops the block when the other side says so, or is gone."""
    walk, over = threading.current_thread(), threading.Event()

    def listen() -> None:
        why = "the end of its command"
        with suppress(OSError, ValueError):
            why = json.loads(line.readline())["stop"]
        if not over.is_set():
            _stop(walk, why)

    threading.Thread(target=listen, name="handed over", daemon=True).start()
    try:
        yield
    finally:
        over.set()


def _stop(walk: threading.Thread, why: str) -> None:
    """What a signal does to the main thread."""
    stopped = type("Stopped", (stopping.Stopped,), {"__str__": lambda self: why})
    raise_thread_exception(walk.ident, stopped)
