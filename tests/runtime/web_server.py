"""A small recording HTTP server for the tests of the push layer; it answers what each test tells it."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qsl, urlsplit


@dataclass(frozen=True)
class Seen:
    method: str
    target: str
    headers: dict[str, str]
    body: bytes
    at: float

    @property
    def path(self) -> str:
        return urlsplit(self.target).path

    @property
    def query(self) -> list[tuple[str, str]]:
        return parse_qsl(urlsplit(self.target).query)

    @property
    def json(self) -> Any:
        return json.loads(self.body)


#: status, headers, body (bytes, or a value that is sent as JSON)
Reply = tuple[int, dict[str, str], Any]


class WebServer:
    """`reply` is called for each request; without one it is 200 {}."""

    def __init__(self) -> None:
        self.seen: list[Seen] = []
        self.reply: Callable[[Seen], Reply] = lambda _: (200, {}, {})
        outer = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            disable_nagle_algorithm = True

            def log_message(self, *_: Any) -> None:
                pass

            def handle_one(self) -> None:
                body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
                seen = Seen(
                    self.command, self.path, {k.lower(): v for k, v in self.headers.items()}, body, time.monotonic()
                )
                outer.seen.append(seen)
                status, headers, content = outer.reply(seen)
                content = content if isinstance(content, bytes) else json.dumps(content).encode()
                try:
                    self.send_response(status)
                    for name, value in {"Content-Type": "application/json", **headers}.items():
                        for one in value.split("\n"):
                            self.send_header(name, one)
                    if "Content-Length" not in headers:
                        self.send_header("Content-Length", str(len(content)))
                    self.end_headers()
                    self.wfile.write(content)
                    self.close_connection = "Content-Length" in headers
                except OSError:
                    self.close_connection = True

            do_GET = do_POST = do_PUT = do_PATCH = do_DELETE = handle_one

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self.server.server_address[1]}"
        threading.Thread(target=self.server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True).start()

    def lines(self) -> list[str]:
        return [f"{s.method} {s.path}" for s in self.seen]

    def answers(self, *replies: Reply) -> None:
        """These in order, the last one for ever."""
        left = list(replies)
        self.reply = lambda _: left.pop(0) if len(left) > 1 else left[0]

    def close(self) -> None:
        self.server.shutdown()
        self.server.server_close()


@contextmanager
def web_server() -> Iterator[WebServer]:
    server = WebServer()
    try:
        yield server
    finally:
        server.close()


def slowly(pause: float) -> Callable[[Seen], Reply]:
    """Answers with the body it was sent, after a while."""

    def reply(seen: Seen) -> Reply:
        time.sleep(pause)
        return 200, {}, seen.body or b"{}"

    return reply


def gaps(server: WebServer) -> list[float]:
    """Seconds between one request and the next."""
    return [b.at - a.at for a, b in zip(server.seen, server.seen[1:], strict=False)]
