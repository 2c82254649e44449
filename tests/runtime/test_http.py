"""The HTTP client of push functions, against a real server on this machine."""

from __future__ import annotations

import base64
import gzip
import hashlib
import hmac
import socket
import threading
import time
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from typing import Any

import pytest
from push_bench import ROWS, Bench, outcomes, returning, row, run, seconds
from web_server import Reply, Seen, WebServer, slowly, web_server

from runtime.errors import Cancelled
from runtime.push.call import PushCall
from runtime.push.http.addresses import join_url, same_host
from runtime.push.http.answers import Answer
from runtime.push.http.rate_limits import retry_after

NOW = datetime(2026, 1, 15, 8, tzinfo=UTC)


def gaps(server: WebServer) -> list[float]:
    return [b.at - a.at for a, b in zip(server.seen, server.seen[1:], strict=False)]


def test_answers_that_are_alike_but_for_a_little_are_told_apart(bench: Bench, server: WebServer) -> None:
    said: list[Reply] = [
        (200, {}, b'{"a":1}'),
        (200, {}, b'{"a":1}'),
        (200, {}, b'{"a":2}'),
        (201, {}, b'{"a":2}'),
        (201, {"X-A": "b"}, b'{"a":2}'),
        (200, {}, b'[{"b":1,"a":2.0}]'),
        (200, {}, b"x" * 5_000),
        (200, {}, b"y" * 5_000),
        (200, {}, b"y" * 5_000),
        (200, {}, b'{"a":1}'),
    ]
    replies = iter(said)
    server.reply = lambda _: next(replies)
    found = bench.see(
        f"for _ in range({len(said)}):",
        '    r = http.get("/")',
        '    show([r.status_code, r.headers.get("x-a"), r.text])',
    )
    assert found == [[status, headers.get("X-A"), body.decode()] for status, headers, body in said]


# what is sent


def test_each_verb_sends_json_with_its_label(bench: Bench, server: WebServer) -> None:
    bench.see(
        "for f in [http.post, http.put, http.patch, http.delete]:", '    f("/a", json={"n": 1})', 'http.get("/a")'
    )
    assert [(s.method, s.body, s.headers.get("content-type")) for s in server.seen] == [
        (m, b'{"n":1}', "application/json") for m in ("POST", "PUT", "PATCH", "DELETE")
    ] + [("GET", b"", None)]


def test_a_form_a_text_and_own_content_types_are_sent(bench: Bench, server: WebServer) -> None:
    bench.see(
        'http.post("/a", data={"q": "a b&é", "n": 2, "l": [1, 2], "x": None, "t": True})',
        'http.post("/a", data="raw=1")',
        'http.post("/a", body="é")',
        'http.post("/a", body="<x/>", headers={"content-type": "text/xml"})',
    )
    assert [(s.body.decode(), s.headers["content-type"]) for s in server.seen] == [
        ("q=a+b%26%C3%A9&n=2&l=1&l=2&t=true", "application/x-www-form-urlencoded"),
        ("raw=1", "application/x-www-form-urlencoded"),
        ("é", "text/plain; charset=utf-8"),
        ("<x/>", "text/xml"),
    ]


def test_params_join_the_query_escaped(bench: Bench, server: WebServer) -> None:
    bench.see(
        'http.get("/a?x=1", params={"q": "a b&c", "n": 2, "l": ["u", "v"], "none": None})',
        'http.get("/b", params={"k": True})',
    )
    assert [s.query for s in server.seen] == [
        [("x", "1"), ("q", "a b&c"), ("n", "2"), ("l", "u"), ("l", "v")],
        [("k", "true")],
    ]


def test_headers_of_the_call_win_over_auth_and_auth_over_the_api(bench: Bench, server: WebServer) -> None:
    bench.secrets = {"K": "s3cr3t-value"}
    bench.see(
        'http.get("/a")',
        'http.get("/b", headers={"authorization": "Token own", "x-version": "2"})',
        auth={"env": "K"},
        headers={"X-Version": "1", "X-App": "me", "Authorization": "none"},
    )
    assert [(s.headers["authorization"], s.headers["x-version"], s.headers["x-app"]) for s in server.seen] == [
        ("Bearer s3cr3t-value", "1", "me"),
        ("Token own", "2", "me"),
    ]


