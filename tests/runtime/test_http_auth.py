"""Auth of push functions' requests: where it belongs, where it goes, tokens."""

from __future__ import annotations

import base64
import hashlib
import hmac
import threading

import pytest
from oauth_server import oauth
from push_bench import Bench, returning, row, run
from web_server import WebServer, web_server

from runtime.push.call import PushCall
from runtime.push.http.addresses import same_host


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
