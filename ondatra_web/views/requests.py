"""Requests and answers as a page shows them: bodies one thing a line, headers as lines, each request as cURL."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

from ondatra_web.views.shown import cut
from runtime.records import exact

#: Characters of a request or an answer on the page; the file has up to 64 KiB of it.
MOST_OF_A_BODY = 8_000
#: Headers that every HTTP client makes itself.
_OWN = {"host", "content-length", "connection", "accept-encoding", "user-agent", "transfer-encoding"}


def shown(call: dict[str, Any]) -> dict[str, Any]:
    """Secrets are gone from it since it was recorded."""
    sent, answered = _headers(call["request_headers"]), _headers(call["response_headers"])
    return {
        **call,
        "request_body": _pretty(call["request_body"]),
        "response_text": _pretty(call["response_text"]),
        "ms": round((call["ended_at"] - call["started_at"]).total_seconds() * 1000),
        "sent_headers": _lines(sent),
        "answer_headers": _lines(answered),
        "curl": curl(call["method"], call["url"], sent, call["request_body"]),
    }


def curl(method: str, url: str, headers: Mapping[str, str], body: str | None) -> str:
    """The request as a command of a shell. What was removed as a secret stands there as it was recorded."""
    parts = [f"curl -X {shlex.quote(method)} {shlex.quote(url)}"]
    parts += [f"-H {shlex.quote(f'{name}: {value}')}" for name, value in headers.items() if name.lower() not in _OWN]
    if body:
        parts.append(f"--data-raw {shlex.quote(body)}")
    return " \\\n  ".join(parts)


def _headers(text: str | None) -> dict[str, str]:
    with suppress(ValueError):
        told = exact.loads(text or "{}")
        return {str(name): str(value) for name, value in told.items()} if isinstance(told, dict) else {}
    return {}


def _lines(headers: Mapping[str, str]) -> str:
    return "\n".join(f"{name}: {value}" for name, value in headers.items())


def _pretty(text: str | None) -> str:
    """A body as it is, or one thing a line where it is JSON."""
    with suppress(ValueError):
        text = exact.dumps(exact.loads(text or ""))
    return cut(text or "", MOST_OF_A_BODY)