@pytest.mark.parametrize(
    "base, url, whole",
    [
        ("http://x", "/a", "http://x/a"),
        ("http://x/v2/", "/a", "http://x/v2/a"),
        ("http://x/v2", "a?b=1", "http://x/v2/a?b=1"),
        ("http://x/v2/", "a", "http://x/v2/a"),
        ("http://x", "HTTPS://y/b", "HTTPS://y/b"),
    ],
)
def test_a_relative_url_is_joined_by_one_slash(base: str, url: str, whole: str) -> None:
    assert join_url(base, url) == whole


def test_a_relative_url_without_base_url_is_an_error(bench: Bench) -> None:
    bench.lib("", name="unused")
    (bench.folder / "lib/crm.star").write_text("API = {}\n" + returning('http.get("/a")'))
    result = bench.load().push(PushCall(list(ROWS)), bench.context)
    assert "the API dict has no base_url" in (result.outcomes[0].message or "")


@pytest.mark.parametrize(
    "base, url, same",
    [
        ("https://x/v2", "https://x/other", True),
        ("https://x", "https://X:443/a", True),
        ("https://x", "https://y/a", False),
        ("https://x", "http://x:443/a", False),
        ("https://x", "https://x:8443/a", False),
        ("https://x", "https://x@evil/a", False),
        ("", "https://x", False),
        ("http://x", "http://x.evil/a", False),
    ],
)
def test_auth_goes_to_the_host_of_base_url_only(base: str, url: str, same: bool) -> None:
    assert same_host(base, url) is same


def test_an_absolute_url_to_another_host_gets_no_auth_and_no_api_headers(bench: Bench) -> None:
    bench.secrets = {"K": "s3cr3t-value"}
    with web_server() as other:
        bench.see(f'http.get("{other.url}/a", headers={{"X-Own": "1"}})', auth={"env": "K"}, headers={"X-App": "me"})
        assert [
            (s.headers.get("authorization"), s.headers.get("x-app"), s.headers.get("x-own")) for s in other.seen
        ] == [(None, None, "1")]


# auth


def test_each_simple_auth_is_where_it_belongs(bench: Bench, server: WebServer) -> None:
    bench.secrets = {"K": "a b/é&"}
    for auth in ({"env": "K", "param": "api key"}, {"user": "me", "pass": {"env": "K"}}):
        bench.see('http.get("/a?x=1")', auth=auth)
    bench.secrets = {"K": "plain"}
    bench.see('http.get("/a")', auth={"env": "K", "header": "X-Key"})
    param, basic, header = server.seen
    assert param.query == [("x", "1"), ("api key", "a b/é&")]
    assert basic.headers["authorization"] == "Basic " + base64.b64encode("me:a b/é&".encode()).decode()
    assert (header.headers["x-key"], "authorization" in header.headers) == ("plain", False)


def test_hmac_signs_the_bytes_of_each_body(bench: Bench, server: WebServer) -> None:
    bench.secrets = {"K": "s1gn"}
    bench.see('http.post("/a", json={"n": "é"})', 'http.get("/a")', auth={"hmac": {"env": "K", "header": "X-Sig"}})
    assert [s.headers["x-sig"] for s in server.seen] == [
        hmac.new(b"s1gn", s.body, hashlib.sha256).hexdigest() for s in server.seen
    ]


def oauth(bench: Bench, server: WebServer, lifetime: Any = 3600, refuse: int = 0) -> dict[str, Any]:
    """A server that gives token 1, 2, … and refuses the first `refuse` tokens."""
    given = 0

    def reply(seen: Seen) -> Reply:
        nonlocal given
        if seen.path == "/token":
            given += 1
            return 200, {}, {"access_token": f"t0ken-{given}", "expires_in": lifetime}
        return (401 if int(seen.headers["authorization"][-1]) <= refuse else 200), {}, {}

    server.reply = reply
    bench.secrets = {"I": "client-7", "S": "client-s3cr3t"}
    return {
        "auth": {
            "oauth2": {
                "token_url": f"{server.url}/token",
                "client_id": {"env": "I"},
                "client_secret": {"env": "S"},
                "scope": "crm.write",
            }
        }
    }


def test_one_token_is_fetched_and_used_for_all_requests(bench: Bench, server: WebServer) -> None:
    bench.see('http.get("/a")', 'http.get("/b")', **oauth(bench, server))
    token, *rest = server.seen
    assert (token.path, token.body, token.headers["authorization"]) == (
        "/token",
        b"grant_type=client_credentials&scope=crm.write",
        "Basic " + base64.b64encode(b"client-7:client-s3cr3t").decode(),
    )
    assert [(s.path, s.headers["authorization"]) for s in rest] == [("/a", "Bearer t0ken-1"), ("/b", "Bearer t0ken-1")]


