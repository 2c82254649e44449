"""bin/up: set-up with the system's Python, all but Spark's jars; then, beside those, the demo with the project's
own."""

from __future__ import annotations

import os
import sys

from _setup import JARS, PYTHON, ROOT, VENV, set_up_programs


def main() -> None:
    unknown = [a for a in sys.argv[1:] if a != "--once"]
    if unknown:
        print(f"bin/up takes --once or nothing; found {unknown[0]}", file=sys.stderr)
        raise SystemExit(2)
    print("Set-up")
    set_up_programs("requirements.lock")
    os.environ.pop("ONDATRA_PROJECT_DIR", None)  # the demo is the clone's, whatever project `ondatra` works on
    os.environ["ONDATRA_JARS_DIR"] = str(JARS)
    os.environ["PATH"] = f"{VENV / 'bin'}{os.pathsep}{os.environ['PATH']}"
    os.environ["PYTHONUNBUFFERED"] = "1"
    os.chdir(ROOT)
    os.execv(PYTHON, [str(PYTHON), str(ROOT / "bin" / "_serve.py"), *sys.argv[1:]])


if __name__ == "__main__":
    main()
