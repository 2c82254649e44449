"""Answers as they come: packed, labelled wrongly, without end."""

from __future__ import annotations

import gzip
import socket
import threading
import tracemalloc
import zlib
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from push_bench import ROWS, Bench, outcomes, returning
from web_server import WebServer

from runtime.push.http import answers

TEXT = '{"name": "Zoë"}'
BODY = TEXT.encode()
PACKED = gzip.compress(BODY, mtime=0)
ASKING = returning('{key(r): "ok" if http.get("/a").ok else "" for r in rows}')


def raw_deflate(body: bytes) -> bytes:
    packer = zlib.compressobj(wbits=-zlib.MAX_WBITS)
    return packer.compress(body) + packer.flush()


@pytest.mark.parametrize(
    "packing, body",
    [
        ("gzip", PACKED),
        ("x-gzip", PACKED),
        ("GZIP", gzip.compress(BODY[:5], mtime=0) + gzip.compress(BODY[5:], mtime=0)),
        ("gzip", PACKED + b"\0\0\0"),
        ("deflate", zlib.compress(BODY)),
        ("deflate", raw_deflate(BODY)),
        ("deflate, gzip", gzip.compress(zlib.compress(BODY), mtime=0)),
        ("identity", BODY),
        # what says that it is packed, and is not as it says
        ("gzip", BODY),
        ("deflate", BODY),
        ("br", BODY),
        ("gzip, gzip, gzip, gzip", BODY),
    ],
)
def test_a_packed_answer_is_unpacked_and_any_other_read_as_it_stands(
    bench: Bench, server: WebServer, packing: str, body: bytes
) -> None:
    server.answers((200, {"Content-Encoding": packing}, body))
    assert bench.see('r = http.get("/a")', "show([r.text, r.json])") == [[TEXT, {"name": "Zoë"}]]


def test_only_what_can_be_unpacked_is_announced(bench: Bench, server: WebServer) -> None:
    bench.see('http.get("/a")', 'http.get("/a", headers={"Accept-Encoding": "identity"})')
    assert [s.headers["accept-encoding"] for s in server.seen] == ["gzip, deflate", "identity"]


@pytest.mark.parametrize(
    "headers, body, remark",
    [
        ({"Content-Encoding": "gzip"}, BODY, "it says 'gzip' and is not packed like that: read as it stands"),
        ({"Content-Encoding": "br"}, BODY, "it says 'br', which was not asked for: read as it stands"),
        (
            {"Content-Encoding": "gzip"},
            PACKED[:-9],
            "it says 'gzip' and ends before its end: read as far as it goes",
        ),
        (
            {"Content-Type": "application/json; charset=idna"},
            BODY,
            "its charset 'idna' is none that is known: read as UTF-8",
        ),
    ],
)
def test_what_is_not_as_announced_is_said_in_the_log_once_a_call(
    bench: Bench, server: WebServer, headers: dict[str, str], body: bytes, remark: str
) -> None:
    server.answers((200, headers, body))
    for _ in range(2):
        assert bench.push(ASKING).prints == [f"the answer to GET /a: {remark}"]


@pytest.mark.parametrize(
    "charset", ["idna", "undefined", "utf-7", "unicode_escape", "punycode", "base64", "rot13", "mbcs", "\x00", "é", ""]
)
def test_a_charset_that_is_none_is_read_as_utf_8(bench: Bench, server: WebServer, charset: str) -> None:
    text = answers.decoded(BODY + b"\xff", f"text/plain; charset={charset}")[0]
    assert text == TEXT + "\ufffd"


@pytest.mark.parametrize("charset", ["latin-1", "ISO-8859-15", "windows-1252", "utf-16", "Shift_JIS", '"gb18030"'])
def test_known_charsets_are_read(charset: str) -> None:
    assert answers.decoded("A é".encode(charset.strip('"'), "replace"), f"text/plain;Charset={charset}")[0] in (
        "A é",
        "A ?",
    )


def test_no_answer_has_a_text_that_cannot_be_read() -> None:
    import encodings.aliases

    for charset in {*encodings.aliases.aliases, *encodings.aliases.aliases.values()}:
        answers.decoded(bytes(range(256)) * 3, f"text/plain; charset={charset}")


@contextmanager
def pouring(head: bytes, piece: bytes) -> Iterator[str]:
    """A server that says this head and then the piece without end."""
    listening = socket.create_server(("127.0.0.1", 0))

    def serve() -> None:
        while True:
            try:
                connection, _ = listening.accept()
            except OSError:
                return
            try:
                connection.recv(65536)
                connection.sendall(head)
                while piece:
                    connection.sendall(piece)
            except OSError:
                pass
            connection.close()

    threading.Thread(target=serve, daemon=True).start()
    yield f"http://127.0.0.1:{listening.getsockname()[1]}"
    listening.close()


CHUNK = b"10000\r\n" + b"x" * 65536 + b"\r\n"


@pytest.mark.parametrize(
    "head, piece, told",
    [
        (b"HTTP/1.1 200 OK\r\n\r\n", b"x" * 65536, "answer over 50 MB"),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", CHUNK, "answer over 50 MB"),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 99999999999\r\n\r\n", b"x", "answer over 50 MB"),
        (b"HTTP/1.1 200 OK\r\n", b"X-A: " + b"x" * 1000 + b"\r\n", "response headers"),
        (b"", b"HTTP/1.1 100 Continue\r\nX-A: " + b"x" * 1000 + b"\r\n\r\n", "response headers"),
    ],
)
def test_an_answer_without_end_ends_in_an_error_and_is_not_asked_for_again(
    bench: Bench, head: bytes, piece: bytes, told: str
) -> None:
    with pouring(head, piece) as bench.base_url:
        result = bench.push(ASKING, [ROWS[0]], timeout=20, retry=1, backoff=0)
    ((kind, message, known),) = outcomes(result)
    assert (kind, known, told in str(message)) == ("error", False, True), message
    assert len(result.calls) == (1 if "over" in told else 2)


def test_a_small_answer_that_unpacks_to_much_ends_in_an_error_and_little_memory(
    bench: Bench, server: WebServer
) -> None:
    packer = zlib.compressobj(9, wbits=16 + zlib.MAX_WBITS)
    zeros = bytes(10_000_000)
    bomb = b"".join(packer.compress(zeros) for _ in range(80)) + packer.flush()
    server.answers((200, {"Content-Encoding": "gzip"}, bomb))
    bench.push(ASKING, [ROWS[0]])
    tracemalloc.start()
    result = bench.push(ASKING, [ROWS[0]])
    most = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert f"GET {server.url}/a: answer over 50 MB" in str(result.outcomes[0].message)
    assert most < 250_000_000


def test_a_call_keeps_only_the_beginning_of_large_answers_once_they_are_many(bench: Bench, server: WebServer) -> None:
    server.answers((200, {}, b"x" * 30_000_000))
    result = bench.push(returning('{key(r): "ok" if http.get("/a").ok else "" for r in rows}'))
    assert [len(raw[5].body) for raw in result.calls._raw] == [30_000_000, 30_000_000, 131_072]
    assert {len(call.response_text) for call in result.calls} == {65_536}
