"""A process beside this one in which Starlark runs: what takes too much memory, nests too deeply or never comes back
ends that process, and this one lives on.

It has no secret of the install in its environment, no file of the project and no database: it is sent the text of a
function and its rows, makes the requests, and asks back for whatever else it needs.
"""

from __future__ import annotations

import atexit
import contextlib
import math
import os
import pickle
import re
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from runtime.errors import OndatraError

#: The process says so often that it can be talked to, in seconds; Starlark's own work between two steps keeps it from
#: that. After STUCK without a word it is ended.
BEAT, STUCK = 0.5, 30.0
#: Seconds between two looks while an answer is waited for.
LOOK_EVERY = 0.5
#: Where in the file of the process's errors traced.py has it write its place, and how long that is.
AT, LENGTH = 1 << 20, 256
#: Answers a question of the process: its name and arguments.
Answering = Callable[[str, tuple[Any, ...]], Any]


#: What the process gets of the environment: where programs and authorities are, how to reach the outside.
PASSED = re.compile(
    r"PATH|HOME|LANG|LC_\w+|TZ|LD_LIBRARY_PATH|(https?|all|no)_proxy|SSL_CERT_(FILE|DIR)|(REQUESTS|CURL)_CA_BUNDLE",
    re.IGNORECASE,
)


#: What is said where an allocation fails.
_MEMORY = re.compile("memory allocation|out of memory|AlignedSize must not|capacity overflow")


def _environment() -> dict[str, str]:
    return {name: value for name, value in os.environ.items() if PASSED.fullmatch(name)}


class SandboxDied(OndatraError):
    """The process ended within a call; what it had sent is not known."""


class Sandbox:
    """One process, and connections to it: each serves one call at a time."""

    def __init__(self) -> None:
        self._control, theirs = socket.socketpair()
        self._errors = tempfile.TemporaryFile()  # noqa: SIM115  read when the process died
        root = str(Path(__file__).resolve().parents[2])
        self.process = subprocess.Popen(
            [sys.executable, "-m", "runtime.push.sandbox_child", str(theirs.fileno())],
            pass_fds=[theirs.fileno()],
            process_group=0,  # a Ctrl-C is for this process; no session of its own, which the scheduler would set apart
            cwd=root,
            env={**_environment(), "PYTHONPATH": root, "MALLOC_ARENA_MAX": "2"},
            stderr=self._errors,
        )
        theirs.close()
        self._control.setblocking(False)
        self._heard = time.monotonic() + STUCK  # it has to start first
        self._idle: list[Connection] = []
        self._lock = threading.Lock()
        self.known: set[str] = set()  # what it was sent

    @property
    def alive(self) -> bool:
        return self.process.poll() is None

    def call(
        self, asked: tuple[Any, ...], answering: Answering, *, most: float | None = None, within: float = math.inf
    ) -> Any:
        """Asks and waits for the answer; see `begin` and `Begun.answer`."""
        return self.begin(asked).answer(answering, most=most, within=within)

    def begin(self, asked: tuple[Any, ...]) -> Begun:
        """Asks. Raises SandboxDied."""
        connection = self._connection()
        try:
            connection.send_bytes(pickle.dumps(asked))
        except OSError:
            raise self.died() from None
        return Begun(self, connection)

    def died(self) -> SandboxDied:
        """Ends the process, of which a connection broke: the error to raise."""
        self.end()
        return SandboxDied(self._why())

    def rests(self, connection: Connection) -> None:
        """Its call is over."""
        self._idle.append(connection)

    def end(self) -> None:
        """Ends the process at once; every call in it ends in SandboxDied."""
        with contextlib.suppress(OSError):
            self._control.close()
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.process.wait(1)  # where it died by itself, it says of what
        self.process.kill()
        self.process.wait()

    def forget(self) -> None:
        """In a process that was forked from the one that it belongs to."""
        self._control.close()
        for connection in self._idle:
            connection.close()

    def _connection(self) -> Connection:
        with contextlib.suppress(IndexError):
            return self._idle.pop()
        mine, theirs = socket.socketpair()
        try:
            with self._lock:
                socket.send_fds(self._control, [b"c"], [theirs.fileno()])
        except OSError:
            mine.close()
            raise SandboxDied(self._why()) from None
        finally:
            theirs.close()
        return Connection(mine.detach())

    @property
    def place(self) -> tuple[str, int] | None:
        """File and line of the last mark."""
        found = os.pread(self._errors.fileno(), LENGTH, AT).decode("utf-8", "replace").split("\n")
        return (found[0], int(found[1])) if len(found) > 1 else None

    def wait(self, connection: Connection, most: float, until: float) -> None:
        """Until something can be read there. The process is killed after `most` seconds without a word, and when it is
        past `until`."""
        began = time.monotonic()
        while not connection.poll(LOOK_EVERY):
            with contextlib.suppress(BlockingIOError), self._lock:
                if self._control.recv(4096):
                    self._heard = time.monotonic()
            now = time.monotonic()
            if now - max(self._heard, began) > most or now > until:
                self.process.send_signal(signal.SIGKILL)

    def _why(self) -> str:
        code = self.process.poll()
        self._errors.seek(0)
        said = self._errors.read(4096).decode("utf-8", "replace").strip()
        if code == -signal.SIGKILL:
            return "one step of it took too long"
        if code == -signal.SIGABRT and _MEMORY.search(said):
            return "it took too much memory"
        if code in (-signal.SIGSEGV, -signal.SIGBUS) or "overflowed its stack" in said:
            return "a value is nested too deeply"
        return f"its process ended ({code}): {said[-500:]}" if said else f"its process ended ({code})"


class Begun:
    """What was asked of the process and is not answered yet."""

    def __init__(self, there: Sandbox, connection: Connection) -> None:
        self._there, self._connection = there, connection

    def answer(self, answering: Answering, *, most: float | None = None, within: float = math.inf) -> Any:
        """What the process answers. It is ended after `most` seconds without a word (STUCK), or when it has not
        answered `within` seconds. Raises SandboxDied, and what was raised over there or by `answering`."""
        until = time.monotonic() + within
        there, connection = self._there, self._connection
        try:
            while True:
                there.wait(connection, STUCK if most is None else most, until)
                kind, value = connection.recv()
                if kind == "asked":
                    connection.send(_answer(answering, *value))
                    continue
                there.rests(connection)
                if kind == "raised":
                    raise value
                return value
        except (EOFError, OSError):
            raise there.died() from None


def _answer(answering: Answering, name: str, given: tuple[Any, ...]) -> tuple[str, Any]:
    try:
        return "value", answering(name, given)
    except OndatraError as error:
        return "raised", error


_one: Sandbox | None = None
_guard = threading.Lock()


def sandbox() -> Sandbox:
    """This process's; a new one where the last one ended."""
    global _one
    with _guard:
        if _one is None or not _one.alive:
            _one = Sandbox()
        return _one


def _forked() -> None:
    global _one, _guard
    if _one:
        _one.forget()
    _one, _guard = None, threading.Lock()


def _ended() -> None:
    if _one:
        _one.process.kill()


os.register_at_fork(after_in_child=_forked)
atexit.register(_ended)
