"""What the pages and the API say to browsers, caches and logs: each promise of docs/security.md about them, tried."""

from __future__ import annotations

import http.client
import logging
import re
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from http.cookies import SimpleCookie
from pathlib import Path
from typing import Any

import pytest
from django.conf import settings
from django.http import HttpRequest
from django.test import Client, RequestFactory, override_settings

from ondatra_web import headers, redaction, tokens
from ondatra_web.models import Export, Run
from ondatra_web.runs import ending, progress
from ondatra_web.tracking import vault
from runtime.custody.redact import everywhere
from runtime.custody.secrets import Secrets
from runtime.push.load import load_push
from tests.web import filled
from tests.web.test_settings import manage

ROOT = Path(__file__).resolve().parents[2]
PASSWORD = "correct-horse-battery"
STRICT = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; font-src 'self'; connect-src 'self'; "
    "form-action 'self'; frame-ancestors 'none'; base-uri 'none'"
)


@pytest.fixture
def run(db: None, tmp_path: Path) -> Run:
    run = filled.a_run(filled.a_sync(filled.workspace()), **filled.closing(1), tracking="written")
    filled.put_records(run, tmp_path, [filled.record("N1")])
    return run


@pytest.fixture
def operator(client: Client, run: Run) -> Client:
    """Signed in as somebody who may see everything, the admin site included."""
    person = filled.person("ada", run.sync.workspace)
    person.is_staff = person.is_superuser = True
    person.save()
    client.force_login(person)
    return client


# ---- browsers


@pytest.mark.parametrize(
    "address",
    ["/", "/login/", "/syncs/", "/runs/{run}/", "/runs/{run}/records/", "/models/", "/store/", "/find/?q=N1"]
    + ["/admin/", "/admin/ondatra_web/run/", "/api/v1/schema", "/api/nothing", "/nothing", "/static/ondatra.js"],
)
def test_every_answer_forbids_scripts_styles_and_frames_of_others(operator: Client, run: Run, address: str) -> None:
    answer = operator.get(address.format(run=run.pk))

    assert answer["Content-Security-Policy"] == STRICT
    assert answer["X-Content-Type-Options"] == "nosniff"
    assert answer["Referrer-Policy"] == "same-origin"
    assert answer["Cross-Origin-Opener-Policy"] == "same-origin"


def test_the_page_of_the_api_may_show_the_pictures_of_its_style_sheet_and_nothing_more(client: Client) -> None:
    assert client.get("/api/docs")["Content-Security-Policy"] == STRICT.replace(
        "img-src 'self'", "img-src 'self' data:"
    )


def test_no_template_has_a_script_a_style_or_a_handler_in_it() -> None:
    inline = re.compile(r"<style|<script(?![^>]*\bsrc=)|\sstyle=|\son[a-z]+=|javascript:|hx-trigger=.[^\"']*\[", re.I)
    pages = sorted((ROOT / "templates").rglob("*.html"))

    assert pages and {p.name: found for p in pages if (found := inline.findall(p.read_text(encoding="utf-8")))} == {}


