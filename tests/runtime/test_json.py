"""JSON of push functions: what they send, what they read, how deeply it may be nested."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
from push_bench import ROWS, Bench, returning, row
from web_server import WebServer


def test_any_text_passes_unchanged_both_ways(bench: Bench, server: WebServer) -> None:
    texts = ["", "self", "a\nb\r\n", "\x00\x7f", "é\u2028😀", '"\\', "x" * 3_000]
    server.reply = lambda seen: (200, {"Content-Type": "application/json"}, seen.body)
    found = bench.see(
        f"for t in {texts!r}:",
        '    r = http.post("/é/a b", json={"t": t})',
        "    show([r.json, json.decode(r.text)])",
        '    http.post("/with", json={"t": t}, headers={"X-A": "b"}, row=rows[0])',
    )
    assert found == [[{"t": t}, {"t": t}] for t in texts]
    assert [json.loads(s.body) for s in server.seen] == [{"t": t} for t in texts for _ in range(2)]
    assert {s.path for s in server.seen} == {"/%C3%A9/a%20b", "/with"}


def test_json_that_starlark_writes_otherwise_is_still_json(bench: Bench, server: WebServer) -> None:
    bench.see('http.post("/a", json={1: [float("inf"), 1.0, 10000000000000000000000000]})')
    assert server.seen[0].body == b'{"1":[null,1.0,10000000000000000000000000]}'


@pytest.mark.parametrize(
    "body, value",
    [
        (b"<p>no</p>", None),
        (b"", None),
        (b"NaN", None),
        (b'{"a": 1', None),
        (b"9007199254740993", 9007199254740993),
        (b'"\xff"', "\ufffd"),
        (b'{"z":1,"a":2}', {"z": 1, "a": 2}),
        (b'\xef\xbb\xbf{"a": 1}', {"a": 1}),
        ('\ufeff{"a": "é"}'.encode("utf-16-le"), {"a": "é"}),
        (rb'{"name": "hi \ud83d", "id": 7}', {"name": "hi \ufffd", "id": 7}),
        (rb'["\ude00\ud83d", "\ud83d\ude00", "\\ud83d"]', ["\ufffd\ufffd", "😀", r"\ud83d"]),
        (rb'{"\ud83d": 12345678901234567890}', {"\ufffd": 12345678901234567890}),
        (b"[1e400, -1e400, 1]", [None, None, 1]),
        (b"[1" + b"0" * 5000 + b", 2]", [None, 2]),
    ],
)
def test_json_is_the_parsed_body_or_none(bench: Bench, server: WebServer, body: bytes, value: Any) -> None:
    server.answers((200, {}, body))
    assert bench.see('show(http.get("/a").json)') == [value]


@pytest.mark.parametrize("text, value", [("\ufeff[1]", [1]), (r'{"a": "\ud83d"}', {"a": "\ufffd"})])
def test_a_column_of_json_is_read_like_an_answer(bench: Bench, text: str, value: Any) -> None:
    assert bench.see('show(json.decode(rows[0]["doc"]))', rows=[row(1, doc=text)]) == [value]


def test_a_replaced_half_of_a_character_is_said_in_the_log(bench: Bench, server: WebServer) -> None:
    server.answers((200, {}, rb'{"a": "\ud83d"}'))
    body = returning('{key(r): "ok" if http.get("/a").json and json.decode("\\"\\\\udc00\\"") else "" for r in rows}')
    told = r"half of a character (\ud800 to \udfff) was replaced by U+FFFD"
    assert bench.push(body).prints == [f"the answer to GET /a: {told}", f"json.decode: {told}"]


def test_json_that_is_nested_too_deeply_is_no_json(bench: Bench, server: WebServer) -> None:
    deep = {n: b'{"a":' * n + b"[]" + b"}" * n for n in (90, 110, 900)}
    server.answers(*((200, {}, body) for body in deep.values()))
    assert bench.see(*['show(http.get("/a").json != None)'] * 3) == [True, False, False]
    with pytest.raises(Exception, match="nested more than 100 levels deep"):
        bench.see(f"json.decode({deep[900].decode()!r})")
    assert bench.see(f"show(json.decode({deep[900].decode()!r}, 7))") == [7]


def nested(levels: int, around: str, within: str = "[]") -> list[str]:
    return [f"x = {within}", f"for _ in range({levels - 1}):", f"    x = {around}"]


@pytest.mark.parametrize("around", ["[x]", "(x,)", '{"a": x}', "struct(a=x)", "{1: 2, 3: [x][0]}"])
def test_what_is_nested_too_deeply_for_json_ends_the_call_and_not_the_process(
    bench: Bench, server: WebServer, around: str
) -> None:
    most = bench.see(
        *nested(200, around),
        "show(json.encode(x))",
        'http.post("/a", json=x)',
        'http.put("/a", json=x, headers={"X-A": "b"})',
    )[0]
    assert [s.body.decode() for s in server.seen] == [most] * 2 and sum(map(most.count, "[{")) == 200
    for levels in (201, 100_000):
        for use in (
            "json.encode(x)",
            'http.post("/a", json=x)',
            'http.put("/a", json=x, headers={"X-A": "b"})',
            'json.encode({"a": [1, (2, x)]})',
        ):
            result = bench.push(
                "def push(rows):\n" + "".join(f"    {line}\n" for line in [*nested(levels, around), use]), [ROWS[0]]
            )
            assert result.outcomes[0].message == (
                "this is nested more than 200 levels deep, too deeply for JSON (lib/crm.star line 6, in push)"
            ), (levels, use)
            assert (result.outcomes[0].kind, result.outcomes[0].known) == ("error", False)
    assert len(server.seen) == 2


@pytest.mark.parametrize("use", ["print(x)", 'http.post("/a", params={"a": x})', 'return {"1:insert": x}', "x == [x]"])
def test_what_is_nested_too_deeply_for_another_use_ends_the_call_and_not_the_process(bench: Bench, use: str) -> None:
    result = bench.push("def push(rows):\n" + "".join(f"    {line}\n" for line in [*nested(100_000, "[x]"), use]))
    assert re.search("Maximum depth of 1000|Too many recursion levels", result.outcomes[0].message or "")


def test_ten_megabytes_arrive_whole(bench: Bench, server: WebServer) -> None:
    server.answers((200, {}, b'"' + b"x" * 10_000_000 + b'"'))
    assert bench.see('show(len(http.get("/a").json))') == [10_000_000]