def test_a_token_that_expired_is_fetched_anew(bench: Bench, server: WebServer) -> None:
    bench.see('http.get("/a")', "sleep(1.1)", 'http.get("/b")', **oauth(bench, server, lifetime="1"))
    assert [s.headers["authorization"] for s in server.seen if s.path != "/token"] == [
        "Bearer t0ken-1",
        "Bearer t0ken-2",
    ]


def test_a_refused_token_is_renewed_once_and_that_is_no_retry(bench: Bench, server: WebServer) -> None:
    assert bench.see('show(http.get("/a", retry=0).status_code)', **oauth(bench, server, refuse=1)) == [200]
    assert server.lines() == ["POST /token", "GET /a", "POST /token", "GET /a"]


def test_a_second_401_is_an_answer(bench: Bench, server: WebServer) -> None:
    assert bench.see('show(http.get("/a").status_code)', **oauth(bench, server, refuse=9)) == [401]
    assert server.lines() == ["POST /token", "GET /a"] * 2


def test_threads_share_one_token(bench: Bench, server: WebServer) -> None:
    bench.lib(returning('{key(r): "ok" if http.get("/a").ok else "error: no" for r in rows}'), **oauth(bench, server))
    push, context = bench.load(), bench.context
    threads = [threading.Thread(target=push.push, args=(PushCall([row(n)]), context)) for n in range(6)]
    run(threads)
    assert server.lines().count("POST /token") == 1 and len(server.seen) == 7


def test_a_token_that_cannot_be_had_fails_the_call_without_showing_the_secret(bench: Bench, server: WebServer) -> None:
    api = oauth(bench, server)
    server.reply = lambda _: (400, {}, {"error": "client-s3cr3t is wrong"})
    result = bench.push(returning('http.get("/a")'), **api)
    assert result.outcomes[0].message == (
        f'no token from {server.url}/token: it answered 400 {{"error": "*** is wrong"}} (lib/crm.star line 7, in push)'
    )


# answers


def test_an_answer_has_its_parts(bench: Bench, server: WebServer) -> None:
    server.answers((201, {"X-Id": "r-1", "X-More": "a\nb"}, {"big": 12345678901234567890123, "x": [1.0, None]}))
    (ok, status, body, headers) = bench.see(
        'r = http.get("/a")', "show(r.ok); show(r.status_code); show(r.json); show(r.headers)"
    )
    assert (ok, status, repr(body)) == (True, 201, "{'big': 12345678901234567890123, 'x': [1.0, None]}")
    assert (headers["x-id"], headers["x-more"]) == ("r-1", "a, b")


def test_a_compressed_answer_and_another_charset_are_read(bench: Bench, server: WebServer) -> None:
    server.answers(
        (
            200,
            {"Content-Encoding": "gzip", "Content-Type": "text/plain; charset=latin-1"},
            gzip.compress("é".encode("latin-1")),
        )
    )
    assert bench.see('show(http.get("/a").text)') == ["é"]


# retries


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
    server.reply = slowly(2)
    result = bench.push(returning('http.get("/a", timeout=0.3)'))
    assert "no answer within 0.3 s" in (result.outcomes[0].message or "") and result.http_seconds < 1


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


# redirects


def test_get_follows_redirects_and_other_methods_do_not(bench: Bench, server: WebServer) -> None:
    server.reply = lambda seen: (302, {"Location": "b"}, b"") if seen.path == "/v/a" else (200, {}, {"at": seen.path})
    assert bench.see('show(http.get("/v/a").json); show([http.post("/v/a").ok, http.post("/v/a").status_code])') == [
        {"at": "/v/b"},
        [False, 302],
    ]


def test_the_sixth_redirect_is_an_answer(bench: Bench, server: WebServer) -> None:
    server.reply = lambda seen: (307, {"Location": f"/{int(seen.path[1:]) + 1}"}, b"")
    assert bench.see('show(http.get("/0").status_code)') == [307]
    assert server.lines() == [f"GET /{n}" for n in range(6)]


def test_a_redirect_that_names_no_address_is_an_answer(bench: Bench, server: WebServer) -> None:
    server.answers((302, {"Location": "http://[x/"}, b"moved"))
    assert bench.see('r = http.get("/a")', "show([r.status_code, r.text])") == [[302, "moved"]]


