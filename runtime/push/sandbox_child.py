"""The process of sandbox.py: serves each connection that it is given in a thread of its own."""

from __future__ import annotations

import ast
import os
import pickle
import resource
import signal
import socket
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import starlark as native

from runtime.errors import OndatraError
from runtime.push import starlark, traced
from runtime.push.builtins import FUNCTIONS
from runtime.push.call import CallContext, telling
from runtime.push.function import ASK_EVERY, PushFunction
from runtime.push.http.answers import Answer
from runtime.push.http.client import POOL
from runtime.push.sandbox import BEAT
from runtime.push.starlark import Loader, Module
from runtime.threads import STACK

#: What the process may take beside what its calls may: half as much again.
ROOM = starlark.MEMORY_LIMIT // 2
#: Seconds that the top of a file may compute.
TOP_LIMIT = 2.0


class Texts(Loader):
    """Files as they were when they were checked."""

    def __init__(self, texts: Mapping[str, str]) -> None:
        super().__init__(Path("/"), {**FUNCTIONS, "ondatra__at": traced.mark})
        self.texts = texts

    def read(self, file: str) -> str:
        return self.texts[file] if file in self.texts else super().read(file)


class Trial(Loader):
    """Evaluates each file statement by statement, and says which one comes, before it does so as a whole."""

    def __init__(self, ask: Asking) -> None:
        super().__init__(Path("/"), FUNCTIONS)
        self.seconds, self._ask = TOP_LIMIT, ask
        self._texts: dict[str, str] = {}

    def read(self, file: str) -> str:
        if file not in self._texts:
            self._texts[file] = self._ask("read", file)
        return self._texts[file]

    def exists(self, file: str) -> bool:
        return file in self._texts

    def _compile(self, file: str) -> Module:
        module, text = self.prepared(), self.read(file)
        watch = starlark.Watch(lambda: False, TOP_LIMIT)
        options = native.EvalOptions(check_cancelled=watch.look, max_callstack_size=starlark.CALL_DEPTH)
        loading = native.FileLoader(lambda name: self.load(name).frozen)
        try:
            for line, statement in _statements(text):
                self._ask("at", file, line)
                parsed = native.parse(file, "\n" * (line - 1) + statement, starlark.DIALECT)
                native.eval_with(options, module, parsed, starlark.GLOBALS, loading)
        except native.StarlarkError:
            pass  # which the whole says better
        return super()._compile(file)


def _statements(text: str) -> Iterator[tuple[int, str]]:
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return
    lines = text.splitlines(keepends=True)
    for node in tree.body:
        yield node.lineno, "".join(lines[node.lineno - 1 : node.end_lineno])


class Asking:
    """The other process as what a call needs of it: secrets, limits, whether it was cancelled, another transport."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._secrets: dict[tuple[str, str], Any] = {}
        self._looked, self._was_cancelled = 0.0, False

    def __call__(self, name: str, *given: Any) -> Any:
        self._connection.send(("asked", (name, given)))
        kind, value = self._connection.recv()
        if kind == "raised":
            raise value
        return value

    def get(self, name: str, default: Any = None) -> Any:
        key = name, repr(default)
        if key not in self._secrets:
            self._secrets[key] = self("secret", name, default is not None and isinstance(default, str))
        found = self._secrets[key]
        return default if found is None else found

    def take(self, key: str, n: int, seconds: float, cancelled: Callable[[], bool]) -> None:
        self("take", key, n, seconds)

    def pause(self, key: str, until: float) -> None:
        self("pause", key, until)

    def send(self, method: str, url: str, headers: Mapping[str, str], body: bytes | None, timeout: float) -> Answer:
        answer: Answer = self("send", method, url, dict(headers), body, timeout)
        return answer

    def cancelled(self) -> bool:
        """As it was told with the call, for a moment."""
        now = time.monotonic()
        if now - self._looked > ASK_EVERY:
            self._looked, self._was_cancelled = now, bool(self("cancelled"))
        return self._was_cancelled

    def told(self, cancelled: bool) -> None:
        """A call begins; what the one before asked for was another push function's, perhaps of another workspace."""
        self._secrets.clear()
        self._looked, self._was_cancelled = time.monotonic(), cancelled


