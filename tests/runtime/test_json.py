"""JSON of push functions: what they send, what they read, how deeply it may be nested."""
from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from push_bench import Bench
from web_server import WebServer, web_server

from runtime.supervise import side_by_side


@pytest.fixture
def server() -> Iterator[WebServer]:
    with web_server() as made:
        yield made


@pytest.fixture
def bench(tmp_path: Path, server: WebServer) -> Bench:
    return Bench(tmp_path, server.url)


def test_any_text_passes_unchanged_both_ways(bench: Bench, server: WebServer) -> None:
    texts = ["", "self", "a\nb\r\n", "\x00\x7f", "é\u2028😀", '"\\', "x" * 3_000]
    server.reply = lambda seen: (200, {"Content-Type": "application/json"}, seen.body)
    found = bench.see(f"for t in {texts!r}:", '    r = http.post("/é/a b", json={"t": t})', "    show([r.json, json.decode(r.text)])",
                      '    http.post("/with", json={"t": t}, headers={"X-A": "b"}, row=rows[0])')
    assert found == [[{"t": t}, {"t": t}] for t in texts]
    assert [json.loads(s.body) for s in server.seen] == [{"t": t} for t in texts for _ in range(2)]
    assert {s.path for s in server.seen} == {"/%C3%A9/a%20b", "/with"}


def test_json_that_starlark_writes_otherwise_is_still_json(bench: Bench, server: WebServer) -> None:
    bench.see('http.post("/a", json={1: [float("inf"), 1.0, 10000000000000000000000000]})')
    assert server.seen[0].body == b'{"1":[null,1.0,10000000000000000000000000]}'


@pytest.mark.parametrize("body, value", [(b"<p>no</p>", None), (b"", None), (b"NaN", None), (b'{"a": 1', None), (b"9007199254740993", 9007199254740993),
                                         (b'"\xff"', "\ufffd"), (b'{"z":1,"a":2}', {"z": 1, "a": 2})])
def test_json_is_the_parsed_body_or_none(bench: Bench, server: WebServer, body: bytes, value: Any) -> None:
    server.answers((200, {}, body))
    assert bench.see('show(http.get("/a").json)') == [value]


def test_json_that_is_nested_too_deeply_is_no_json(bench: Bench, server: WebServer) -> None:
    deep = {n: b'{"a":' * n + b"[]" + b"}" * n for n in (90, 110, 900)}
    server.answers(*((200, {}, body) for body in deep.values()))
    assert bench.see(*['show(http.get("/a").json != None)'] * 3) == [True, False, False]
    with pytest.raises(Exception, match="nested more than 100 levels deep"):
        bench.see(f"json.decode({deep[900].decode()!r})")
    assert bench.see(f"show(json.decode({deep[900].decode()!r}, 7))") == [7]


def test_what_a_push_function_nests_deeply_does_not_end_the_process(bench: Bench, server: WebServer) -> None:
    found: list[Any] = []
    side_by_side(1, iter([lambda: found.extend(bench.see("x = []", "for i in range(500):", "    x = [x]", "show(len(json.encode(x)))"))]), ends=lambda: None)
    assert found == [1002]


def test_ten_megabytes_arrive_whole(bench: Bench, server: WebServer) -> None:
    server.answers((200, {}, b'"' + b"x" * 10_000_000 + b'"'))
    assert bench.see('show(len(http.get("/a").json))') == [10_000_000]
