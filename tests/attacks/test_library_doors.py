"""What the author of a library could do to the process that runs it; nothing of it comes about."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from push_bench import ROWS, Bench, outcomes, returning

from runtime.custody.secrets import Secrets
from runtime.push import apart, sandbox
from runtime.push.call import CallResult, PushCall


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    return Bench(tmp_path)


def pushed(bench: Bench, text: str, rows: Sequence[dict[str, Any]] = ROWS, **api: Any) -> CallResult:
    bench.lib(text, **api)
    function = apart.load(bench.folder, "crm", secrets=Secrets(bench.secrets, "the environment"))
    return function.push(PushCall([dict(r) for r in rows]), bench.context)


def after(*lines: str) -> str:
    return "def push(rows):\n    n = len(rows)\n" + "".join(f"    {line}\n" for line in lines) + "    return {}\n"


TEN_DEEP = "struct(a=" * 10 + "x" + ")" * 10
TOO_MUCH = [
    (['x = ("a" * 100000).replace("a", "b" * (n * 1000000))'], 4, "it took too much memory"),
    (['x = "ab" * (n * 20000000)', 'x = ",".join([x] * 20)'], 5, "it took too much memory"),
    (['x = "y" * (n * 100000)', 'x = ("{0}" * 100000).format(x)'], 5, "it took too much memory"),
    (["x = list(range((n - 2) << 30))"], 4, "it took too much memory"),
    (['x = "ab"', "for _ in range(60):", "    x = x + x"], 6, "it took too much memory"),
    (["x = struct(a=1)", "for _ in range(90000):", f"    x = {TEN_DEEP}", "y = str(x)"], 7, "nested too deeply"),
]


@pytest.mark.slow
@pytest.mark.parametrize("lines, line, why", TOO_MUCH, ids=[lines[-1] for lines, _, _ in TOO_MUCH])
def test_what_takes_too_much_ends_its_call_with_the_line_and_not_the_worker(
    bench: Bench, lines: list[str], line: int, why: str
) -> None:
    kind, message, known = outcomes(pushed(bench, after(*lines)))[0]
    assert (kind, known) == ("error", False)
    assert why in str(message) and f"(lib/crm.star line {line}, in push)" in str(message)
    assert outcomes(pushed(bench, returning('{key(r): "ok" for r in rows}'))) == [("ok", None, True)] * 3


def test_a_step_that_never_ends_is_ended(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sandbox, "STUCK", 1.0)
    lines = ["x, y = [n], [n]", "for _ in range(60):", "    x, y = [x, x], [y, y]", "z = x == y"]
    began = time.monotonic()
    kind, message, known = outcomes(pushed(bench, after(*lines)))[0]
    assert (kind, known) == ("error", False) and "one step of it took too long" in str(message)
    assert "(lib/crm.star line 7, in push)" in str(message) and time.monotonic() - began < 60


@pytest.mark.parametrize(
    "text, line",
    [
        ("A = 1\nX = list(range(1 << 30))\n", 3),
        ("X = ['a' * 2000000000, 'b' * 2000000000]\n", 2),
        (
            "def f():\n    s = 1\n    for _ in range(300000):\n        s = struct(a=s)\n    return str(s)\nX = f()\n",
            7,
        ),
        # a constant is evaluated where the file is compiled
        ("def f():\n    x = list(range(1 << 30))\n", 2),
    ],
)
def test_a_top_that_takes_too_much_is_a_problem_with_its_line(bench: Bench, text: str, line: int) -> None:
    bench.lib(text + returning("{}"))
    ((problem),) = bench.check()
    assert (problem.file, problem.line) == ("lib/crm.star", line), problem


def test_what_is_loaded_is_tried_too(bench: Bench) -> None:
    (bench.folder / "lib").mkdir(exist_ok=True)
    (bench.folder / "lib/big.star").write_text("X = list(range(1 << 30))\n")
    bench.lib('load("lib/big.star", "X")\n' + returning("{}"))
    assert [(p.file, p.line) for p in bench.check()] == [("lib/big.star", 1)]


@pytest.mark.parametrize("text", ["(" * 5000, "-" * 5000000 + "1", "[" * 9000 + "]" * 9000, "x." * 100000 + "y"])
def test_a_text_that_is_nested_deeply_ends_no_check(bench: Bench, text: str) -> None:
    bench.lib(f"X = {text}\n" + returning("{}"))
    assert all(p.file == "lib/crm.star" and p.line >= 1 for p in bench.check())


def test_the_process_of_functions_has_no_secret_of_the_install(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("ONDATRA_ENCRYPTION_KEY", "DJANGO_SECRET_KEY", "DATABASE_URL", "AWS_SECRET_ACCESS_KEY", "CRM_KEY"):
        monkeypatch.setenv(name, "of-the-install")
    there = sandbox.Sandbox()
    try:
        there.call(("try", "lib/a.star"), lambda *_: "X = 1\n")
        environment = Path(f"/proc/{there.process.pid}/environ").read_bytes()
        assert b"of-the-install" not in environment and b"PATH=" in environment
    finally:
        there.end()


def test_a_process_whose_owner_died_ends_at_once_and_sends_nothing_more(tmp_path: Path) -> None:
    program = (
        "import sys\nfrom runtime.push.sandbox import sandbox\nthere = sandbox()\n"
        "there.call(('try', 'lib/a.star'), lambda *_: 'X = 1\\n')\n"
        "print(there.process.pid, flush=True)\nsys.stdin.read()\n"
    )
    owner = subprocess.Popen([sys.executable, "-c", program], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert owner.stdout
    child = int(owner.stdout.readline())
    os.kill(owner.pid, signal.SIGKILL)
    owner.wait()
    end = time.monotonic() + 10
    while Path(f"/proc/{child}/stat").exists() and _state(child) != "Z" and time.monotonic() < end:
        time.sleep(0.05)
    assert time.monotonic() < end


def _state(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return "Z"
