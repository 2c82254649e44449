"""`@mask`: how a column's values appear in everything that is stored for people. The destination gets the real ones."""

from __future__ import annotations

import hmac
import html
import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cached_property
from typing import Any
from urllib.parse import quote, quote_plus

import orjson

from runtime.model import Mask

#: Shorter values are not looked for in free text: they would be found everywhere.
SHORTEST_IN_TEXT = 4
#: `last4` shows nothing of a value shorter than this.
SHORTEST_SHOWN = 8
_FIRST_STAND_IN = 0xF0000
_STAND_INS = 0xFFFD
_SAME_EVERYWHERE = re.compile(r"[A-Za-z0-9._~-]*")
_PERCENT = re.compile("%[0-9A-F]{2}")
_STAND_IN = re.compile("[\U000f0000-\U000ffffc]")


def text_of(value: Any) -> str:
    """A value as text: what a mask hashes and what is looked for in messages."""
    if isinstance(value, str):
        return value
    try:
        return orjson.dumps(value).decode()
    except TypeError:  # integers over 64 bits
        return json.dumps(value, separators=(",", ":"))


#: A text to look for, the value that it stands for, and how that is masked.
_Form = tuple[str, str, Callable[[str], str]]


class Scrubber:
    """Replaces the masked values of some rows wherever they stand in a text: plain, JSON-escaped or URL-encoded."""

    def __init__(self, masked: Mapping[str, Callable[[str], str]]) -> None:
        self._plain: list[_Form] = sorted(((value, value, how) for value, how in masked.items()), key=_longest)

    def __bool__(self) -> bool:
        return bool(self._plain)

    @cached_property
    def _all(self) -> list[_Form]:
        forms: dict[str, _Form] = {}
        for value, _, how in self._plain:
            for form in (value,) if _SAME_EVERYWHERE.fullmatch(value) else _forms(value):
                forms.setdefault(form, (form, value, how))
        return sorted(forms.values(), key=_longest)

    def _worth_a_look(self, text: str) -> list[_Form]:
        """The other forms are made only for a text that may hold any."""
        return self._all if "%" in text or "\\" in text or "+" in text or "&" in text else self._plain

    def within(self, texts: Iterable[str]) -> Scrubber:
        """A scrubber with only what occurs in these texts: quick for many texts."""
        whole = "\n".join(texts)
        few = Scrubber({})
        few._plain = few._all = [form for form in self._worth_a_look(whole) if form[0] in whole]
        return few

    def __call__(self, text: str, *, cut: bool = False) -> str:
        """`cut` says that the text ends early: then the beginning of a value at its end is taken away too."""
        # Stand-ins keep what was put in from being searched again: a hash may contain another value's digits.
        shown: list[str] = []
        for form, value, how in self._worth_a_look(text):
            if form in text and len(shown) < _STAND_INS:
                text = text.replace(form, chr(_FIRST_STAND_IN + len(shown)))
                shown.append(how(value))
        if cut:
            text = self._without_half(text)
        return (
            _STAND_IN.sub(lambda m: shown[i] if (i := ord(m[0]) - _FIRST_STAND_IN) < len(shown) else m[0], text)
            if shown
            else text
        )

    def _without_half(self, text: str) -> str:
        half = max((n for form, _, _ in self._all for n in range(1, len(form)) if text.endswith(form[:n])), default=0)
        return f"{text[:-half]}…" if half else text


def _longest(form: _Form) -> int:
    return -len(form[0])


def _forms(value: str) -> tuple[str, ...]:
    inside, ascii_only, whole = text_of([value])[2:-2], json.dumps(value)[1:-1], quote(value, safe="", errors="replace")
    return (
        value,
        inside,
        inside.replace("/", r"\/"),
        ascii_only,
        ascii_only.replace("/", r"\/"),
        whole,
        _PERCENT.sub(lambda m: m[0].lower(), whole),
        quote_plus(value, errors="replace"),
        html.escape(value),
    )


class Masker:
    """The mask rules of one model with the workspace's own key."""

    def __init__(self, masks: Sequence[Mask], key_hex: str) -> None:
        self._key = bytes.fromhex(key_hex)
        self._how: dict[str, Callable[[str], str]] = {m.column.lower(): getattr(self, f"_{m.how}") for m in masks}

    def __bool__(self) -> bool:
        return bool(self._how)

    def __contains__(self, column: str) -> bool:
        return column.lower() in self._how

    def value(self, column: str, value: Any) -> Any:
        """The value as it is stored; NULL stays null, and so does every value of a column without a mask."""
        how = self._how.get(column.lower())
        return value if how is None or value is None else how(text_of(value))

    def row(self, row: Mapping[str, Any]) -> dict[str, Any]:
        """The row as it is stored: masked columns, and their values in the text of the others."""
        masked, hidden, others = dict(row), [], []
        for name, value in row.items():
            how = self._how.get(name.lower())
            if how is None:
                if isinstance(value, (str, list, dict)):
                    others.append(value)
            elif value is not None:
                hidden.append(text := text_of(value))
                masked[name] = how(text)
        text = others[0] if len(others) == 1 and isinstance(others[0], str) else "\n".join(map(text_of, others))
        escaped = "%" in text or "\\" in text or "+" in text or "&" in text  # then look for the other forms too
        if escaped or any(value in text for value in hidden if len(value) >= SHORTEST_IN_TEXT):
            scrub = self.scrubber([row])
            return {name: value if name in self else _scrubbed(value, scrub) for name, value in masked.items()}
        return masked

    def scrubber(self, rows: Iterable[Mapping[str, Any]]) -> Scrubber:
        """What removes the masked values of these rows from messages, prints and requests."""
        if not self._how:
            return Scrubber({})
        found: dict[str, Callable[[str], str]] = {}
        for row in rows:
            for name, value in row.items():
                how = self._how.get(name.lower())
                if how is not None and value is not None and len(text := text_of(value)) >= SHORTEST_IN_TEXT:
                    found.setdefault(text, how)
        return Scrubber(found)

    def _hash(self, text: str) -> str:
        return hmac.digest(self._key, text.encode("utf-8", "surrogatepass"), "sha256").hex()

    def _redact(self, text: str) -> str:
        return "***"

    def _last4(self, text: str) -> str:
        return f"***{text[-4:]}" if len(text) >= SHORTEST_SHOWN else "***"


def _scrubbed(value: Any, scrub: Scrubber) -> Any:
    if isinstance(value, str):
        return scrub(value)
    if isinstance(value, list):
        return [_scrubbed(v, scrub) for v in value]
    if isinstance(value, dict):
        return {k: _scrubbed(v, scrub) for k, v in value.items()}
    return value
