"""Keeps secrets out of whatever is stored or shown: by value from text, by name from headers."""

from __future__ import annotations

import re
import threading
from base64 import b64encode, urlsafe_b64encode
from collections.abc import Mapping
from functools import lru_cache

from runtime.custody.disguises import may_hold_escapes, readings, unescaped

HIDDEN = "***"
#: A body is stored up to this many characters.
BODY_LIMIT = 64 * 1024
#: A secret that is hidden from logs and errors has so many characters at least.
SHORTEST_SECRET = 6
#: Shorter parts of base64, and bytes of hex, would be found everywhere.
SHORTEST_PART, SHORTEST_HEX = 6, 4
#: Of a longer text in base64 that holds a secret, so much is hidden on either side of it.
AROUND = 400
_SECRET_HEADER = re.compile(r"auth|key|token|secret|signature|^cookie$|^set-cookie$", re.IGNORECASE)
_BEFORE = re.compile(rf"[A-Za-z0-9+/_-]{{0,{AROUND}}}")
_AFTER = re.compile(rf"(?:[A-Za-z0-9+/_-]|%2[bBfF]|\\/){{0,{AROUND}}}(?:=|%3[dD]){{0,2}}")


class Redactor:
    """Remembers secret values and removes them: as they are, escaped (in JSON, URLs, HTML), in hex, and within
    base64. What it learns, `also` learns; values of fewer than `shortest` characters are left out."""

    def __init__(self, also: Redactor | None = None, *, shortest: int = 1) -> None:
        self._also, self._shortest = also, shortest
        self._forms: frozenset[str] = frozenset()
        self._parts: frozenset[str] = frozenset()
        self._pattern = self._part = re.compile("(?!)")
        self._longest = 0
        self._lock = threading.Lock()

    def add(self, secret: str) -> None:
        """From now on this value never shows."""
        if self._also:
            self._also.add(secret)
        if len(secret) < self._shortest or secret in self._forms:
            return
        with self._lock:
            self._forms |= _forms(secret)
            self._parts |= _parts_of_base64(secret.encode("utf-8", "replace"))
            self._pattern, self._part = _any(self._forms), _any(self._parts)
            # as two escapes within each other, or within base64
            self._longest = max(self._longest, 12 * len(secret) + 2 * AROUND)

    def known(self) -> tuple[frozenset[str], frozenset[str], int]:
        """What it looks for, for another one to learn."""
        return self._forms, self._parts, self._longest

    def learn(self, known: tuple[frozenset[str], frozenset[str], int]) -> None:
        if self._also:
            self._also.learn(known)
        forms, parts, longest = known
        forms = frozenset(form for form in forms if len(form) >= self._shortest)
        if forms <= self._forms:
            return
        with self._lock:
            self._forms |= forms
            self._parts |= parts
            self._pattern, self._part = _any(self._forms), _any(self._parts)
            self._longest = max(self._longest, longest)

    def add_basic(self, user: str, password: str) -> None:
        """The header that Basic makes of both is as good as the password."""
        self.add(password)
        self.add(b64encode(f"{user}:{password}".encode()).decode())

    def text(self, text: str) -> str:
        if not self._forms or not text:
            return text
        if any(form in text for form in self._forms):
            text = self._pattern.sub(HIDDEN, text)
        if any(part in text for part in self._parts):
            text = _without(text, self._spans(text))
        return self._without_escaped(text) if may_hold_escapes(text) else text

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

    def _without_escaped(self, text: str) -> str:
        """Looks at the text as it reads without its escapes, and removes what was written for a secret there."""
        if not any(self._holds(plain) for plain in readings(text)):
            return text
        for plain, places in unescaped(text):
            spans = [(places[start][0], places[end - 1][1]) for start, end in self._spans(plain)]
            if spans:
                return self._without_escaped(_without(text, spans))
        return text

    def _holds(self, text: str) -> bool:
        return any(form in text for form in self._forms) or any(part in text for part in self._parts)

    def _spans(self, text: str) -> list[tuple[int, int]]:
        """Where secrets stand, in order."""
        found = [m.span() for m in self._pattern.finditer(text)] if any(f in text for f in self._forms) else []
        if any(part in text for part in self._parts):
            found += [_around(text, *m.span()) for m in self._part.finditer(text)]
        return sorted(found)


def _forms(secret: str) -> set[str]:
    data = secret.encode("utf-8", "replace")
    forms = {secret, secret.replace(" ", "+")}
    if not _parts_of_base64(data):
        forms |= {b64encode(data).decode(), urlsafe_b64encode(data).decode()}
    if len(data) >= SHORTEST_HEX:
        forms |= {data.hex(), data.hex().upper()}
    return forms


def _parts_of_base64(data: bytes) -> set[str]:
    """What base64 of any text holds where the secret is a part of it: the letters that stand for nothing else, by the
    three places at which it may begin."""
    parts = set()
    for before in range(3):
        first, last = -(-before * 8 // 6), (before + len(data)) * 8 // 6
        for encode in (b64encode, urlsafe_b64encode):
            part = encode(bytes(before) + data + bytes(2))[first:last].decode()
            if len(part) >= SHORTEST_PART:
                parts.add(part)
    return parts


def _any(texts: frozenset[str]) -> re.Pattern[str]:
    """Any of them, the longest first; nothing where there is none."""
    return re.compile("|".join(map(re.escape, sorted(texts, key=len, reverse=True))) or "(?!)")


def _around(text: str, start: int, end: int) -> tuple[int, int]:
    """The base64 in which a part of it stands."""
    before, after = _BEFORE.match(text[max(0, start - AROUND) : start][::-1]), _AFTER.match(text, end)
    return start - (before.end() if before else 0), after.end() if after else end


def _without(text: str, spans: list[tuple[int, int]]) -> str:
    """The text with each of these spans hidden; those that overlap are one."""
    kept, at = [], 0
    for start, end in spans:
        if start >= at:
            kept += [text[at:start], HIDDEN]
        at = max(at, end)
    return "".join([*kept, text[at:]])


#: Every secret that this process came to know, its install's among them: for logs, tracebacks and errors. Shorter ones
#: would be found everywhere.
everywhere = Redactor(shortest=SHORTEST_SECRET)


@lru_cache(maxsize=1024)
def _is_secret(header: str) -> bool:
    return bool(_SECRET_HEADER.search(header))
