"""Answers that pass: what is tried again, after how long, and what ends the waits."""

from __future__ import annotations

import socket
import threading
import time
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime

import pytest
from oauth_server import oauth
from push_bench import Bench, returning, seconds
from web_server import Reply, Seen, WebServer, gaps, slowly

from runtime.push.http.answers import Answer
from runtime.push.http.rate_limits import retry_after

NOW = datetime(2026, 1, 15, 8, tzinfo=UTC)


def test_temporary_statuses_are_tried_again_and_others_are_answers(bench: Bench, server: WebServer) -> None:
    left = dict.fromkeys([429, 500, 502, 503, 504, 400, 401, 403, 404, 408, 409, 422, 501], 2)

    def reply(seen: Seen) -> Reply:
        status = int(seen.path[1:])
        left[status] -= 1
        return (status if left[status] >= 0 else 200), {}, {}

    server.reply = reply
    assert bench.see(
        f"for s in {list(left)}:", '    show(http.get("/" + str(s)).status_code)', retry=2, backoff=0.01
    ) == [200, 200, 200, 200, 200, 400, 401, 403, 404, 408, 409, 422, 501]


def test_a_temporary_status_that_remains_is_an_answer(bench: Bench, server: WebServer) -> None:
    server.answers((503, {}, b"later"))
    assert bench.see(
        'r = http.get("/a")', "show(r.ok); show(r.status_code); show(r.text); show(r.json)", retry=1, backoff=0.01
    ) == [False, 503, "later", None]
    assert len(server.seen) == 2


def test_retry_of_the_call_wins_over_the_api(bench: Bench, server: WebServer) -> None:
    server.answers((503, {}, b""))
    bench.see('http.get("/a", retry=0)', 'http.get("/b", retry=1)', retry=3, backoff=0.01)
    assert server.lines() == ["GET /a", "GET /b", "GET /b"]


def test_waits_are_doubled_with_jitter(bench: Bench, server: WebServer) -> None:
    server.answers((503, {}, b""))
    bench.see('http.get("/a")', retry=3, backoff=0.2)
    for gap, nominal in zip(gaps(server), (0.2, 0.4, 0.8), strict=True):
        assert nominal * 0.5 <= gap < nominal * 1.5 + 0.3


def test_retry_after_in_seconds_is_obeyed(bench: Bench, server: WebServer) -> None:
    server.answers((429, {"Retry-After": "1"}, b""), (200, {}, b""))
    bench.see('http.get("/a")', retry=1, backoff=0.01)
    assert 1.0 <= gaps(server)[0] < 2


@pytest.mark.parametrize(
    "said, seconds",
    [
        ("7", 7.0),
        ("2.5", 2.5),
        ("0", 0.0),
        (format_datetime(NOW + timedelta(seconds=90), usegmt=True), 90.0),
        # unreadable, or no time to come: the ordinary backoff
        ("", None),
        ("soon", None),
        ("-5", None),
        ("nan", None),
        ("1_0", None),
        (format_datetime(NOW - timedelta(seconds=9), usegmt=True), None),
        ("Thu, 01 Jan 2026 00:00:00 +99999999", None),
        # further than anybody waits
        ("inf", 3600.0),
        ("Infinity", 3600.0),
        ("9e15", 3600.0),
        ("9" * 400, 3600.0),
        ("99999999999", 3600.0),
        ("Fri, 31 Dec 9999 23:59:59 GMT", 3600.0),
    ],
)
def test_retry_after_is_read_as_it_comes_and_an_hour_is_the_most(said: str, seconds: float | None) -> None:
    assert retry_after(Answer(429, {"retry-after": said}, b""), NOW.timestamp()) == seconds


def test_a_date_to_retry_after_is_meant_by_the_clock_of_the_server() -> None:
    theirs = NOW + timedelta(hours=1)
    headers = {
        "retry-after": format_datetime(theirs + timedelta(seconds=90), usegmt=True),
        "date": format_datetime(theirs, usegmt=True),
    }
    assert retry_after(Answer(429, headers, b""), NOW.timestamp()) == 90


def test_auth_is_made_anew_for_each_attempt(bench: Bench, server: WebServer) -> None:
    api = oauth(bench, server, lifetime=0.5)
    real = server.reply
    tries: list[str] = []

    def reply(seen: Seen) -> Reply:
        if seen.path == "/token":
            return real(seen)
        tries.append(seen.headers["authorization"])
        return 503, {}, b""

    server.reply = reply
    bench.see('http.get("/a")', retry=1, backoff=1, **api)
    assert tries == ["Bearer t0ken-1", "Bearer t0ken-2"]


def broken_server(answer: bytes) -> tuple[str, list[float], socket.socket]:
    """Takes connections, sends these bytes and hangs up."""
    taken: list[float] = []
    listening = socket.create_server(("127.0.0.1", 0))

    def serve() -> None:
        while True:
            try:
                connection, _ = listening.accept()
            except OSError:
                return
            connection.recv(65536)
            taken.append(time.monotonic())
            connection.sendall(answer)
            connection.close()

    threading.Thread(target=serve, daemon=True).start()
    return f"http://127.0.0.1:{listening.getsockname()[1]}", taken, listening


@pytest.mark.parametrize("answer", [b"", b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n{}", b"garbage\r\n\r\n"])
def test_a_transport_error_is_tried_again_and_then_fails_the_call(bench: Bench, answer: bytes) -> None:
    url, taken, listening = broken_server(answer)
    result = bench.push(returning(f'http.post("{url}/x", json=[1])'), retry=2, backoff=0.01)
    listening.close()
    assert len(taken) == 3 and [c.attempt for c in result.calls] == [1, 2, 3]
    assert {(o.kind, o.known) for o in result.outcomes} == {("error", False)} and f"POST {url}/x" in (
        result.outcomes[0].message or ""
    )


def test_no_answer_within_the_timeout_is_a_transport_error(bench: Bench, server: WebServer) -> None:
    server.reply = slowly(5)
    result = bench.push(returning('http.get("/a", timeout=0.3)'))
    assert "no answer within 0.3 s" in (result.outcomes[0].message or "") and result.http_seconds < 4


def test_a_refused_connection_names_the_url_without_its_secret(bench: Bench) -> None:
    bench.secrets, bench.base_url = {"K": "s3cr3t-value"}, "http://127.0.0.1:9"
    result = bench.push(returning('http.get("/a")'), auth={"env": "K", "param": "key"})
    assert "http://127.0.0.1:9/a?key=***" in (result.outcomes[0].message or "") and "refused" in (
        result.outcomes[0].message or ""
    )


def test_a_wait_for_the_next_try_ends_with_a_cancel(bench: Bench, server: WebServer) -> None:
    server.answers((503, {"Retry-After": "60"}, b""))
    bench.cancelled = lambda: bool(server.seen)
    assert seconds(lambda: bench.push(returning('http.get("/a")'), retry=1)) < 3
