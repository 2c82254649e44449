"""bin/test: set-up, checks, tests. Anything that is missing fails.

bin/test                everything
bin/test fast           what needs no Spark, no browser and no server; needs neither Java nor Debian's packages
bin/test ARGUMENT ...   set-up, then pytest with these arguments, without the checks
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence

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
#: Two processes, each with one Spark session, in the order of tests/conftest.py (the conformance suite last), and one
#: summary line.
TOGETHER = ["-n", "2", "--dist", "loadscope", "--no-loadscope-reorder", "--durations=15"]
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

    environment = _environment()
    failed = failed_checks(environment) if fast or not arguments else []
    if _pytest(arguments, environment):
        failed.append("tests")

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


def failed_checks(environment: Mapping[str, str]) -> list[str]:
    """Runs the checks side by side and prints how each ended, with all that a failed one said; the names of those."""
    began = time.monotonic()
    running = {
        name: subprocess.Popen(
            command, cwd=ROOT, env=environment, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
        )
        for name, command in CHECKS.items()
    }

    failed = []
    for name, check in running.items():
        said = check.communicate()[0]
        good = check.returncode == 0
        print(f"{name}: {'ok' if good else 'failed'}  ({time.monotonic() - began:.1f} s)", flush=True)
        if not good:
            failed.append(name)
            print(said[-8000:], flush=True)
    return failed


def chosen(arguments: Sequence[str]) -> list[str]:
    """The arguments of pytest."""
    if arguments[:1] == [FAST]:
        return [*TOGETHER, "-m", FAST, *arguments[1:]]
    return list(arguments) or TOGETHER


def _pytest(arguments: Sequence[str], environment: Mapping[str, str]) -> int:
    return subprocess.run(
        ["pytest", *chosen(arguments)], cwd=ROOT, env=environment, stdin=subprocess.DEVNULL, check=False
    ).returncode


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
