"""A run that a signal stops, wherever it is: it ends as failed, loses nothing, and the next run in the same process
goes on."""

from __future__ import annotations

import json
import os
import signal
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from ondatra_web.models import Run, Workspace
from ondatra_web.runs import execution, progress
from ondatra_web.stopping import Stopped
from tests.web.filled import workspace

pytestmark = [pytest.mark.django_db(transaction=True, serialized_rollback=True), pytest.mark.spark]
PUSH = """
API = {"base_url": "URL", "push": {"batch_size": 1}}

def push(rows):
    http.post("/row", json = {"id": rows[0]["id"]})
    return {str(r["__ondatra_rowid"]) + ":" + r["__ondatra_change_type"]: "ok" for r in rows}

def finalize(succeeded, failed):
    http.post("/finalize", json = {})
"""
WHY = "stopped by SIGTERM: what was answered is recorded, and the rest stays due"


class Destination:
    """Takes rows; while it is told to, it has this process stopped at a request and does not answer it."""

    def __init__(self) -> None:
        self.taken: list[Any] = []
        self.stops_at: Any = None
        self.over = threading.Event()
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                said = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                name = said.get("id", "finalize")
                if name == outer.stops_at:
                    os.kill(os.getpid(), signal.SIGTERM)
                    outer.over.wait(30)
                outer.taken.append(name)
                self.send_response(200)
                self.send_header("Content-Length", "0")
                self.end_headers()

            def log_message(self, *args: Any) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server.server_address[1]}"


@pytest.fixture
def destination() -> Iterator[Destination]:
    made = Destination()
    yield made
    made.over.set()
    made.server.shutdown()


@pytest.fixture
def place(tmp_path: Path, spark: Any, destination: Destination) -> Workspace:
    folder = tmp_path / "project"
    (folder / "models/sync").mkdir(parents=True)
    (folder / "lib").mkdir()
    (folder / "lib/rows.star").write_text(PUSH.replace("URL", destination.url))
    (folder / "models/sync/out.sql").write_text(
        "-- @kind: append\n-- @unique_key: id\n-- @sink: rows\nSELECT id FROM read_csv('rows.csv') ORDER BY id\n"
    )
    (folder / "rows.csv").write_text("id\n1\n2\n3\n")
    made = workspace()
    made.project_dir = str(folder)
    made.save()
    return made


def stopped(place: Workspace) -> Run:
    """The run that a signal stops, within the time that a supervisor gives it."""
    began = time.monotonic()
    with pytest.raises(Stopped, match="SIGTERM"):
        execution.run_here(place, [], {})
    assert time.monotonic() - began < 30
    return Run.objects.get(sync__name="sync.out")


@pytest.mark.parametrize("step", ["build", "changes"])
def test_one_that_is_stopped_before_it_sends_sends_all_next_time(
    place: Workspace, destination: Destination, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    usual = progress.set_step

    def set_step(run_id: int, name: str) -> None:
        usual(run_id, name)
        if name == step:
            os.kill(os.getpid(), signal.SIGTERM)

    monkeypatch.setattr(progress, "set_step", set_step)
    run = stopped(place)
    monkeypatch.undo()

    assert (run.status, run.error, destination.taken) == ("failed", WHY, [])
    following = execution.run_here(place, [], {}).runs["sync.out"]
    assert (following.status, destination.taken) == ("completed", [1, 2, 3, "finalize"])


def test_what_was_answered_is_recorded_and_the_call_in_flight_is_due_again(
    place: Workspace, destination: Destination
) -> None:
    destination.stops_at = 2

    run = stopped(place)

    assert (run.status, run.error) == ("failed", WHY)
    assert (run.succeeded, run.retrying + run.not_tried) == (1, 2)  # the third may have been announced
    destination.stops_at = None
    destination.taken.clear()
    following = execution.run_here(place, [], {}).runs["sync.out"]
    assert (following.status, following.carried, following.succeeded) == ("completed", 2, 2)
    assert destination.taken == [2, 3, "finalize"]


def test_a_finalize_that_was_not_answered_is_called_again(place: Workspace, destination: Destination) -> None:
    destination.stops_at = "finalize"

    run = stopped(place)

    assert (run.status, run.succeeded) == ("failed", 3)
    destination.stops_at = None
    destination.taken.clear()
    following = execution.run_here(place, [], {}).runs["sync.out"]
    assert (following.status, destination.taken) == ("completed", ["finalize"])
