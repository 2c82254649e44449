"""The HTTP client of push functions, against a real server on this machine."""

from __future__ import annotations

import gzip
from datetime import UTC

import pytest
from push_bench import ROWS, Bench, outcomes, returning
from web_server import Reply, WebServer

from runtime.errors import Cancelled
from runtime.push.call import PushCall
from runtime.push.http.addresses import join_url


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


def test_a_cancel_before_any_request_raises(bench: Bench) -> None:
    bench.cancelled = lambda: True
    with pytest.raises(Cancelled):
        bench.push(returning("sleep(5)"))
    assert (
        outcomes(bench_result := bench.push(returning('{key(r): "ok" for r in rows}'))) == [("ok", None, True)] * 3
        and not bench_result.calls
    )
