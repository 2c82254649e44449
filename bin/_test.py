"""bin/test: set-up, style, types, structure, tests. Anything that is missing fails."""

from __future__ import annotations

import os
import subprocess
import sys
import time

from _setup import JARS, ROOT, VENV, chromium_ready, postgres_ready, set_up, step, wiremock_ready


def main() -> int:
    print("Set-up")
    set_up("requirements-test.lock", s3=True)
    step("Chromium", chromium_ready)
    step("PostgreSQL", postgres_ready)
    step("WireMock", wiremock_ready)
    environment = {
        **os.environ,
        "SPARK_DRIVER_MEMORY": "4g",
        "ONDATRA_JARS_DIR": str(JARS),
        "PATH": f"{VENV / 'bin'}{os.pathsep}{os.environ['PATH']}",
        "PYTHONUNBUFFERED": "1",
    }
    for name in ("ONDATRA_DATA_DIR", "DATABASE_URL", "REDIS_URL"):  # the tests make their own
        environment.pop(name, None)
    failed = []
    if len(sys.argv) == 1:
        for name, command in (
            ("style", ["ruff", "check", "."]),
            ("templates", ["djlint", "--check", "templates"]),
            ("types", ["mypy"]),
            ("imports", ["lint-imports"]),
        ):
            began = time.monotonic()
            ended = subprocess.run(command, cwd=ROOT, env=environment, check=False, text=True, capture_output=True)
            print(
                f"{name}: {'ok' if ended.returncode == 0 else 'failed'}  ({time.monotonic() - began:.1f} s)", flush=True
            )
            if ended.returncode:
                failed.append(name)
                print(ended.stdout[-6000:], ended.stderr[-2000:], flush=True)
    # two processes, each with one Spark session, in the order of tests/conftest.py (the conformance suite last), and
    # one summary line
    together = ["-n", "2", "--dist", "loadscope", "--no-loadscope-reorder", "--durations=15"]
    if subprocess.run(
        ["pytest", *(sys.argv[1:] or together)], cwd=ROOT, env=environment, stdin=subprocess.DEVNULL, check=False
    ).returncode:
        failed.append("tests")
    if failed and failed != ["tests"]:
        print("failed: " + ", ".join(failed), file=sys.stderr, flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    raise SystemExit(main())
