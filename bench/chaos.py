"""One long delivery whose push workers are killed at random moments and started again. Usage: python bench/chaos.py
[--kills 200] [--seed 1]

Real processes, SIGKILL, a seed for the moments. Prints rows lost (must be 0) and rows sent twice, each explained by its
kill: its call was out when the worker died, or had been answered less than 200 ms before (the longest that an answer
may stay unrecorded). finalize() is called once, and once more for each kill of a worker that was calling it. Whatever
else was done twice is printed as unexplained and fails.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
#: Answers are recorded at the latest after so many seconds (contract, section 5).
UNRECORDED = 0.2
WORKERS, SLOTS = 2, 2
PUSH = """
def push(rows):
    resp = http.post("/rows", json=[r["id"] for r in rows], headers={"X-Worker": env.get("CHAOS_WORKER", "none")})
    said = "ok" if resp.ok else "error: " + resp.text
    return {str(r["__ondatra_rowid"]) + ":" + r["__ondatra_change_type"]: said for r in rows}

def finalize(succeeded, failed):
    http.post("/done", json=[succeeded, failed], headers={"X-Worker": env.get("CHAOS_WORKER", "none")})
    print("succeeded:", succeeded)
"""
MODEL = """-- @kind: append
-- @sink: chaos
SELECT CAST(i AS INTEGER) AS id FROM range({rows}) t(i)
"""


@dataclass
class Call:
    """One request of push() or finalize(): which worker made it, when it came, when it was answered (seconds of one
    clock)."""

    worker: str
    ids: list[int]  # of finalize() its numbers
    came: float
    answered: float = float("inf")


class Destination:
    """Takes rows, 10 ms a call, and remembers who sent what and when. It slows down so that the delivery lasts as long
    as the kills."""

    def __init__(self, rows: int) -> None:
        self.rows, self.progress = rows, 0.0
        self.calls: list[Call] = []
        self.finalized: list[Call] = []
        self.taken = 0
        outer = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            disable_nagle_algorithm = True

            def log_message(self, *_: Any) -> None:
                pass

            def do_POST(self) -> None:
                ids = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                call = Call(self.headers["X-Worker"], ids, time.monotonic())
                pushed = self.path == "/rows"
                (outer.calls if pushed else outer.finalized).append(call)
                outer.taken += len(ids) * pushed
                time.sleep(0.01)
                while (
                    pushed
                    and outer.progress < 1
                    and outer.taken > outer.rows * (outer.progress + 0.02)
                    and time.monotonic() < call.came + 0.5
                ):
                    time.sleep(0.02)
                try:
                    self.send_response(200)
                    self.send_header("Content-Length", "2")
                    self.end_headers()
                    call.answered = time.monotonic()  # before it can arrive: never later than the worker knows it
                    self.wfile.write(b"{}")
                except OSError:
                    call.answered = float("inf")
                    self.close_connection = True

        class Server(ThreadingHTTPServer):
            daemon_threads = True

            def handle_error(self, request: Any, client_address: Any) -> None:
                """Connections of killed workers break; that is what this is about."""

        self.server = Server(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_address[1]}"
        threading.Thread(target=self.server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True).start()

    def close(self) -> None:
        self.server.shutdown()
        self.server.server_close()


def project(folder: Path, url: str, rows: int) -> None:
    (folder / "models/sync").mkdir(parents=True, exist_ok=True)
    (folder / "lib").mkdir(exist_ok=True)
    (folder / "models/sync/chaos.sql").write_text(MODEL.format(rows=rows))
    api = {"base_url": url, "api_calls": "off", "push": {"batch_size": 20, "max_concurrent": WORKERS * SLOTS}}
    (folder / "lib/chaos.star").write_text(f"API = {api!r}\n{PUSH}")


@dataclass
class Report:
    """What came of it. Rows sent twice are counted by their explanation, and so are further calls of finalize()."""

    kills: int = 0
    lost: int = 0
    in_flight: int = 0
    just_answered: int = 0
    finalized: list[list[int]] = field(default_factory=list)  # what each call of finalize() was told
    unexplained: list[str] = field(default_factory=list)

    @property
    def twice(self) -> int:
        return self.in_flight + self.just_answered + len(self.unexplained)


def explain(destination: Destination, deaths: Mapping[str, float], unrecorded: float = UNRECORDED) -> Report:
    """Compares what came with what should have come; `deaths` says when each killed worker was killed, `unrecorded` for
    how many seconds an answer may stay so."""
    report, of_row = Report(len(deaths)), defaultdict(list)
    for call in destination.calls:
        for row in call.ids:
            of_row[row].append(call)
    report.lost = destination.rows - len(of_row)
    for row, calls in of_row.items():
        for call in sorted(calls, key=lambda c: c.came)[:-1]:  # each sending but the last had to be repeated
            died = deaths.get(call.worker)
            if died is not None and call.answered > died:
                report.in_flight += 1
            elif died is not None and call.answered > died - unrecorded:
                report.just_answered += 1
            else:
                report.unexplained.append(f"row {row} {_not_why(call, died)}")
    report.finalized = [call.ids for call in destination.finalized]
    for call in destination.finalized[:-1]:
        died = deaths.get(call.worker)
        if died is None or call.answered < died - unrecorded:
            report.unexplained.append(f"finalize() {_not_why(call, died)}")
    return report


def _not_why(call: Call, died: float | None) -> str:
    return f"by {call.worker}" + (
        f", answered {died - call.answered:.3f} s before its death" if died else ", which was not killed"
    )


def chaos(
    destination: Destination,
    run_id: int,
    kills: int,
    seed: int,
    *,
    workers: int = WORKERS,
    patience: float = 600,
    unrecorded: float = UNRECORDED,
) -> Report:
    """Starts workers on a staged run, kills them until there were so many kills, lets the rest be delivered. Django
    must be set up."""
    from ondatra_web.models import Run

    chance, number = random.Random(seed), 0
    running: dict[str, subprocess.Popen[bytes]] = {}
    deaths: dict[str, float] = {}
    began: dict[str, float] = {}
    end = time.monotonic() + patience

    def start() -> None:
        nonlocal number
        number += 1
        name = f"worker-{number}"  # env.get() makes it a secret: a bare number would be hidden in what is printed
        running[name] = subprocess.Popen(
            [sys.executable, str(ROOT / "bench/chaos.py"), "--worker", str(run_id)],
            cwd=ROOT,
            env={**os.environ, "CHAOS_WORKER": name},
            stdin=subprocess.DEVNULL,
            start_new_session=True,
        )
        began[name] = time.monotonic()

    def ended() -> bool:
        return Run.objects.values_list("status", flat=True).get(pk=run_id) not in ("working", "canceling")

    try:
        while not ended():
            if time.monotonic() > end:
                raise SystemExit(f"the run had not ended after {patience:g} s and {len(deaths)} kills")
            for name in [n for n, p in running.items() if p.poll() is not None]:
                del running[name]
            if len(running) < workers and time.monotonic() - max(began.values(), default=0.0) > 0.5:
                start()
            if len(deaths) >= kills or not running:
                destination.progress = len(deaths) / kills if kills else 1.0
                time.sleep(0.1)
                continue
            victim = chance.choice(sorted(running))
            # most die at work, one in eight wherever it is, starting included
            working = any(c.worker == victim for c in destination.calls[-500:])
            if working or chance.random() < 0.02:
                time.sleep(chance.uniform(0, 0.6))
                if running[victim].poll() is None:
                    os.killpg(running[victim].pid, signal.SIGKILL)
                    deaths[victim] = time.monotonic()
                    running.pop(victim).wait()
                    destination.progress = len(deaths) / kills
            else:
                time.sleep(0.05)
    finally:
        for process in running.values():
            os.killpg(process.pid, signal.SIGKILL) if process.poll() is None else None
            process.wait()
    return explain(destination, deaths, unrecorded)


def stage(workspace: Any) -> int:
    """Builds and stages in this process; the run's id, as a pipeline worker leaves it to the push workers."""
    from ondatra_web.models import Run
    from ondatra_web.runs import execution
    from ondatra_web.runs.walk import prepare

    walk = prepare(workspace)
    execution.run_line(walk, {}, trigger="command")
    (run,) = walk.runs.values()
    Run.objects.filter(pk=run.pk).update(owner=None)
    return int(run.pk)


