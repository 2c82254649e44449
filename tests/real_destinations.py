"""Destinations that nobody here wrote, on free ports and in fresh folders: Kinto, PocketBase, WireMock. A missing one
fails; nothing is skipped."""

from __future__ import annotations

import base64
import json
import re
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from services import free_port

ROOT = Path(__file__).resolve().parent.parent
DOCS = ROOT / "docs/destinations.md"


class Service:
    """One running server; `headers` are those of its administrator."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.headers: dict[str, str] = {}

    def ask(self, method: str, path: str, body: Any = None) -> Any:
        """The JSON answer. Raises HTTPError from 400 on."""
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(
            self.url + path, data, {"Content-Type": "application/json", **self.headers}, method=method
        )
        with urllib.request.urlopen(request, timeout=10) as answer:
            text = answer.read()
        return json.loads(text) if text else None


def push_function(name: str, url: str) -> str:
    """The function as it stands in the docs, but for the address; it polls sooner."""
    (text,) = re.findall(rf"```python\n# lib/{name}\.star\n(.*?)```", DOCS.read_text(encoding="utf-8"), re.DOTALL)
    return re.sub(r"https://\w+\.example\.com", url, text).replace('"poll_interval": "10s"', '"poll_interval": "100ms"')


def _program(name: str) -> str:
    found = Path(sys.prefix, "bin", name)
    if not found.exists():
        raise RuntimeError(f"{name} was not found in {found.parent}: run bin/test, which installs it")
    return str(found)


@contextmanager
def _running(command: Sequence[str], service: Service, ready: str, folder: Path) -> Iterator[Service]:
    with (folder / "server.log").open("wb") as log:
        process = subprocess.Popen(command, stdout=log, stderr=log, stdin=subprocess.DEVNULL, start_new_session=True)
        try:
            end = time.monotonic() + 60
            while True:
                try:
                    service.ask("GET", ready)
                    break
                except urllib.error.URLError:
                    if time.monotonic() > end or process.poll() is not None:
                        raise RuntimeError(
                            f"{command[0]} did not start: {(folder / 'server.log').read_text()[-2000:]}"
                        ) from None
                    time.sleep(0.05)
            yield service
        finally:
            process.kill()
            process.wait()


@contextmanager
def kinto(folder: Path) -> Iterator[Service]:
    """A bucket crm with contacts whose email holds an @; it asks for a second of peace with each answer."""
    ini, port = folder / "kinto.ini", free_port()
    subprocess.run(
        [
            _program("kinto"),
            "init",
            "--ini",
            str(ini),
            "--backend",
            "memory",
            "--cache-backend",
            "memory",
            "--host",
            "127.0.0.1",
        ],
        check=True,
        capture_output=True,
    )
    ini.write_text(
        ini.read_text().replace(
            "[app:main]",
            "[app:main]\nkinto.batch_max_requests = 25\nkinto.experimental_collection_schema_validation = "
            "true\nkinto.backoff = 1\n",
            1,
        )
    )
    service = Service(f"http://127.0.0.1:{port}/v1")
    with _running([_program("kinto"), "start", "--ini", str(ini), "--port", str(port)], service, "/", folder):
        service.ask("PUT", "/accounts/admin", {"data": {"password": "s3cret-word"}})
        service.headers = {"Authorization": "Basic " + base64.b64encode(b"admin:s3cret-word").decode()}
        service.ask("PUT", "/buckets/crm", {})
        service.ask(
            "PUT",
            "/buckets/crm/collections/contacts",
            {"data": {"schema": {"properties": {"email": {"type": "string", "pattern": "@"}}}}},
        )
        yield service


@contextmanager
def pocketbase(folder: Path) -> Iterator[tuple[Service, str]]:
    """A collection contacts that takes two batches in two seconds from its users, and the token of one."""
    program, data, port = _program("pocketbase"), str(folder / "data"), free_port()
    subprocess.run(
        [program, "superuser", "upsert", "admin@example.com", "secret-word", "--dir", data],
        check=True,
        capture_output=True,
    )
    service = Service(f"http://127.0.0.1:{port}/api")
    with _running([program, "serve", "--http", f"127.0.0.1:{port}", "--dir", data], service, "/health", folder):
        admin = service.ask(
            "POST",
            "/collections/_superusers/auth-with-password",
            {"identity": "admin@example.com", "password": "secret-word"},
        )
        service.headers = {"Authorization": admin["token"]}
        anybody = "@request.auth.id != ''"
        service.ask(
            "PATCH",
            "/settings",
            {
                "batch": {"enabled": True, "maxRequests": 50, "timeout": 5},
                "rateLimits": {
                    "enabled": True,
                    "rules": [{"label": "/api/batch", "audience": "", "duration": 2, "maxRequests": 2}],
                },
            },
        )
        service.ask(
            "POST",
            "/collections",
            {
                "name": "contacts",
                "type": "base",
                "fields": [{"name": "crm_id", "type": "text", "required": True}, {"name": "email", "type": "email"}],
                **dict.fromkeys(("listRule", "viewRule", "createRule", "updateRule", "deleteRule"), anybody),
            },
        )
        user = service.ask(
            "POST",
            "/collections/users/records",
            {"email": "a@example.com", "password": "secret-word", "passwordConfirm": "secret-word"},
        )
        yield service, service.ask("POST", f"/collections/users/impersonate/{user['id']}", {"duration": 3600})["token"]


@contextmanager
def wiremock(folder: Path, jars: Path) -> Iterator[Service]:
    """A server that answers what it is told by its own API (/__admin)."""
    found = sorted((jars / "wiremock").glob("*wiremock-standalone*.jar"))
    if not found:
        raise RuntimeError(f"WireMock was not found in {jars / 'wiremock'}: run bin/test, which fetches it")
    port = free_port()
    service = Service(f"http://127.0.0.1:{port}")
    command = [
        "java",
        "-Xmx128m",
        "-jar",
        str(found[-1]),
        "--bind-address",
        "127.0.0.1",
        "--port",
        str(port),
        "--root-dir",
        str(folder),
        "--disable-banner",
    ]
    with _running(command, service, "/__admin/health", folder):
        yield service
