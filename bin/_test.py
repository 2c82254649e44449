"""bin/test: set-up, checks, tests. Anything that is missing fails.

bin/test                everything
bin/test fast           what needs no Spark, no browser and no server, and the checks beside it; needs neither Java nor
                        Debian's packages
bin/test ARGUMENT ...   set-up, then pytest with these arguments, without the checks
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, nullcontext

from _setup import (
    JARS,
    ROOT,
    VENV,
    browser_driver_ready,
    chromium_ready,
    postgres_ready,
    set_up,
    set_up_python,
    step,
    wiremock_ready,
)

LOCK = "requirements-test.lock"
FAST = "fast"
CHECKS = {
    "style": ["ruff", "check", "."],
    "format": ["ruff", "format", "--check", "."],
    "templates": ["djlint", "--check", "templates"],
    "types": ["mypy"],
    "imports": ["lint-imports"],
}
#: Processes, each with one Spark session. Without Spark one more than a small machine has cores: a third of the time of
#: a fast test it waits for something.
PROCESSES, OF_FAST = "2", "3"
#: In the order of tests/conftest.py (the conformance suite last), and one summary line.
BY_FILE = ["--dist", "loadscope", "--no-loadscope-reorder", "--durations=15"]
#: Where no fast test lies, and plugins of pytest's that none needs: loading them takes a second of a processor in each
#: process.
DEAR_FOLDERS = ("browser", "cluster", "conformance")
DEAR_PLUGINS = ("playwright", "schemathesis", "hypothesispytest", "anyio")
WITHOUT = [*(f"--ignore=tests/{name}" for name in DEAR_FOLDERS), *(f"-pno:{name}" for name in DEAR_PLUGINS)]
#: Of the shell's environment the tests take all but these: where things are is their own affair, and each process that
#: they start would otherwise compile the whole tree again.
NOT_FOR_TESTS = ("ONDATRA_DATA_DIR", "DATABASE_URL", "REDIS_URL", "PYTHONDONTWRITEBYTECODE")


def main(arguments: Sequence[str]) -> int:
    fast = arguments[:1] == [FAST]
    print("Set-up")
    if fast:
        set_up_python(LOCK)
    else:
        _set_up_everything()

    environment, failed = _environment(), []
    with checks(environment) if fast or not arguments else nullcontext(list) as failed_checks:
        if not fast:
            failed += failed_checks()
        if _pytest(arguments, environment):
            failed.append("tests")
        if fast:  # which leave a core free now and then
            failed += failed_checks()

    if failed and failed != ["tests"]:
        print("failed: " + ", ".join(failed), file=sys.stderr, flush=True)
    return 1 if failed else 0


def _set_up_everything() -> None:
    set_up(LOCK, s3=True)
    step("Chromium", chromium_ready)
    step("Playwright's Node", browser_driver_ready)
    step("PostgreSQL", postgres_ready)
    step("WireMock", wiremock_ready)


def _environment() -> dict[str, str]:
    """The tests' own, whatever the shell has set: they make their folders and servers themselves."""
    given = {name: value for name, value in os.environ.items() if name not in NOT_FOR_TESTS}
    return {
        **given,
        "SPARK_DRIVER_MEMORY": "4g",
        "ONDATRA_JARS_DIR": str(JARS),
        "PATH": f"{VENV / 'bin'}{os.pathsep}{os.environ['PATH']}",
        "PYTHONUNBUFFERED": "1",
    }


@contextmanager
def checks(environment: Mapping[str, str]) -> Iterator[Callable[[], list[str]]]:
    """Runs the checks side by side. What it gives waits for them and prints how each ended, with all that a failed one
    said; the names of those."""
    began = time.monotonic()

    def run(command: Sequence[str]) -> tuple[int, str, float]:
        done = subprocess.run(
            command, cwd=ROOT, env=environment, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False
        )
        return done.returncode, done.stdout, time.monotonic() - began

    with ThreadPoolExecutor(len(CHECKS)) as pool:
        running = {name: pool.submit(run, command) for name, command in CHECKS.items()}
        yield lambda: [name for name, check in running.items() if not _is_good(name, *check.result())]


def _is_good(name: str, code: int, said: str, seconds: float) -> bool:
    print(f"{name}: {'failed' if code else 'ok'}  ({seconds:.1f} s)", flush=True)
    if code:
        print(said[-8000:], flush=True)
    return not code


def chosen(arguments: Sequence[str]) -> list[str]:
    """The arguments of pytest."""
    if arguments[:1] == [FAST]:
        return ["-n", OF_FAST, *BY_FILE, *WITHOUT, "-m", FAST, *arguments[1:]]
    return list(arguments) or ["-n", PROCESSES, *BY_FILE]


def _pytest(arguments: Sequence[str], environment: Mapping[str, str]) -> int:
    return subprocess.run(
        ["pytest", *chosen(arguments)], cwd=ROOT, env=environment, stdin=subprocess.DEVNULL, check=False
    ).returncode


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