_functions: dict[str, PushFunction] = {}


def _open(ask: Asking, key: str, name: str, texts: Mapping[str, str], api: Any) -> None:
    _functions[key] = PushFunction(name, Texts(texts).load(f"lib/{name}.star"), api, ask)


def _call(ask: Asking, key: str, method: str, packed: bytes, own: bool, cancelled: bool) -> Any:
    """`packed` are the arguments; `own`: requests are made here. Gives the result, its requests apart, and the secrets
    that were seen."""
    function, (given, more) = _functions[key], pickle.loads(packed)  # noqa: S301  of whoever owns this process
    ask.told(cancelled)
    context = CallContext(secrets=ask, limiter=ask, cancelled=ask.cancelled, transport=POOL if own else ask)
    result = getattr(function, method)(*given, context, **more)

    raw = result.calls.raw()
    if own and function.api.api_calls == "failures" and method != "finalize":
        raw = [raw[place] for place in telling(result)]  # nobody keeps the others
    return replace(result, calls=[]), raw, function.redactor.known()


def _trace(
    ask: Asking, name: str, texts: Mapping[str, str], api: Any, method: str, given: tuple[Any, ...], more: Any
) -> None:
    """A call that ended the process before, with marks; nothing is sent."""
    marked = {file: traced.traced(file, text) for file, text in texts.items()}
    function = PushFunction(name, Texts(marked).load(f"lib/{name}.star"), replace(api, rate_limit=None), ask)
    getattr(function, method)(*given, traced.nothing_real(ask), **more)


def _try(ask: Asking, file: str) -> None:
    """Evaluates a file of which nothing is known."""
    Trial(ask).load(file)


SERVED: Mapping[str, Callable[..., Any]] = {"open": _open, "call": _call, "try": _try, "trace": _trace}


def _serve(connection: Connection) -> None:
    ask = Asking(connection)
    while True:
        try:
            name, *given = connection.recv()
        except (EOFError, OSError):
            return
        try:
            ask.told(False)
            said = "done", SERVED[name](ask, *given)
        except OndatraError as error:
            said = "raised", error
        except BaseException as error:  # the process is there for it: the caller shall know
            if type(error).__name__ == "PanicException":  # of Starlark's own code, in the midst of something
                os.abort()
            said = "raised", OndatraError(f"{type(error).__name__}: {error}")
        try:
            connection.send(said)
        except (OSError, pickle.PicklingError):
            os._exit(1)


def _let_grow(more: int) -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (soft + more, hard))


def _beat(control: socket.socket) -> None:
    while True:
        try:
            control.send(b".", socket.MSG_DONTWAIT)
        except BlockingIOError:
            pass
        except OSError:
            os._exit(0)
        time.sleep(BEAT)


def main() -> None:
    for number in (signal.SIGINT, signal.SIGTERM):  # whoever owns it decides
        signal.signal(number, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    resource.setrlimit(resource.RLIMIT_AS, (pages * 4096 + starlark.MEMORY_LIMIT + ROOM, resource.RLIM_INFINITY))

    control = socket.socket(fileno=int(sys.argv[1]))
    _let_grow(64 << 20)
    threading.Thread(target=_beat, args=(control,), daemon=True).start()
    threading.stack_size(STACK)
    while True:
        told, handles, _, _ = socket.recv_fds(control, 1, 1)
        if not told:  # whoever owns it is gone: nothing more is sent
            os._exit(0)
        _let_grow(STACK + (64 << 20))
        threading.Thread(target=_serve, args=(Connection(handles[0]),), daemon=True).start()


if __name__ == "__main__":
    main()
