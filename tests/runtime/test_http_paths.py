"""A path arrives as it was written, or not at all."""

from __future__ import annotations

import pytest
from push_bench import ROWS, Bench, outcomes, returning
from web_server import WebServer


@pytest.mark.parametrize(
    "identifier, target",
    [(".", "/contacts/%2E"), ("..", "/contacts/%2E%2E"), ("../x", "/contacts/..%2Fx"), ("a.b..", "/contacts/a.b..")],
)
def test_any_identifier_that_is_quoted_reaches_its_own_resource(
    bench: Bench, server: WebServer, identifier: str, target: str
) -> None:
    bench.see(
        f'path = "/contacts/" + url_quote({identifier!r})',
        'http.put(path, json={"a": 1})',
        "http.delete(path)",
        'http.get(path, headers={"X-A": "b"})',
    )
    assert [(s.method, s.target) for s in server.seen] == [(m, target) for m in ("PUT", "DELETE", "GET")]


def test_dots_that_are_not_quoted_stay_as_they_are(bench: Bench, server: WebServer) -> None:
    paths = ["/contacts/.", "/contacts/..", "/a/./b/../c", "/a?x=../..", "/a//b/."]
    bench.see(f"for path in {paths!r}:", "    http.put(path, json=1)", "    http.delete(path, row=rows[0])")
    assert [s.target for s in server.seen] == [path for path in paths for _ in range(2)]


@pytest.mark.parametrize("path", ["/../admin", "..", "/a/../../admin", "/%61/../..", "/./.."])
@pytest.mark.parametrize("more", ["", ", row=rows[0]"])
def test_a_path_that_leads_out_of_base_url_is_refused(bench: Bench, server: WebServer, path: str, more: str) -> None:
    bench.base_url = f"{server.url}/v2/"
    result = bench.push(returning(f'{{key(r): "ok" for r in rows if http.delete("{path}"{more})}}'), [ROWS[0]])
    assert f"the URL {path!r} leads out of base_url {server.url}/v2/" in str(result.outcomes[0].message)
    assert server.seen == []


@pytest.mark.parametrize("path", ["/x\r\nX: 1", "/x\ny", "/x\ty", "/\x00", "/x\x7f", "/é\n"])
@pytest.mark.parametrize("more", ["", ", headers={'X-A': 'b'}"])
def test_a_control_character_in_a_url_is_refused(bench: Bench, server: WebServer, path: str, more: str) -> None:
    text = path.replace("\r", "\\r").replace("\n", "\\n").replace("\t", "\\t").replace("\x00", "\\x00")
    result = bench.push(returning(f'[http.get("/first"), http.post("{text}"{more})]'), [ROWS[0]])
    ((kind, message, _),) = outcomes(result)
    assert kind == "error" and "a URL has no line break and no other control character" in str(message)
    assert server.lines() == ["GET /first"] and "\n" not in str(message)


@pytest.mark.parametrize("name, value", [("X-A", "a\\r\\nX-B: c"), ("X-A", "a\\x00"), ("X-A\\n", "a"), ("X A", "a")])
def test_what_is_more_than_a_header_is_refused(bench: Bench, server: WebServer, name: str, value: str) -> None:
    result = bench.push(returning(f'http.get("/a", headers={{"{name}": "{value}"}})'), [ROWS[0]])
    assert "cannot be sent" in str(result.outcomes[0].message) and server.seen == []
