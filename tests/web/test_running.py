"""The command's side of a run that a worker makes: what is asked, what is printed, and how little that needs."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]
SAID = {"status": "completed", "models": [], "syncs": []}


class Worker:
    """Takes one run and answers with these lines."""

    def __init__(self, data: Path, *lines: dict[str, Any]) -> None:
        self.data, self.lines, self.asked = data, lines, dict[str, Any]()
        self._socket = socket.socket(socket.AF_UNIX)
        self._socket.bind(str(data / "runs.sock"))
        self._socket.listen()
        threading.Thread(target=self._take, daemon=True).start()

    def _take(self) -> None:
        wire, _ = self._socket.accept()
        with wire, wire.makefile("rw") as line:
            self.asked = json.loads(line.readline())
            for said in ({"takes": True}, *self.lines):
                line.write(json.dumps(said) + "\n")
            line.flush()

    def run(self, *words: str) -> tuple[int, str, list[str]]:
        """The exit code of the command, what it printed, and the errors besides the modules that it loaded."""
        done = subprocess.run(
            [sys.executable, "-X", "importtime", "manage.py", "run", *words],
            cwd=ROOT,
            env={**os.environ, "ONDATRA_DATA_DIR": str(self.data), "DATABASE_URL": ""},
            capture_output=True,
            text=True,
            check=False,
        )
        loaded = [line for line in done.stderr.splitlines() if line.startswith("import time:")]
        assert not [line for line in loaded if line.rpartition("| ")[2].strip().startswith("django")]
        return done.returncode, done.stdout, [line for line in done.stderr.splitlines() if line not in loaded]


@pytest.fixture
def data() -> Iterator[Path]:
    """A folder with a short name: a socket's address has no room for more."""
    with tempfile.TemporaryDirectory() as folder:
        yield Path(folder)


def test_a_worker_is_asked_and_its_report_printed_without_django(data: Path) -> None:
    told = {"tell": "began", "args": [7, "sync.a"]}
    worker = Worker(data, told, {"report": {"said": SAID, "text": "", "code": 1}})
    code, out, errors = worker.run("sync.a", "--json", "--full", "--limit", "3")
    assert (code, json.loads(out), errors) == (1, SAID, ["run 7 of sync.a started"])
    asked = {name: worker.asked[name] for name in ("workspace", "names", "options", "json")}
    assert asked == {
        "workspace": "default",
        "names": ["sync.a"],
        "options": {"full": True, "limit": 3},
        "json": True,
    }


def test_what_the_worker_found_wrong_is_said_as_the_command_says_it(data: Path) -> None:
    worker = Worker(data, {"problems": [{"file": "models/a.sql", "line": 3, "message": "no such column"}]})
    assert worker.run() == (2, "", ["models/a.sql:3: no such column"])


def test_a_worker_that_ends_meanwhile_leaves_a_run_that_is_not_begun_again(data: Path) -> None:
    why = "the worker that made the run has ended: what was answered is recorded, and the rest stays due"
    assert Worker(data).run() == (1, "", [why])
