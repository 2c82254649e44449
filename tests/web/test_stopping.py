"""A signal ends a process soon and with one line; whoever tidies up is not disturbed, and not waited for endlessly."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from ondatra_web.stopping import Stopped, stoppable

ROOT = Path(__file__).resolve().parents[2]
HANGS = """
import os, signal, time
from ondatra_web.stopping import stoppable
with stoppable(0.5):
    try:
        os.kill(os.getpid(), signal.SIGTERM)
        time.sleep(60)
    finally:
        time.sleep(60)   # a store that does not answer
"""
SPARK_DIES = """
from runtime.lake import spark
first = spark.session()
first.sparkContext._gateway.proc.terminate()
first.sparkContext._gateway.proc.wait()
print(spark.isolated().range(3).count())
"""


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_is_raised_by_its_name_where_the_work_is(number: signal.Signals) -> None:
    before = signal.getsignal(number)

    with pytest.raises(Stopped, match=number.name), stoppable():
        os.kill(os.getpid(), number)
        time.sleep(10)

    assert signal.getsignal(number) is before


def test_a_second_signal_does_not_disturb_who_tidies_up() -> None:
    tidied = False

    with pytest.raises(Stopped, match="SIGINT"), stoppable():
        try:
            os.kill(os.getpid(), signal.SIGINT)
            time.sleep(10)
        finally:
            os.kill(os.getpid(), signal.SIGTERM)
            os.kill(os.getpid(), signal.SIGINT)
            time.sleep(0.05)
            tidied = True

    assert tidied


def test_threads_leave_signals_to_others() -> None:
    before, ended = signal.getsignal(signal.SIGTERM), []

    def work() -> None:
        with stoppable():
            ended.append(signal.getsignal(signal.SIGTERM) is before)

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()

    assert ended == [True]


def test_a_process_that_cannot_tidy_up_ends_all_the_same() -> None:
    began = time.monotonic()

    done = subprocess.run(
        [sys.executable, "-c", HANGS], cwd=ROOT, capture_output=True, text=True, check=False, timeout=30
    )

    assert (done.returncode, done.stderr) == (
        1,
        "stopped by SIGTERM: what was answered is recorded, and the rest stays due\n",
    )
    assert time.monotonic() - began < 10


@pytest.mark.django_db  # its tables, which are made for those that say so
def test_a_command_ends_with_one_line_and_no_traceback(fresh_tables: Path, tmp_path: Path) -> None:
    env = {**os.environ, "ONDATRA_DATA_DIR": str(tmp_path / "data")}
    (tmp_path / "data").mkdir()
    shutil.copy(fresh_tables, tmp_path / "data" / "ondatra.sqlite3")
    command = [sys.executable, "manage.py", "scheduler"]
    started = subprocess.Popen(command, cwd=ROOT, env=env, stderr=subprocess.PIPE, text=True)
    locks = tmp_path / "data" / "locks"
    while not locks.is_dir() or not any(locks.iterdir()):  # it has begun its work
        assert started.poll() is None
        time.sleep(0.05)

    started.terminate()

    assert started.wait(30) == 1
    assert started.stderr
    lines = [line for line in started.stderr.read().splitlines() if " ondatra." not in line]  # but for its log
    assert lines == ["stopped by SIGTERM: what was answered is recorded, and the rest stays due"]


@pytest.mark.spark
@pytest.mark.slow
def test_an_engine_that_a_signal_ended_is_not_met_again(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", SPARK_DIES],
        cwd=ROOT,
        env={**os.environ, "ONDATRA_DATA_DIR": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
    )

    assert (done.returncode, done.stdout) == (0, "3\n"), done.stderr[-2_000:]
