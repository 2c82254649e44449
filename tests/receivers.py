"""Where messages arrive in tests: a mail server and a receiver of webhooks, both real, each on a port of its own."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from email import message_from_bytes, policy
from email.message import EmailMessage
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any

from aiosmtpd.controller import Controller
from aiosmtpd.smtp import AuthResult, LoginPassword
from services import free_port


class Mailbox:
    """What the server took; `refuses` is what it answers to the next messages instead, `asks` counts them."""

    def __init__(self) -> None:
        self.mails: list[EmailMessage] = []
        self.refuses: list[str] = []
        self.asks = 0
        self.logins: list[tuple[str, str]] = []

    async def handle_DATA(self, server: Any, session: Any, envelope: Any) -> str:
        self.asks += 1
        if self.refuses:
            return self.refuses.pop(0)
        self.mails.append(message_from_bytes(envelope.content, policy=policy.default))  # type: ignore[arg-type]
        return "250 taken"

    def log_in(self, _server: Any, _session: Any, _envelope: Any, _how: str, data: Any) -> AuthResult:
        assert isinstance(data, LoginPassword)
        self.logins.append((data.login.decode(), data.password.decode()))
        return AuthResult(success=data.password == b"right", handled=False)


@contextmanager
def mail_server(settings: Any) -> Iterator[Mailbox]:
    """A mail server that knows one password, with Django's settings for it."""
    with mailbox() as (box, port):
        settings.EMAIL_BACKEND = "django.core.mail.backends.smtp.EmailBackend"
        settings.EMAIL_HOST, settings.EMAIL_PORT = "127.0.0.1", port
        settings.EMAIL_HOST_USER, settings.EMAIL_HOST_PASSWORD = "ondatra", "right"
        yield box


@contextmanager
def mailbox() -> Iterator[tuple[Mailbox, int]]:
    """The same, and its port."""
    box = Mailbox()
    told = {"authenticator": box.log_in, "auth_require_tls": False, "auth_exclude_mechanism": ["CRAM-MD5"]}
    server = Controller(box, hostname="127.0.0.1", port=free_port(), **told)
    server.start()
    try:
        yield box, server.port
    finally:
        server.stop()


@dataclass
class Receiver:
    """An HTTP server that keeps what it is sent. `answers` are the next ones; after them it says 200."""

    url: str = ""
    requests: list[tuple[str, dict[str, str], bytes]] = field(default_factory=list)
    answers: list[tuple[int, dict[str, str], str]] = field(default_factory=list)

    @property
    def bodies(self) -> list[Any]:
        return [json.loads(body) for _, _, body in self.requests]


@contextmanager
def receiver() -> Iterator[Receiver]:
    kept = Receiver()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            kept.requests.append((self.path, {k.lower(): v for k, v in self.headers.items()}, body))
            status, headers, text = kept.answers.pop(0) if kept.answers else (200, {}, "ok")
            self.send_response(status)
            for name, value in {**headers, "Content-Length": str(len(text))}.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(text.encode())

        def log_message(self, *_: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    kept.url = f"http://127.0.0.1:{server.server_port}"
    Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield kept
    finally:
        server.shutdown()
        server.server_close()
