"""Keeps secrets out of whatever is stored or shown: by value from text, by name from headers."""

from __future__ import annotations

import json
import re
import threading
from base64 import b64encode
from collections.abc import Mapping
from functools import lru_cache
from urllib.parse import quote, quote_plus

HIDDEN = "***"
#: A body is stored up to this many characters.
BODY_LIMIT = 64 * 1024
_SECRET_HEADER = re.compile(r"auth|key|token|secret|signature|^cookie$|^set-cookie$", re.IGNORECASE)


class Redactor:
    """Remembers secret values and removes them, also where they are URL-encoded, JSON-escaped or in Basic's base64."""

    def __init__(self) -> None:
        self._forms: set[str] = set()
        self._pattern: re.Pattern[str] | None = None
        self._longest = 0
        self._lock = threading.Lock()

    def add(self, secret: str) -> None:
        """From now on this value never shows."""
        if not secret or secret in self._forms:
            return
        forms = {
            secret,
            quote(secret, safe=""),
            quote(secret),
            quote_plus(secret),
            json.dumps(secret)[1:-1],
            json.dumps(secret, ensure_ascii=False)[1:-1],
            b64encode(secret.encode()).decode(),
        }
        with self._lock:
            self._forms |= forms
            longest_first = sorted(self._forms, key=len, reverse=True)
            self._longest = len(longest_first[0])
            self._pattern = re.compile("|".join(map(re.escape, longest_first)))

    def add_basic(self, user: str, password: str) -> None:
        """The header that Basic makes of both is as good as the password."""
        self.add(password)
        self.add(b64encode(f"{user}:{password}".encode()).decode())

    def text(self, text: str) -> str:
        return self._pattern.sub(HIDDEN, text) if self._pattern and text else text

    def body(self, text: str) -> str:
        """Cut at 64 KiB, after secrets were removed: a secret across the cut must not leave its first half."""
        if len(text) > BODY_LIMIT:
            text = text[: BODY_LIMIT + self._longest]
        text = self.text(text)[:BODY_LIMIT]
        if len(text) * 4 > BODY_LIMIT and len(data := text.encode("utf-8", "replace")) > BODY_LIMIT:
            text = data[:BODY_LIMIT].decode("utf-8", "ignore")
        return text

    def headers(self, headers: Mapping[str, str]) -> dict[str, str]:
        return {name: HIDDEN if _is_secret(name) else self.text(value) for name, value in headers.items()}


@lru_cache(maxsize=1024)
def _is_secret(header: str) -> bool:
    return bool(_SECRET_HEADER.search(header))
