"""Texts as they read without their escapes: JSON's, a URL's, HTML's, also within each other."""

from __future__ import annotations

import html
import re
from collections.abc import Iterator, Sequence
from urllib.parse import unquote

#: Escapes within escapes are followed so far.
LEVELS = 3
_ELSEWHERE = r"(?P<url>(?:%[0-9a-fA-F]{2})+)|(?P<html>&(?:#[0-9]{1,7}|#[xX][0-9a-fA-F]{1,6}|amp|lt|gt|quot|apos|sol);)"
_ESCAPES = re.compile(rf"(?P<json>(?:\\u[0-9a-fA-F]{{4}})+)|\\(?P<one>.)|{_ELSEWHERE}", re.DOTALL)
#: For a text in which a backslash is no escape.
_ESCAPES_NOT_JSON = re.compile(rf"(?P<json>(?!))|(?P<one>(?!))|{_ELSEWHERE}")
_LETTERS = {"n": "\n", "t": "\t", "r": "\r", "b": "\b", "f": "\f"}
_HINTS = re.compile(r"[%\\&]")

#: Where each letter comes from: begin and end in the text.
Places = Sequence[tuple[int, int]]


def may_hold_escapes(text: str) -> bool:
    return bool(_HINTS.search(text))


def readings(text: str) -> Iterator[str]:
    """The text without its escapes; then the same without those that were within."""
    for escapes in _kinds(text):
        inner = text
        for _ in range(LEVELS):
            plain = escapes.sub(_meant, inner)
            if plain == inner:
                break
            yield plain
            inner = plain


def unescaped(text: str) -> Iterator[tuple[str, Places]]:
    """The readings of a text, each with where its letters come from; that takes ten times as long."""
    for escapes in _kinds(text):
        inner, places = text, [(i, i + 1) for i in range(len(text))]
        for _ in range(LEVELS):
            plain, from_there = _once(inner, escapes)
            if plain == inner:
                break
            places = [(places[start][0], places[end - 1][1]) for start, end in from_there]
            yield plain, places
            inner = plain


def _kinds(text: str) -> tuple[re.Pattern[str], ...]:
    both = "\\" in text and ("%" in text or "&" in text)
    return (_ESCAPES, _ESCAPES_NOT_JSON) if both else (_ESCAPES,)


def _once(text: str, escapes: re.Pattern[str]) -> tuple[str, Places]:
    pieces, at = [], 0
    places: list[tuple[int, int]] = []
    for match in escapes.finditer(text):
        start, end = match.span()
        pieces.append(text[at:start])
        places += [(i, i + 1) for i in range(at, start)]
        piece = _meant(match)
        pieces.append(piece)
        places += [(start, end)] * len(piece)
        at = end
    places += [(i, i + 1) for i in range(at, len(text))]
    return "".join([*pieces, text[at:]]), places


def _meant(match: re.Match[str]) -> str:
    text = match[0]
    if match["json"]:
        return bytes.fromhex(text.replace("\\u", "")).decode("utf-16-be", "replace")
    if match["one"]:
        return _LETTERS.get(match["one"], match["one"])
    return unquote(text, errors="replace") if match["url"] else html.unescape(text)
