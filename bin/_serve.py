"""The second half of bin/up, in the virtual environment: database, first user, demo, then the Procfile's processes and
the first sync; beside all of that, Spark's jars."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from contextlib import ExitStack
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from _setup import jars_ready, timed  # noqa: E402

from ondatra_web.serving import ports, processes  # noqa: E402
from ondatra_web.serving.fetching import Fetching  # noqa: E402
from ondatra_web.serving.processes import Background, step  # noqa: E402
from runtime import config  # noqa: E402
from runtime.errors import ConfigError  # noqa: E402
from runtime.lake.packages import COMING, could_not  # noqa: E402

DATA = config.from_env().data_dir
DESTINATION_PORT = 8765
ENDED = {"completed", "completed_with_rejects"}


def manage(*args: str) -> list[str]:
    return [sys.executable, "manage.py", *args]


def told(*args: str) -> str:
    """The output of one of the product's commands."""
    done = subprocess.run(manage(*args), cwd=ROOT, capture_output=True, text=True, check=False)
    if done.returncode:
        command = config.from_env().command(" ".join(args))
        raise ConfigError(f"`{command}` failed: {(done.stderr or done.stdout).strip()}")
    return done.stdout.strip()


def destination(background: Background) -> str:
    """The demo's destination, a server of its own. Returns its address."""
    port = ports.free(int(os.environ.get("DEMO_PORT") or DESTINATION_PORT), "the demo destination")
    with step("demo destination"):
        background.start("demo_destination", manage("demo_destination", "--port", str(port)), port)
    os.environ["DEMO_URL"] = f"http://{ports.HOST}:{port}"
    return os.environ["DEMO_URL"]


def prepare() -> str:
    """Database and first user. Returns the line about the login, printed at once: a password is shown only this time,
    whatever fails later."""
    with step("database"):
        told("migrate", "--verbosity", "0")
        login = told("first_user")  # makes the system checks, too
    print(f"  {login}", flush=True)
    return login


def fetch_jars() -> None:
    """Raises ConfigError with the way out."""
    try:
        timed("Jars for Spark", jars_ready, "Maven's repository")
    except subprocess.CalledProcessError as error:
        raise ConfigError(could_not(error.output or "", config.from_env().spark_jars)) from None


def sync(background: Background, jars: Fetching) -> str:
    """The demo's data and, once the jars are there, one run over all of it. Returns the run's status; the report is
    printed with `last_runs`. Raises ConfigError."""
    with step("demo data"):
        print("   ", told("demo", "load").replace("\n", "\n    "), flush=True)
    jars.wait()
    with step("sync"):
        out = DATA / "logs" / "sync.json"
        with out.open("wb") as file:
            process = subprocess.Popen(
                manage("run", "--json"), cwd=ROOT, stdout=file, stdin=subprocess.DEVNULL, start_new_session=True
            )
        background.running["sync"] = process
        process.wait()
    try:
        return str(json.loads(out.read_text())["status"])
    except (ValueError, KeyError):
        return "failed"


def report(url: str = "") -> None:
    print("\nWhat was delivered", flush=True)
    print("  " + told("last_runs", *(["--url", url] if url else [])).replace("\n", "\n  "), flush=True)


def once() -> int:
    background = Background(DATA, ROOT)
    with ExitStack() as stack:
        processes.only_one(stack, DATA)
        stack.callback(background.stop)
        jars = Fetching(fetch_jars)
        prepare()
        where = destination(background)
        status = sync(background, jars)
        report()
        print(f"\nThe destination at {where} ended with this command; bin/up serves it and the pages", flush=True)
    return 0 if status in ENDED else 1


def serve() -> int:
    background = Background(DATA, ROOT)
    with ExitStack() as stack:
        processes.only_one(stack, DATA)
        stack.callback(background.stop)
        jars = Fetching(fetch_jars)
        login = prepare()
        os.environ["REDIS_URL"] = processes.redis(background, DATA)
        where = destination(background)
        port = ports.free(ports.WEB, "the pages")
        os.environ |= {"ONDATRA_WEB_HOST": ports.HOST, "ONDATRA_WEB_PORT": str(port)}
        url = f"http://{ports.HOST}:{port}"
        threading.Thread(target=background.watch, args=("redis", "demo_destination"), daemon=True).start()
        threading.Thread(target=first_sync, args=(background, port, url, where, login, jars), daemon=True).start()
        code = processes.serve(ROOT, os.environ)
        return 0 if background.ending else code


def first_sync(background: Background, port: int, url: str, where: str, login: str, jars: Fetching) -> None:
    """Runs beside the servers: pages come first, data follows."""
    with step("pages"):
        while not background.ending and not ports.answers(port):
            time.sleep(0.1)
    print(
        f"\nOndatra serves {url}\n  {login}\n  the demo's destination shows what it holds at {where}\n  Ctrl-C ends "
        f"everything\n" + (f"  {COMING}\n" if jars.goes_on else ""),
        flush=True,
    )
    try:
        sync(background, jars)
        if not background.ending:
            report(url)
    except ConfigError as error:
        if not background.ending:
            print(f"the first sync did not run: {error}", flush=True)


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    try:
        sys.exit(once() if "--once" in sys.argv[1:] else serve())
    except ConfigError as error:
        sys.exit(str(error))
    except KeyboardInterrupt:
        sys.exit(130)
