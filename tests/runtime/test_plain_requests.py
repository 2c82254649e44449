"""Requests without options take a shorter way from the second one of a call on: what holds for the first holds for
them."""

from __future__ import annotations

import time

import pytest
from push_bench import ROWS, Bench, outcomes, returning, row
from web_server import Seen, WebServer, slowly

from runtime.errors import Cancelled
from runtime.push import starlark

#: One request before the one that is meant.
AFTER_ANOTHER = 'http.get("/first")', 'http.post("/first", json=0)'


def told(server: WebServer, path: str, *replies: tuple[int, dict[str, str], object]) -> None:
    """Requests of that path get these in order, the last one for ever; others 200."""
    left = list(replies)
    server.reply = lambda seen: (left.pop(0) if len(left) > 1 else left[0]) if seen.path == path else (200, {}, {})


def test_method_url_headers_and_body_arrive(bench: Bench, server: WebServer) -> None:
    bench.secrets = {"K": "s3cr3t-value"}
    bench.see(
        'for path in ["/a", "/a", "/b c/é", "//d", "/"]:',
        '    http.put(path, json={"x": [path, None]})',
        "    http.delete(path)",
        auth={"env": "K"},
        headers={"X-App": "me"},
    )
    assert [
        (
            s.method,
            s.target,
            s.json if s.body else None,
            s.headers.get("content-type"),
            s.headers["authorization"],
            s.headers["x-app"],
        )
        for s in server.seen
    ] == [
        (method, target, body, kind, "Bearer s3cr3t-value", "me")
        for path, target in [("/a", "/a"), ("/a", "/a"), ("/b c/é", "/b%20c/%C3%A9"), ("//d", "/d"), ("/", "/")]
        for method, body, kind in [("PUT", {"x": [path, None]}, "application/json"), ("DELETE", None, None)]
    ]


def test_numbers_that_json_has_not_are_null(bench: Bench, server: WebServer) -> None:
    bench.see(
        *AFTER_ANOTHER,
        'http.post("/a", json={"inf": [float("inf"), -float("inf")], "nan": float("nan"), "info": "finance"})',
    )
    assert server.seen[-1].json == {"inf": [None, None], "nan": None, "info": "finance"}


def test_a_temporary_status_is_tried_again_and_what_remains_is_an_answer(bench: Bench, server: WebServer) -> None:
    told(server, "/a", (503, {}, b"later"), (200, {}, {"id": 7}), (503, {}, b"later"))
    assert bench.see(
        *AFTER_ANOTHER,
        'show(http.post("/a", json=1).json)',
        'r = http.get("/a")',
        "show([r.ok, r.status_code, r.text])",
        retry=1,
        backoff=0.01,
    ) == [{"id": 7}, [False, 503, "later"]]
    assert server.lines()[2:] == ["POST /a", "POST /a", "GET /a", "GET /a"]


def test_a_redirect_is_followed_for_a_get_only(bench: Bench, server: WebServer) -> None:
    told(server, "/a", (302, {"Location": "/b"}, b""))
    assert bench.see(
        *AFTER_ANOTHER, 'show(http.get("/a").status_code)', 'show(http.post("/a", json=1).status_code)'
    ) == [200, 302]
    assert server.lines()[2:] == ["GET /a", "GET /b", "POST /a"]


def test_no_answer_is_an_error_that_names_the_request(bench: Bench, server: WebServer) -> None:
    told(server, "/a", (200, {"Content-Length": "9"}, b"half"))
    body = '    http.get("/first")\n    http.get("/a")\n    return {}\n'
    (first, *_) = outcomes(bench.push(f"def push(rows):\n{body}", [ROWS[0]], retry=1, backoff=0.01))
    assert (
        first[0] == "error"
        and f"GET {server.url}/a: " in str(first[1])
        and "lib/crm.star line 4, in push" in str(first[1])
    ), first
    assert server.lines() == ["GET /first", "GET /a", "GET /a"]


def test_every_attempt_is_kept_with_its_times_in_order(bench: Bench, server: WebServer) -> None:
    told(server, "/a", (503, {}, b"later"), (200, {}, b"done"))
    before = time.time()
    result = bench.push(
        returning('{key(r): "ok" if http.post("/" + r["path"], json=r["id"]).ok else "" for r in rows}'),
        [row(1, path="first"), row(2, path="a"), row(3, path="b")],
        retry=1,
        backoff=0.01,
    )
    assert [(c.attempt, c.url.removeprefix(server.url), c.request_body, c.status) for c in result.calls] == [
        (1, "/first", "1", 200),
        (1, "/a", "2", 503),
        (2, "/a", "2", 200),
        (1, "/b", "3", 200),
    ]
    times = [moment.timestamp() for c in result.calls for moment in (c.started_at, c.ended_at)]
    assert times == sorted(times) and before - 0.01 <= times[0] and times[-1] <= time.time() + 0.01
    assert result.http_seconds == pytest.approx(
        sum(end - start for start, end in zip(times[::2], times[1::2], strict=True)), abs=0.001
    )


def test_an_error_in_reading_an_answer_names_its_row(bench: Bench, server: WebServer) -> None:
    server.reply = lambda seen: (200, {}, {} if seen.json == 3 else {"id": 1})
    result = bench.push(returning('{key(r): "ok" if http.post("/a", json=r["id"]).json["id"] else "" for r in rows}'))
    assert outcomes(result)[0][0] == "error" and "row 3:insert" in str(result.outcomes[0].message), result.outcomes[0]


def test_waiting_for_answers_does_not_count_as_computing(
    bench: Bench, server: WebServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(starlark, "TIME_LIMIT", 0.5)
    server.reply = slowly(0.3)
    assert bench.see(
        "for i in range(4):", '    show(http.post("/a", json=i).json)', "    for j in range(100000):", "        pass"
    ) == [0, 1, 2, 3]


def test_a_cancelled_run_ends_between_two_requests(bench: Bench, server: WebServer) -> None:
    def reply(seen: Seen) -> tuple[int, dict[str, str], object]:
        time.sleep(0.05)
        return 200, {}, {}

    server.reply = reply
    bench.cancelled = lambda: len(server.seen) > 10
    result = bench.push(returning('{key(r): "ok" if [http.get("/a") for i in range(200)] else "" for r in rows}'))
    assert {o.message for o in result.outcomes} == {"the run was cancelled before push() had answered"} and len(
        server.seen
    ) < 40
    with pytest.raises(Cancelled):  # nothing was sent yet
        bench.push(returning('{key(r): "ok" if http.get("/a") else "" for r in rows}'))


def test_a_rate_limit_counts_them(bench: Bench, server: WebServer) -> None:
    bench.see("for i in range(5):", '    http.get("/a")', rate_limit={"requests": 2, "per": "500ms"})
    assert len(server.seen) == 5 and all(b.at - a.at > 0.45 for a, b in zip(server.seen, server.seen[2:], strict=False))
