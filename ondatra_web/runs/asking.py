"""The command's side of a run that a worker makes (`handover`): what is asked for goes over, what a `Watch` is told and
the report come back. Nothing here needs Django, whose set-up takes longer than all else that the command does."""

from __future__ import annotations

import hashlib
import json
import os
import socket
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TextIO

from ondatra_web.runs.watch import Watch
from runtime.config import Config
from runtime.custody.secrets import without_own
from runtime.errors import ConfigError, OndatraError, Problem, ProjectError

#: Seconds for which a worker that listens may take to say whether it will.
ANSWERS_WITHIN = 1.0
#: Which database the install has.
DATABASE = "DATABASE_URL"


@dataclass(frozen=True)
class Report:
    """What came of a run: the object that `--json` prints, the same for a person, and the exit code."""

    said: dict[str, Any]
    text: str
    code: int


@dataclass(frozen=True)
class Wire:
    """A worker that makes the run."""

    line: TextIO
    out: TextIO

    def hear(self, watch: Watch) -> Report:
        """Raises what the run raised."""
        try:
            return _heard(self.line, watch)
        except KeyboardInterrupt as error:
            with suppress(OSError, ValueError):
                say(self.out, {"stop": str(error)})
                for _ in self.line:  # until what was answered is recorded
                    pass
            raise


def place(config: Config) -> Path:
    return config.data_dir / "runs.sock"


@contextmanager
def asked(
    config: Config, workspace: str, names: Sequence[str], options: Mapping[str, Any], *, as_json: bool
) -> Iterator[Wire | None]:
    """The worker that makes the run; None where none will. Its report has no text for a person `as_json`."""
    wire = _connected(place(config))
    if wire is None:
        yield None
        return
    with wire, wire.makefile("w", encoding="utf-8") as out, wire.makefile(encoding="utf-8") as line:
        salt = os.urandom(8).hex()
        told = {"workspace": workspace, "names": list(names), "options": dict(options), "json": as_json}
        takes = False
        with suppress(OSError, ValueError):
            say(out, {**told, "install": install(config), "salt": salt, "environment": environment(salt)})
            takes = json.loads(line.readline() or "{}").get("takes", False)
        wire.settimeout(None)
        yield Wire(line, out) if takes else None


def _connected(place: Path) -> socket.socket | None:
    if not place.exists():
        return None
    wire = socket.socket(socket.AF_UNIX)
    wire.settimeout(ANSWERS_WITHIN)
    try:
        wire.connect(str(place))
    except OSError:  # a worker that is gone leaves its socket
        wire.close()
        return None
    return wire


def _heard(line: TextIO, watch: Watch) -> Report:
    for text in line:
        said = json.loads(text)
        if "tell" in said:
            getattr(watch, said["tell"])(*said["args"])
        elif "report" in said:
            return Report(**said["report"])
        elif "problems" in said:
            raise ProjectError([Problem(**problem) for problem in said["problems"]])
        else:
            raise (ConfigError if said["before"] else OndatraError)(said["error"])
    raise OndatraError("the worker that made the run has ended: what was answered is recorded, and the rest stays due")


# what both sides say


def install(config: Config) -> list[str]:
    """What both must have in common, besides the database."""
    urls = (config.lake_url, config.staging_url, config.tracking_url)
    own = (config.project_dir, config.builds, config.plain_build, config.upkeep, config.fault)
    return [*urls, *map(str, own), __file__]


def environment(salt: str) -> dict[str, str]:
    """Digests that tell whether two processes see the same, and not what: of the variables that a push function may
    read, and of the database."""
    seen = {**without_own(dict(os.environ)), DATABASE: os.environ.get(DATABASE, "")}
    return {
        name: hashlib.sha256(f"{salt}{value}".encode(errors="surrogateescape")).hexdigest()[:16]
        for name, value in seen.items()
    }


def say(out: TextIO, told: Mapping[str, Any]) -> None:
    out.write(json.dumps(told) + "\n")
    out.flush()
