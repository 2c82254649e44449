"""Our own: `run` hands over to a worker of the same install that has an engine, and nobody sees a difference."""
import json
import os
import signal
import subprocess
import sys
import threading

import pytest
from ondatra_web.models import Run
from ondatra_web.runs.handover import Listening, place
from pushing import SYNC, contacts, sent

#: A process that cannot start an engine: what it builds, another one builds for it.
NO_ENGINE = {"JAVA_HOME": "/nowhere", "PATH": "/nowhere"}


@pytest.fixture
def worker(spark):
    listening = Listening()
    listening.begin()
    yield
    listening.end()
    place().unlink()


def begin(case, *flags, **env):
    return subprocess.Popen([sys.executable, "manage.py", "run", "--workspace", case.slug, *flags], env={**os.environ, **NO_ENGINE, **env},
                            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def run(case, *flags, **env):
    with begin(case, *flags, **env) as process:
        out, err = process.communicate(timeout=180)
    return process.returncode, out, err


def newest(case):
    return Run.objects.filter(sync__workspace__slug=case.slug).order_by("-pk").first()


def test_a_worker_makes_the_run_with_the_same_output_and_exit_code(case, worker):
    contacts(case, (1, "a@x"), (2, "b@x"))
    code, out, err = run(case, "--json")
    made = newest(case)
    assert (code, err) == (0, f"run {made.pk} of {SYNC} started\n")
    assert json.loads(out)["status"] == "completed" and (made.owner, made.trigger) == (None, "command")
    assert len(sent(case)) == 2

    contacts(case, (1, "a@x"), (2, "c@x"))
    code, out, err = run(case)
    first, *_, counts, took = out.splitlines()
    assert (code, first.split()[:4]) == (0, ["built", SYNC, "2", "rows"])
    assert counts == "    source 2, unchanged 1, changed 1, succeeded 1" and took.startswith("    took ")

    case.write("models/sync/contacts.sql", "SELECT nothing")
    code, out, err = run(case)
    assert (code, out) == (2, "") and err.startswith("models/sync/contacts.sql:1: ")


@pytest.mark.parametrize("flags, env", [(["--here"], {}), ([], {"TOKEN": "another"})])
def test_the_process_does_it_itself_where_it_is_told_to_or_sees_other_secrets(case, worker, monkeypatch, flags, env):
    monkeypatch.setenv("TOKEN", "the worker's")
    contacts(case, (1, "a@x"), text='def push(rows):\n    print(env.get("TOKEN") == "")\n    return {}\n')
    code, out, err = run(case, *flags, **env)
    assert (code, out.split()[:2]) == (1, ["failed", SYNC])


def test_ctrl_c_stops_the_run_that_another_process_makes(case, worker):
    gate, called = threading.Event(), threading.Event()
    case.dest.rule("POST", "^/push$", handler=lambda call: (called.set(), gate.wait(25), (200, {}))[2])
    contacts(case, (1, "a@x"))
    with begin(case) as process:
        assert called.wait(120)
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=60)
    gate.set()

    why = "stopped by SIGINT: what was answered is recorded, and the rest stays due"
    made = newest(case)
    assert (process.returncode, err.splitlines()[-1]) == (1, why)
    assert (made.status, made.error) == ("failed", why)
