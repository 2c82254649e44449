"""Our own: push workers as they run in production that are killed, cut off and held up in the middle of one delivery."""
import contextlib
import os
import signal
import sqlite3
import subprocess
import sys
import time

import pytest
from services import free_port, redis

from bench import chaos
from ondatra_web.models import Run, Workspace

ROWS = 6_000
#: The contract's 200 ms, and what a busy machine adds to them before a thread gets its turn. bench/chaos.py measures without.
UNRECORDED = 1.0


@contextlib.contextmanager
def delivery(case):
    """A staged run that nobody works on yet, and its destination."""
    destination = chaos.Destination(ROWS)
    try:
        chaos.project(case.project, destination.url, ROWS)
        yield destination, chaos.stage(Workspace.objects.get(slug=case.slug))
    finally:
        destination.close()


def assert_whole(run_id, report):
    """Each row has one record, finalize() got all their numbers and was recorded once; whatever was done twice has its reason."""
    run = Run.objects.get(pk=run_id)
    assert (report.lost, report.unexplained) == (0, [])
    assert (run.status, run.succeeded, chaos.records(run_id)) == ("completed", ROWS, (ROWS, ROWS))
    assert {tuple(numbers) for numbers in report.finalized} == {(ROWS, 0)}
    assert list(run.runlog_set.filter(level="print").values_list("text", flat=True)) == [f"succeeded: {ROWS}"]


@pytest.mark.slow
def test_eight_kills_over_one_delivery_lose_no_row_and_each_row_sent_twice_has_its_reason(case):
    with delivery(case) as (destination, run_id):
        report = chaos.chaos(destination, run_id, kills=8, seed=7, patience=180, unrecorded=UNRECORDED)
    assert report.kills == 8
    assert_whole(run_id, report)


class Workers:
    """Processes of this test, each with a name that the destination sees."""

    def __init__(self, env):
        self.env, self.running, self.deaths = env, {}, {}

    def start(self, name, *argv):
        self.running[name] = subprocess.Popen([sys.executable, *argv], env={**os.environ, **self.env, "CHAOS_WORKER": name}, stdin=subprocess.DEVNULL,
                                              stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True)

    def push(self, name):
        self.start(name, "-m", "dramatiq", "ondatra_web.jobs", "-Q", "push", "-p", "1", "-t", "1")

    def kill(self, name):
        process = self.running.pop(name)
        os.killpg(process.pid, signal.SIGKILL)
        self.deaths[name] = time.monotonic()
        process.wait()

    def close(self):
        for name in list(self.running):
            self.kill(name)


def comes_from(destination, name, since, seconds=60):
    """Seconds until the first call of that worker after that moment."""
    while time.monotonic() - since < seconds:
        if any(c.worker == name and c.came > since for c in destination.calls[-200:]):
            return time.monotonic() - since
        time.sleep(0.05)
    raise AssertionError(f"nothing came from {name} within {seconds} s; {len(destination.calls)} calls by { {c.worker for c in destination.calls} }")


@pytest.mark.slow
def test_a_dead_workers_run_is_taken_over_while_redis_is_emptied_and_down_and_the_database_locked(case, tmp_path):
    from django.conf import settings
    from redis import Redis

    database = settings.ONDATRA.data_dir / "ondatra.sqlite3"
    port = free_port()
    workers = Workers({"REDIS_URL": f"redis://127.0.0.1:{port}/0", "DATABASE_URL": f"sqlite:///{database}?timeout=1"})
    with delivery(case) as (destination, run_id), contextlib.closing(workers):
        with redis(tmp_path / "redis", port) as url:
            workers.start("scheduler", "manage.py", "scheduler")
            workers.push("one")
            comes_from(destination, "one", time.monotonic())
            workers.push("two")
            time.sleep(3)                       # it is ready and has nothing to do
            workers.kill("one")
            assert comes_from(destination, "two", workers.deaths["one"]) < 60
            Redis.from_url(url).flushall()
            comes_from(destination, "two", time.monotonic(), 5)
        workers.kill("two")                     # Redis is down, and gone with it are all messages
        time.sleep(1)
        with redis(tmp_path / "new redis", port):
            workers.push("three")
            assert comes_from(destination, "three", workers.deaths["two"]) < 60
            with contextlib.closing(sqlite3.connect(database, isolation_level=None)) as other:
                other.execute("BEGIN IMMEDIATE")        # nobody can write for longer than the workers' own patience
                time.sleep(6)
                seen = len(destination.calls)
                time.sleep(1)
                assert len(destination.calls) == seen           # no call of which nobody could know later
                other.execute("ROLLBACK")
            comes_from(destination, "three", time.monotonic(), 10)
            destination.progress = 1
            end = time.monotonic() + 60
            while Run.objects.get(pk=run_id).status == "working" and time.monotonic() < end:
                time.sleep(0.2)
    assert_whole(run_id, chaos.explain(destination, workers.deaths, UNRECORDED))