# what is kept of a request


def test_a_request_is_kept_with_its_rows_and_without_secrets(bench: Bench, server: WebServer) -> None:
    bench.secrets = {"K": "s3cr3t-value"}
    server.answers((422, {"X-Echo": "s3cr3t-value", "Set-Cookie": "a=b"}, b"you sent s3cr3t-value"))
    result = bench.push(
        returning('{key(r): "ok" if http.post("/a?k=s3cr3t-value", json=env.get("K"), row=[r]) else "" for r in rows}'),
        [ROWS[0]],
        auth={"env": "K"},
        call={"batch_number": 7},
    )
    (call,) = result.calls
    assert (
        call.batch_number,
        call.attempt,
        call.method,
        call.url,
        call.request_body,
        call.status,
        call.response_text,
        call.rows,
    ) == (7, 1, "POST", f"{server.url}/a?k=***", '"***"', 422, "you sent ***", ("1:insert",))
    assert (
        call.request_headers["Authorization"]
        == call.response_headers["x-echo"]
        == call.response_headers["set-cookie"]
        == "***"
    )
    assert call.started_at <= call.ended_at and call.started_at.tzinfo is UTC


def test_bodies_are_cut_at_64_kib_and_a_secret_on_the_edge_leaves_nothing(bench: Bench, server: WebServer) -> None:
    bench.secrets = {"K": "s3cr3t-value"}
    server.answers((200, {}, "é".encode() * 100_000))
    result = bench.push(
        returning(
            '{key(r): "ok" if http.post("/a", body="x" * 65530 + env.get("K") + "y" * 99) else "" for r in rows}'
        ),
        [ROWS[0]],
    )
    (call,) = result.calls
    assert call.request_body == "x" * 65530 + "***" + "y" * 3 and len(call.response_text.encode()) == 65536


def test_api_calls_off_keeps_nothing(bench: Bench) -> None:
    assert (
        list(bench.push(returning('{key(r): "ok" if http.get("/a") else "" for r in rows}'), api_calls="off").calls)
        == []
    )


# limits


def test_a_rate_limit_counts_requests_and_their_retries(bench: Bench, server: WebServer) -> None:
    server.answers((503, {}, b""), (503, {}, b""), (200, {}, b""))
    result = bench.push(
        returning('{key(r): "ok" if http.get("/a").ok else "" for r in rows}'),
        retry=2,
        backoff=0,
        rate_limit={"requests": 2, "per": "500ms"},
    )
    sent = [
        call.started_at.timestamp() for call in result.calls
    ]  # a busy machine may see the first of two late over there, and then they seem close
    assert len(server.seen) == 5 and [call.attempt for call in result.calls] == [1, 2, 3, 1, 1]
    assert all(b - a >= 0.5 for a, b in zip(sent, sent[2:], strict=False)) and sent[4] - sent[0] < 5


def test_a_pause_for_ever_is_cut_and_the_log_says_so(bench: Bench, server: WebServer) -> None:
    server.answers((429, {"Retry-After": "9e15"}, b""))
    bench.cancelled = lambda: bool(server.seen)
    result = bench.push(returning('{key(r): "ok" if http.get("/a", retry=1) else "" for r in rows}'))
    assert result.prints == ["status 429 with Retry-After '9e15': waits 1 h, the longest pause"]


def test_a_429_with_retry_after_pauses_the_whole_budget(bench: Bench, server: WebServer) -> None:
    server.answers((429, {"Retry-After": "1"}, b""), (200, {}, b""))
    bench.see('http.get("/a", retry=0)', 'http.get("/b")', rate_limit={"requests": 100, "per": "1s"})
    assert gaps(server)[0] >= 0.95


def test_waiting_for_the_rate_limit_ends_with_a_cancel(bench: Bench, server: WebServer) -> None:
    bench.cancelled = lambda: bool(server.seen)
    assert (
        seconds(
            lambda: bench.push(returning('[http.get("/a"), http.get("/b")]'), rate_limit={"requests": 1, "per": "1h"})
        )
        < 3
    )


def test_a_cancel_before_any_request_raises(bench: Bench) -> None:
    bench.cancelled = lambda: True
    with pytest.raises(Cancelled):
        bench.push(returning("sleep(5)"))
    assert (
        outcomes(bench_result := bench.push(returning('{key(r): "ok" for r in rows}'))) == [("ok", None, True)] * 3
        and not bench_result.calls
    )
