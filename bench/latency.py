"""From a click to the last record of 20 changed rows, in an install that serves already. Usage: python bench/latency.py
[--rounds 7] [--rows 6000]

A merge sync of a CSV file of 6,000 rows, whose push function makes a request for each 100 rows. `ondatra up` serves it;
in turns a run is started by the page, by the API, by the command line (from the start of its process to its end) and by
the schedule (from its time). A run's end is after its last record.
"""

from __future__ import annotations

import argparse
import http.cookiejar
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
import urllib.parse
import urllib.request
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from statistics import median
from typing import Any

from _delivery import served
from _product import ROOT, install

WANTED = 2.0
CHANGED, PASSWORD = 20, "latency-bench"
MODEL = """-- @kind: merge
-- @unique_key: id
-- @sink: out
-- @schedule: every 24h
SELECT id, name, n, n * 2 AS twice FROM read_csv('rows.csv')
"""
PUSH = """API = {{"base_url": "{url}", "push": {{"batch_size": 100, "batch_mode": "atomic"}}}}

def push(rows):
    http.post("/rows", json=rows)
    return None
"""


def project(folder: Path, url: str) -> Path:
    made = folder / "project"
    (made / "models/sync").mkdir(parents=True)
    (made / "lib").mkdir()
    (made / "models/sync/rows.sql").write_text(MODEL)
    (made / "lib/out.star").write_text(PUSH.format(url=url))
    return made


def write(folder: Path, rows: int, round_: int) -> None:
    """The same rows as in the round before, but for 20 others each time."""
    changed = (round_ + 1) * CHANGED
    lines = (f"{i},name {i},{i // CHANGED if i < changed else 0}\n" for i in range(rows))
    (folder / "rows.csv").write_text("id,name,n\n" + "".join(lines))


class Browser:
    """A signed-in person."""

    def __init__(self, url: str) -> None:
        self.url, self.cookies = url, http.cookiejar.CookieJar()
        self.opener = urllib.request.build_opener(urllib.request.HTTPCookieProcessor(self.cookies))
        self.post("/login/", username="admin", password=PASSWORD)

    def post(self, path: str, **fields: str) -> str:
        if not any(c.name == "csrftoken" for c in self.cookies):
            self.opener.open(f"{self.url}/login/").read()
        token = next(c.value for c in self.cookies if c.name == "csrftoken")
        body = urllib.parse.urlencode({**fields, "csrfmiddlewaretoken": token}).encode()
        return str(self.opener.open(f"{self.url}{path}", body).read().decode())


def ended(after: int) -> Any:
    """The run after that one, once it has ended."""
    from ondatra_web.models import Run

    end = time.monotonic() + 300
    while time.monotonic() < end:
        run = Run.objects.filter(pk__gt=after, ended_at__isnull=False).order_by("pk").first()
        if run is not None:
            assert (run.status, run.succeeded) == ("completed", CHANGED), (run.status, run.counts, run.error)
            return run
        time.sleep(0.01)
    raise SystemExit("no run came to its end")


def serve(env: dict[str, str]) -> tuple[subprocess.Popen[str], str]:
    """The served install and its address, once its engine is ready."""
    process = subprocess.Popen(
        [sys.executable, "-m", "ondatra_web", "up"], cwd=ROOT, env=env, stdout=subprocess.PIPE, text=True
    )
    assert process.stdout
    url, ready = "", False
    for line in process.stdout:
        if found := re.search(r"serves .* at (http://127\.0\.0\.1:\d+)", line):
            url = found[1]
        ready |= "Spark is ready" in line
        if url and ready:
            break
    subprocess.Popen(["cat"], stdin=process.stdout, stdout=subprocess.DEVNULL)
    time.sleep(1)
    return process, url


def ways(url: str, env: dict[str, str]) -> dict[str, Callable[[], float]]:
    """Each starts a run and says in which second since 1970."""
    from django.contrib.auth.models import User
    from django.utils import timezone

    from ondatra_web import tokens
    from ondatra_web.models import Membership, Sync

    user = User.objects.get(username="admin")
    user.set_password(PASSWORD)
    user.save()
    member = Membership.objects.get(user=user)
    _, token = tokens.make(member.organization, user, "bench", ["operate"])
    browser, sync = Browser(url), Sync.objects.get()

    def page() -> float:
        at = time.time()
        browser.post(f"/syncs/{sync.pk}/start/")
        return at

    def api() -> float:
        told = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}
        at = time.time()
        urllib.request.urlopen(
            urllib.request.Request(f"{url}/api/v1/syncs/{sync.pk}/trigger", json.dumps({}).encode(), told)
        ).read()
        return at

    def command() -> float:
        at = time.time()
        subprocess.run([sys.executable, "-m", "ondatra_web", "run", "--json"], cwd=ROOT, env=env, capture_output=True)
        return at

    def schedule() -> float:
        at = timezone.now() + timedelta(seconds=7)
        Sync.objects.update(next_run_at=at)
        return at.timestamp()

    return {"page": page, "API": api, "command": command, "schedule": schedule}


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--rows", type=int, default=6_000)
    asked = parser.parse_args()

    with served() as url:
        made = project(Path(tempfile.mkdtemp(prefix="bench-latency-")), url)
        os.environ["ONDATRA_PROJECT_DIR"] = str(made)
        install("latency")
        env = dict(os.environ)
        write(made, asked.rows, 0)
        process, address = serve(env)
        try:
            subprocess.run([sys.executable, "-m", "ondatra_web", "run"], cwd=ROOT, env=env, check=True)
            took = measured(ways(address, env), made, asked.rows, asked.rounds)
        finally:
            process.send_signal(signal.SIGINT)
            process.wait(60)
    for name, walls in took.items():
        print(f"{name:>9}: median {median(walls):.2f} s of {[round(wall, 2) for wall in walls]}")
    ours = max(map(median, took.values()))
    print(f"latency: ratio {WANTED / ours:.2f} (ours {ours:.2f} s, wanted {WANTED:.0f} s)")


def measured(starts: dict[str, Callable[[], float]], project: Path, rows: int, rounds: int) -> dict[str, list[float]]:
    """Seconds of each round but the first two, which warm the engine up."""
    from ondatra_web.models import Run

    took: dict[str, list[float]] = {name: [] for name in starts}
    for round_ in range(1, rounds + 3):
        for at, (name, start) in enumerate(starts.items()):
            write(project, rows, (round_ - 1) * len(starts) + at + 1)
            last = Run.objects.order_by("-pk").values_list("pk", flat=True).first() or 0
            began = start()
            run = ended(last)
            over = time.time() if name == "command" else run.ended_at.timestamp()
            if round_ > 2:
                took[name].append(over - began)
            print(f"round {round_}, {name}: {over - began:.2f} s", file=sys.stderr)
    return took


if __name__ == "__main__":
    main()
