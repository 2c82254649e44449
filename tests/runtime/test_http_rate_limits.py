"""Rate limits of push functions' requests."""

from __future__ import annotations

from push_bench import Bench, returning, seconds
from web_server import WebServer, gaps


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
