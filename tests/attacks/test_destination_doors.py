"""What a destination, or whoever writes the rows that are sent to it, could do; nothing of it comes about."""

from __future__ import annotations

import base64
import json
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from push_bench import ROWS, Bench, outcomes, returning, row
from test_http_answers import pouring
from web_server import WebServer, web_server

from runtime.push import apart
from runtime.push.call import CallResult, PushCall

SECRET = "ab/cd+ef"


@pytest.fixture
def server() -> Iterator[WebServer]:
    with web_server() as made:
        yield made


@pytest.fixture
def bench(tmp_path: Path, server: WebServer) -> Bench:
    made = Bench(tmp_path, server.url)
    made.secrets = {"K": SECRET}
    return made


def pushed(bench: Bench, text: str, rows: Any = ROWS, **api: Any) -> CallResult:
    bench.lib(text, **api)
    function = apart.load(bench.folder, "crm", secrets=bench.context.secrets)
    return function.push(PushCall([dict(r) for r in rows]), bench.context)


def test_an_identifier_never_reaches_another_resource(bench: Bench, server: WebServer) -> None:
    rows = [row(n, name=name) for n, name in enumerate([".", "..", "a/../b", "?x=1", "#", "é \r\nX: 1", "\x00"], 1)]
    text = '{key(r): "ok" if http.delete("/contacts/" + url_quote(r["name"])).ok else "" for r in rows}'
    pushed(bench, returning(text), rows)
    assert [s.target.removeprefix("/contacts/") for s in server.seen] == [
        "%2E", "%2E%2E", "a%2F..%2Fb", "%3Fx%3D1", "%23", "%C3%A9%20%0D%0AX%3A%201", "%00",
    ]  # fmt: skip


@pytest.mark.parametrize("name", ["x\r\nX-Admin: 1", "x HTTP/1.1\r\nHost: a\r\n\r\nDELETE /", "x\ny"])
def test_a_row_adds_nothing_to_the_head_of_a_request(bench: Bench, server: WebServer, name: str) -> None:
    for use in ('http.get("/a/" + r["name"])', 'http.get("/a", headers={"X-Name": r["name"]})'):
        result = pushed(bench, returning(f'{{key(r): "ok" if {use} else "" for r in rows}}'), [row(1, name=name)])
        assert result.outcomes[0].kind == "error" and server.seen == []


def test_no_path_leaves_base_url_with_auth(bench: Bench, server: WebServer) -> None:
    bench.base_url = f"{server.url}/v2"
    pushed(bench, returning('{key(r): "ok" if http.get("/../admin") else "" for r in rows}'), auth={"env": "K"})
    assert server.seen == []


def test_a_redirect_carries_nothing_of_a_call_to_another_host(bench: Bench, server: WebServer) -> None:
    with web_server() as other:
        server.answers((302, {"Location": f"{other.url}/x"}, b""))
        given = '{"X-Api-Key": env.get("K"), "Cookie": "c", "X-Own": "1", "Accept": "text/csv"}'
        text = returning(f'{{key(r): "ok" if http.get("/a", headers={given}) else "" for r in rows}}')
        pushed(bench, text, [ROWS[0]], auth={"env": "K"}, headers={"X-App": "me"})
        (seen,) = other.seen
    assert {k: v for k, v in seen.headers.items() if k not in ("host", "user-agent", "accept-encoding")} == {
        "accept": "text/csv"
    }


@pytest.mark.parametrize("charset", ["idna", "undefined", "utf-7", "unicode_escape", "x" * 5000])
def test_no_charset_ends_a_run(bench: Bench, server: WebServer, charset: str) -> None:
    server.answers((422, {"Content-Type": f"application/json; charset={charset}"}, '{"why": "Zoë"}'.encode()))
    result = pushed(bench, returning('{key(r): "reject: " + http.post("/a").json["why"] for r in rows}'))
    assert outcomes(result) == [("reject", "Zoë", True)] * 3
    assert [call.response_text for call in result.calls] == ['{"why": "Zoë"}'] * 3


def test_an_answer_without_end_costs_little_memory(bench: Bench) -> None:
    program = """
import re, sys
from runtime.push.http.client import POOL, TransportError
try:
    POOL.send("GET", sys.argv[1], {}, None, 30)
except TransportError as error:
    most = re.search(r"VmHWM:\\s+(\\d+) kB", open("/proc/self/status").read())[1]
    print(str(error)[-18:], int(most) // 1024)
"""
    with pouring(b"HTTP/1.1 200 OK\r\n\r\n", b"x" * 65536) as url:
        done = subprocess.run([sys.executable, "-c", program, url], capture_output=True, text=True, timeout=60)
    said = re.fullmatch(r" ?(?:: )?answer over 50 MB (\d+)", done.stdout.strip())
    assert said and int(said[1]) < 250, done


@pytest.mark.parametrize("said", ["inf", "9e15", "99999999999", "-5", "nan", "9" * 300])
def test_no_retry_after_holds_a_run_for_longer_than_an_hour(bench: Bench, server: WebServer, said: str) -> None:
    server.answers((429, {"Retry-After": said}, b""), (200, {}, b""))
    limit = {"requests": 100, "per": "1s"}
    text = returning('{key(r): "error: busy" for r in rows if http.get("/a")}')
    pushed(bench, text, [ROWS[0]], rate_limit=limit, retry=0)
    assert bench.limiter._try("lib:crm", 100, 1) <= 3600  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    "said",
    [
        json.dumps(SECRET).replace("/", r"\/"),
        "ab%2fcd%2Bef",
        SECRET.encode().hex(),
        base64.b64encode(f"user:{SECRET}".encode()).decode(),
        json.dumps({"you": json.dumps({"sent": SECRET})}).replace("/", r"\/"),
    ],
)
def test_a_secret_that_a_destination_says_back_in_disguise_is_kept_nowhere(
    bench: Bench, server: WebServer, said: str
) -> None:
    server.answers((422, {"X-Echo": said}, said.encode()))
    result = pushed(bench, KEEPING, [ROWS[0]], auth={"env": "K"})
    kept = [
        result.outcomes[0].message,
        *result.prints,
        result.calls[0].response_text,
        *result.calls[0].response_headers.values(),
    ]
    assert not [text for text in kept if said.strip('"') in str(text)] and "***" in str(kept[0])


KEEPING = returning('{key(r): "reject: " + said(http.post("/a")) for r in rows}') + (
    "\ndef said(r):\n    print(r.text)\n    return r.text\n"
)


def test_a_destination_that_says_nothing_is_left_after_the_timeout(bench: Bench) -> None:
    began = time.monotonic()
    with pouring(b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n", b"") as bench.base_url:
        result = pushed(bench, returning('{key(r): "ok" if http.get("/a") else "" for r in rows}'), timeout=1)
    assert result.outcomes[0].kind == "error" and time.monotonic() - began < 15
