"""What a person sees of long work, at a real terminal and without one."""

from __future__ import annotations

import os
import pty
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
#: A run of two models and a delivery, as `ondatra_web.runs` tells of it.
WORK = """
import time
from ondatra_web.management.terminal import Live, Shown

with Live() as line:
    watch = Shown(line)
    watch.planned(["staging.a", "sync.customers"])
    watch.doing("starting Spark")
    watch.doing("")
    watch.begins("staging.a")
    watch.done("staging.a", "built", 5000, None, 12.3)
    watch.began(7, "sync.customers")
    watch.begins("sync.customers")
    watch.step("sync.customers", "changes")
    watch.done("sync.customers", "failed", 0, "it is [bold]wrong", 1)
    watch.sends("sync.customers", 1000)
    time.sleep(1.1)
    watch.sent(500)
    line._line.refresh() if line._console else None
"""
LINES = ["    built  staging.a             5,000 rows      12 s", "   failed  sync.customers  it is [bold]wrong"]


def at_a_terminal() -> tuple[list[str], list[str]]:
    """All lines that stood there at some time, and those that stand there at the end."""
    ours, theirs = pty.openpty()
    env = {**os.environ, "TERM": "xterm", "COLUMNS": "100"}
    with subprocess.Popen([sys.executable, "-c", WORK], stdout=theirs, stderr=theirs, cwd=ROOT, env=env) as work:
        os.close(theirs)
        told = b""
        while True:
            try:
                some = os.read(ours, 65_536)
            except OSError:  # the other end is closed
                break
            if not some:
                break
            told += some
    os.close(ours)
    assert work.returncode == 0, told.decode()

    seen: list[str] = []
    screen, at = [""], 0
    for part in re.findall(r"\x1b\[[\d;?]*[A-Za-z]|\r|\n|[^\x1b\r\n]+", told.decode()):
        if part == "\n":
            at += 1
            screen += [""] * (at + 1 - len(screen))
        elif part == "\x1b[1A":
            at -= 1
        elif part == "\x1b[2K":
            screen[at] = ""
        elif part[0] not in "\x1b\r":
            screen[at] += part
            seen.append(screen[at])
    return seen, [line for line in screen if line]


def test_at_a_terminal_models_get_a_line_when_they_are_done_and_one_line_lives_until_the_end() -> None:
    seen, left = at_a_terminal()

    assert left == [LINES[0], "run 7 of sync.customers started", LINES[1]]
    lived = [re.sub(r" · .*", "", line) for line in seen if line not in left]
    assert list(dict.fromkeys(lived)) == [
        "starting Spark",
        "reading staging.a",
        "reading sync.customers",
        "comparing sync.customers",
        "sending sync.customers 0 of 1,000",
        "sending sync.customers 500 of 1,000",
    ]
    assert re.fullmatch(r"sending sync.customers 500 of 1,000 · \d+ a second · \d+\.\d s left", seen[-1])


def test_without_a_terminal_there_are_plain_lines_only() -> None:
    done = subprocess.run([sys.executable, "-c", WORK], capture_output=True, text=True, cwd=ROOT)

    assert (done.stdout, done.stderr) == ("\n".join([*LINES, ""]), "run 7 of sync.customers started\n")