def test_an_answer_that_broke_keeps_the_policy(client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(request: HttpRequest) -> Any:
        raise ZeroDivisionError

    monkeypatch.setattr("django.contrib.auth.views.LoginView.get", lambda self, request: broken(request))
    client.raise_request_exception = False

    answer = client.get("/login/")

    assert (answer.status_code, answer["Content-Security-Policy"]) == (500, STRICT)


# ---- caches


def _payload_addresses(run: Run) -> list[str]:
    export = Export.objects.create(run=run, format="csv", status="done")
    return [
        f"/runs/{run.pk}/records/",
        f"/runs/{run.pk}/records/?record=records_updated.0:0",
        f"/runs/{run.pk}/records/download/?format=csv",
        f"/exports/{export.pk}/",
        f"/exports/{export.pk}/file/",
        "/find/?q=N1",
        f"/runs/{run.pk}/",
        "/admin/",
    ]


def test_what_may_hold_payloads_is_stored_by_no_cache(operator: Client, run: Run) -> None:
    kept = {a: said for a in _payload_addresses(run) if "no-store" not in (said := operator.get(a)["Cache-Control"])}

    assert kept == {}


@pytest.mark.parametrize(
    "path", ["sync_runs/{run}/records", "sync_runs/{run}/records_export", "records/N1/history?sync_id={sync}"]
)
def test_payloads_of_the_api_are_stored_by_no_cache(client: Client, run: Run, path: str) -> None:
    person = filled.person("ada", run.sync.workspace)
    _, token = tokens.make(run.sync.workspace.organization, person, "t", ["records"])

    answer = client.get(
        f"/api/v1/{path.format(run=run.pk, sync=run.sync_id)}", headers={"authorization": f"Bearer {token}"}
    )

    assert (answer.status_code, answer["Cache-Control"]) == (200, "no-store")


# ---- limits and TLS, asked of the real server


class Server:
    """`python -m ondatra_web.serving.web`."""

    def __init__(self, process: subprocess.Popen[bytes], port: int) -> None:
        self.process, self.port = process, port

    def ask(self, method: str, path: str, *body: bytes, **headers: str) -> tuple[int, dict[str, str]]:
        """The body is sent as it is, with whatever the headers say of it."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=20)
        try:
            connection.putrequest(method, path)
            for name, value in headers.items():
                connection.putheader(name.replace("_", "-"), value)
            connection.endheaders()
            for piece in body:
                connection.send(piece)
            answer = connection.getresponse()
            answer.read()
            return answer.status, {name.lower(): value for name, value in answer.getheaders()}
        finally:
            connection.close()


def _serve(folder: Path, **environment: str) -> Server:
    import os

    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    env = {**os.environ, "ONDATRA_DATA_DIR": str(folder), "ONDATRA_WEB_PORT": str(port), **environment}
    env["DJANGO_SETTINGS_MODULE"] = "ondatra_web.settings"
    process = subprocess.Popen([sys.executable, "-m", "ondatra_web.serving.web"], cwd=ROOT, env=env)
    for _ in range(300):
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                return Server(process, port)
        time.sleep(0.1)
    raise TimeoutError("the server did not start within 30 s")


@pytest.fixture(scope="module")
def behind_tls(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    server = _serve(tmp_path_factory.mktemp("served"), ONDATRA_TLS_PROXY="127.0.0.1")
    yield server
    server.process.terminate()
    server.process.wait(20)


@pytest.mark.server
def test_clients_that_never_end_their_request_keep_nobody_out(behind_tls: Server) -> None:
    slow = [socket.create_connection(("127.0.0.1", behind_tls.port)) for _ in range(300)]
    try:
        for one in slow:
            one.sendall(b"GET /login/ HTTP/1.1\r\nX: ")
        assert behind_tls.ask("GET", "/login/", X_Forwarded_Proto="https")[0] == 200
    finally:
        for one in slow:
            one.close()


@pytest.mark.server
def test_behind_tls_browsers_are_told_to_stay_there_and_cookies_go_nowhere_else(behind_tls: Server) -> None:
    status, said = behind_tls.ask("GET", "/login/", X_Forwarded_Proto="https")

    cookie = next(iter(SimpleCookie(said["set-cookie"]).values()))
    assert status == 200
    assert said["strict-transport-security"] == "max-age=31536000; includeSubDomains"
    assert (cookie["secure"], cookie["httponly"], cookie["samesite"]) == (True, True, "Lax")
    assert "server" not in said


@pytest.mark.server
def test_behind_tls_nothing_is_answered_without_it(behind_tls: Server) -> None:
    status, said = behind_tls.ask("GET", "/login/?next=/")

    assert (status, said["location"]) == (301, f"https://127.0.0.1:{behind_tls.port}/login/?next=/")


@pytest.mark.server
def test_a_body_has_a_limit_whether_it_tells_its_length_or_not(behind_tls: Server) -> None:
    most = settings.DATA_UPLOAD_MAX_MEMORY_SIZE
    chunks = b"%x\r\n%s\r\n" % (most, b"x" * most), b"1\r\nx\r\n0\r\n\r\n"

    assert behind_tls.ask("POST", "/login/", X_Forwarded_Proto="https", Content_Length=str(most + 1))[0] == 413
    assert behind_tls.ask("POST", "/login/", *chunks, X_Forwarded_Proto="https", Transfer_Encoding="chunked")[0] == 413


@pytest.mark.server
def test_the_head_of_a_request_has_a_limit(behind_tls: Server) -> None:
    assert behind_tls.ask("GET", "/login/", X_Forwarded_Proto="https", X_Long="x" * 70_000)[0] == 431


def test_any_server_refuses_a_body_by_its_length_before_it_is_read(client: Client) -> None:
    with override_settings(DATA_UPLOAD_MAX_MEMORY_SIZE=1_000):
        page = client.post("/login/", b"x" * 1_001, content_type="text/plain")
        api = client.post("/api/v1/sync_runs/1/cancel", b"x" * 1_001, content_type="application/json")

    why = "this request has 1,001 bytes and may have 1,000: send less at a time"
    assert (page.status_code, page.content.decode()) == (413, why)
    assert (api.status_code, api.json()) == (413, {"status": "error", "code": "too_large", "message": why})


def test_djangos_own_check_finds_nothing_in_the_configuration_of_production(tmp_path: Path) -> None:
    done = manage(
        tmp_path / "data",
        "check",
        "--deploy",
        "--fail-level",
        "WARNING",
        **{"ONDATRA_TLS_PROXY": "10.0.0.1", "DJANGO_ALLOW_ASYNC_UNSAFE": ""},
    )

    assert done.stdout + done.stderr == "System check identified no issues (1 silenced).\n"


def test_the_policy_names_each_kind_of_content_once() -> None:
    assert headers.policy() == STRICT


# ---- logs, tracebacks, messages


def test_a_secret_of_the_install_is_in_no_log_and_no_traceback(tmp_path: Path) -> None:
    shown = "import logging; url = 'redis://:' + 'correct-horse-' + 'battery@localhost'"
    done = manage(
        tmp_path / "data",
        "shell",
        "-c",
        f"{shown}; logging.getLogger('ondatra.test').error('no answer of %s', url); raise ValueError(url)",
        REDIS_URL=f"redis://:{PASSWORD}@localhost:1/0",
    )

    assert PASSWORD not in done.stdout + done.stderr
    assert "ERROR ondatra.test: no answer of redis://:***@localhost" in done.stderr
    assert done.stderr.splitlines()[-1] == "ValueError: redis://:***@localhost"


def test_a_secret_of_a_push_function_is_in_no_log_of_its_worker(tmp_path: Path) -> None:
    (tmp_path / "lib").mkdir()
    (tmp_path / "lib" / "crm.star").write_text(
        'API = {"base_url": "http://localhost:1", "auth": {"env": "CRM"}}\ndef push(rows): return {}\n'
    )
    load_push(tmp_path, "crm", secrets=Secrets({"CRM": "sesame-opens-it"}, "a test"))
    record = logging.LogRecord("ondatra", logging.ERROR, "", 0, "it said sesame-opens-it", (), None)

    assert redaction.LineFormatter("%(message)s").format(record) == "it said ***"


def test_a_kept_secret_that_was_opened_is_shown_nowhere(settings: Any) -> None:
    vault.unseal(vault.seal("the-buckets-own-key"))

    assert everywhere.text("key the-buckets-own-key") == "key ***"


def test_a_report_of_an_error_shows_no_secret_not_even_half_of_one() -> None:
    everywhere.add(PASSWORD)
    before = "x" * (4096 - 10)  # Django cuts a variable there
    try:
        kept = before + PASSWORD
        raise ValueError(f"{kept[-21:]} is wrong")
    except ValueError:
        reporter = redaction.Reporter(RequestFactory().get("/"), *sys.exc_info())

    page, text = reporter.get_traceback_html(), reporter.get_traceback_text()

    assert "is wrong" in page and "is wrong" in text
    assert PASSWORD[:6] not in page.replace("PASSWORD", "") + text


def test_an_error_of_a_thread_shows_no_secret(capsys: pytest.CaptureFixture[str]) -> None:
    everywhere.add(PASSWORD)

    try:
        raise ValueError(PASSWORD)
    except ValueError as error:
        redaction.uncaught_in_thread(threading.ExceptHookArgs((ValueError, error, error.__traceback__, None)))

    assert "ValueError: ***" in capsys.readouterr().err


def test_what_a_run_says_shows_no_secret(run: Run) -> None:
    everywhere.add(PASSWORD)
    Run.objects.filter(pk=run.pk).update(status="working")

    progress.say(run.pk, [("warning", f"asked with {PASSWORD}")])
    ending.end(run, Run.Status.FAILED, f"stopped: OSError: {PASSWORD}")

    assert (run.error, run.runlog_set.get().text) == ("stopped: OSError: ***", "asked with ***")


def test_no_secret_is_compared_letter_by_letter() -> None:
    """Tokens are found by their hash and signatures checked by Django; nobody else has a secret to compare."""
    compared = re.compile(r"(digest|signature|secret|token|password|key_hash)\w*\)? [!=]= (?![\"'])", re.I)
    code = [p for half in ("api", "views") for p in sorted((ROOT / "ondatra_web" / half).rglob("*.py"))]

    assert {p.name: found for p in code if (found := compared.findall(p.read_text(encoding="utf-8")))} == {}
