"""A run of the command line in a pipeline worker of the same install: its engine is there already.

The worker listens on a socket in the data folder, which only the install's own user can reach. Lines of JSON go over
it: what is asked for, what a `Watch` is told, the report. The command that asked stays the run's owner: when it is
stopped, or gone, the worker stops the run as the command would have.
"""

from __future__ import annotations

import hashlib
import json
import logging
import os
import re
import secrets as random
import socket
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, TextIO

from django.conf import settings
from django.db import connections
from dramatiq.middleware.threading import raise_thread_exception

from ondatra_web import stopping, workers
from ondatra_web.models import Workspace
from ondatra_web.runs import execution, report
from ondatra_web.runs.watch import TOLD, Watch
from runtime.custody.secrets import without_own
from runtime.errors import ConfigError, OndatraError, Problem, ProjectError
from runtime.lake import spark

log = logging.getLogger("ondatra.handover")
#: Seconds for which a worker that listens may take to say whether it will.
ANSWERS_WITHIN = 1.0
#: Longer addresses of sockets do not exist.
LONGEST = 100
#: What may name a variable in a push function, and what names one that nobody can tell.
NAME, COMPUTED = re.compile(r"[\"'](\w+)[\"']"), re.compile(r"env\.get\((?!\s*[\"'])")


def place() -> Path:
    return Path(settings.ONDATRA.data_dir) / "runs.sock"


# the command's side


def ask(workspace: Workspace, names: Sequence[str], options: Mapping[str, Any], watch: Watch) -> dict[str, Any] | None:
    """The report of a run that a worker made; None where none will. Raises as `execution.run_here`."""
    if not place().exists():
        return None
    try:
        wire = socket.socket(socket.AF_UNIX)
        wire.settimeout(ANSWERS_WITHIN)
        wire.connect(str(place()))
    except OSError:  # a worker that is gone leaves its socket
        return None
    with wire, wire.makefile("w", encoding="utf-8") as out, wire.makefile(encoding="utf-8") as line:
        salt = random.token_hex(8)
        told = {"workspace": workspace.pk, "names": list(names), "options": dict(options)}
        _say(out, {**told, "install": _install(), "salt": salt, "environment": _environment(salt)})
        with suppress(OSError, ValueError):
            if json.loads(line.readline() or "{}").get("takes"):
                wire.settimeout(None)
                return _hear(line, out, watch)
    return None


def _hear(line: TextIO, out: TextIO, watch: Watch) -> dict[str, Any]:
    try:
        return _heard(line, watch)
    except KeyboardInterrupt as error:
        with suppress(OSError, ValueError):
            _say(out, {"stop": str(error)})
            for _ in line:  # until what was answered is recorded
                pass
        raise


def _heard(line: TextIO, watch: Watch) -> dict[str, Any]:
    for text in line:
        said = json.loads(text)
        if "tell" in said:
            getattr(watch, said["tell"])(*said["args"])
        elif "report" in said:
            return dict(said["report"])
        elif "problems" in said:
            raise ProjectError([Problem(**problem) for problem in said["problems"]])
        else:
            raise (ConfigError if said["before"] else OndatraError)(said["error"])
    raise OndatraError("the worker that made the run has ended: what was answered is recorded, and the rest stays due")


def _install() -> list[str]:
    """What both must have in common."""
    database, own = settings.DATABASES["default"], settings.ONDATRA
    kept = (database["ENGINE"], database["NAME"], database.get("HOST", ""), database.get("PORT", ""))
    return [*map(str, kept), own.lake_url, own.staging_url, own.tracking_url, str(own.builds), __file__, str(own.fault)]


def _environment(salt: str) -> dict[str, str]:
    """Digests that tell whether two processes see the same, and not what."""
    return {
        name: hashlib.sha256(f"{salt}{value}".encode(errors="surrogateescape")).hexdigest()[:16]
        for name, value in without_own(dict(os.environ)).items()
    }


# the worker's side


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
        with wire, wire.makefile("w", encoding="utf-8") as out, wire.makefile(encoding="utf-8") as line:
            if not self._at_work.acquire(blocking=False):
                return
            try:
                asked = json.loads(line.readline())
                if not _takes(asked):
                    return
                workers.me("pipeline")
                self._walk = threading.current_thread()
                _say(out, {"takes": True})
                with _stopped_by(line):
                    said = _made(asked, out)
                _say(out, said)
            except (OSError, ValueError, KeyboardInterrupt) as error:
                log.info("a run of the command line was not made to its end: %r", error)
            finally:
                self._walk = None
                self._at_work.release()
                connections.close_all()


def _takes(asked: Mapping[str, Any]) -> bool:
    """Whether the run would be the same as in the process that asks, and sooner."""
    if not spark.is_there() or asked["install"] != _install():
        return False
    workspace = Workspace.objects.get(pk=asked["workspace"])
    if workspace.env_file:
        return True
    mine, theirs = _environment(asked["salt"]), asked["environment"]
    others = {name for name in {*mine, *theirs} if mine.get(name) != theirs.get(name)}

    project = Path(workspace.project_dir)
    files = [project / "ondatra.toml", *(project / "lib").rglob("*.star")]
    texts = [file.read_text(errors="replace") for file in files if file.is_file()]
    return not any(COMPUTED.search(text) or others.intersection(NAME.findall(text)) for text in texts)


def _made(asked: Mapping[str, Any], out: TextIO) -> dict[str, Any]:
    workspace = Workspace.objects.select_related("organization").get(pk=asked["workspace"])
    try:
        walk = execution.run_here(workspace, asked["names"], asked["options"], watch=_Told(out))
    except ProjectError as error:
        return {"problems": [vars(problem) for problem in error.problems]}
    except OndatraError as error:
        return {"error": str(error), "before": isinstance(error, ConfigError)}
    return {"report": report.of_walk(walk)}


class _Told(Watch):
    """Everything goes to the command that asked."""

    def __init__(self, out: TextIO) -> None:
        self._out, self._guard = out, threading.Lock()

    def tell(self, name: str, *args: Any) -> None:
        with self._guard, suppress(OSError, ValueError):  # nobody hears it any more: `_stopped_by` sees to it
            _say(self._out, {"tell": name, "args": args})


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


def _say(out: TextIO, told: Mapping[str, Any]) -> None:
    out.write(json.dumps(told) + "\n")
    out.flush()