def records(run_id: int) -> tuple[int, int]:
    """How many records the run's files hold, and of how many rows."""
    import duckdb

    from ondatra_web.models import RecordFile

    files = [
        url.removeprefix("file://") for url in RecordFile.objects.filter(run_id=run_id).values_list("url", flat=True)
    ]
    found = (
        duckdb.connect()
        .execute("SELECT count(*), count(DISTINCT row_id) FROM read_parquet(?) WHERE status = 'succeeded'", [files])
        .fetchone()
    )
    assert found
    return int(found[0]), int(found[1])


def worker(run_id: int) -> None:
    """What the push actor does with a message."""
    _django()
    from ondatra_web import jobs

    jobs.push.fn(run_id, SLOTS)


def _django() -> None:
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "ondatra_web.settings")
    sys.path.insert(0, str(ROOT))
    import django

    django.setup()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--kills", type=int, default=200)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--rows", type=int, default=200_000)
    parser.add_argument("--worker", type=int, metavar="RUN", help=argparse.SUPPRESS)
    told = parser.parse_args()
    if told.worker:
        return worker(told.worker)
    folder = Path(tempfile.mkdtemp(prefix="bench-chaos-"))
    os.environ["ONDATRA_DATA_DIR"] = str(folder / "data")
    _django()
    from django.core.management import call_command

    from ondatra_web import projects
    from ondatra_web.models import Run

    destination = Destination(told.rows)
    project(folder / "project", destination.url, told.rows)
    call_command("migrate", verbosity=0)
    call_command("workspace", "chaos", "--project", str(folder / "project"))
    run_id = stage(projects.workspace_of("chaos"))
    began = time.monotonic()
    report = chaos(destination, run_id, told.kills, told.seed, patience=3600)
    destination.close()
    run = Run.objects.get(pk=run_id)
    written = records(run_id)
    print(
        f"run: {run.status}, {run.succeeded:,} of {told.rows:,} rows succeeded, {written[0]:,} records of "
        f"{written[1]:,} rows, "
        f"{time.monotonic() - began:.0f} s"
    )
    print(
        f"rows sent twice: {report.twice:,}: {report.in_flight:,} in calls that were out at a kill, "
        f"{report.just_answered:,} answered in the {UNRECORDED * 1000:g} ms before it, {len(report.unexplained):,} "
        f"unexplained {report.unexplained[:5]}"
    )
    print(f"calls of finalize(): {len(report.finalized)}, the last with {report.finalized[-1:]}")
    print(f"chaos: {report.kills} kills (seed {told.seed}), {report.lost} rows lost, {report.twice:,} sent twice")
    good = (
        run.status == "completed" and written == (told.rows, told.rows) and not report.lost and not report.unexplained
    )
    good = good and {tuple(numbers) for numbers in report.finalized} == {(told.rows, 0)}
    raise SystemExit(0 if good else 1)


if __name__ == "__main__":
    main()
