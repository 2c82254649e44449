"""JSON for people to read: every digit of a number stands as it was written, however long."""

from __future__ import annotations

import json
from collections.abc import Iterable
from decimal import Decimal, InvalidOperation
from typing import Any

INDENT = "  "
_TOO_DEEP = "the JSON nests too deeply to be shown"


class Number(Decimal):
    """A number with the text that it had. Compares by value: 5 is 5.0, and no two big numbers are one."""

    text: str

    def __new__(cls, text: str) -> Number:
        made = super().__new__(cls, text)
        made.text = text
        return made


def loads(text: str) -> Any:
    """As `json.loads`, numbers as `Number`. Raises ValueError for what is no JSON, or nests too deeply to be shown."""
    try:
        return json.loads(text, parse_int=_number, parse_float=_number)
    except RecursionError:
        raise ValueError(_TOO_DEEP) from None


def _number(text: str) -> Number | str:
    """A number beyond every exponent has no value; its text is all there is."""
    try:
        return Number(text)
    except InvalidOperation:
        return text


def dumps(value: Any) -> str:
    """What `loads` gave, as text: one thing a line, two spaces a level, half a surrogate pair as U+FFFD. Raises
    ValueError for what nests too deeply to be shown."""
    try:
        return readable(_dumped(value, ""))
    except RecursionError:
        raise ValueError(_TOO_DEEP) from None


def readable(text: str) -> str:
    """The text as UTF-8 can have it."""
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def _dumped(value: Any, indent: str) -> str:
    inner = indent + INDENT

    if isinstance(value, Number):
        return value.text
    if isinstance(value, dict) and value:
        fields = (f"{inner}{_text(name)}: {_dumped(found, inner)}" for name, found in value.items())
        return _lines("{", fields, indent + "}")
    if isinstance(value, list) and value:
        return _lines("[", (f"{inner}{_dumped(found, inner)}" for found in value), indent + "]")
    return _text(value)


def _lines(opening: str, lines: Iterable[str], closing: str) -> str:
    return opening + "\n" + ",\n".join(lines) + "\n" + closing


def _text(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)
