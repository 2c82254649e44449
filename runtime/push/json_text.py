"""JSON that push functions write and read: as it comes, with exact integers, and never deeper than Starlark can write
again."""

from __future__ import annotations

import json
import re
from typing import Any

import orjson

from runtime.push.finite import finite

#: Levels of lists and objects that are read; `nesting` bounds those that are written.
MOST_NESTED = 100
#: Nineteen digits may be more than 64 bits, which the fast parser would make a float.
_LONG_NUMBER = re.compile(r"\d{19}")
#: Python reads no longer integers.
_MOST_DIGITS = 4300
#: Both halves of a character, half of one, any other escape.
_ESCAPES = re.compile(
    r"\\(?:(u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2})|(u[dD][89a-fA-F][0-9a-fA-F]{2})|.)", re.DOTALL
)


class TooDeep(ValueError):
    pass


def is_json(text: str) -> bool:
    try:
        orjson.loads(text)
    except ValueError:
        return False
    return True


def encode(value: Any) -> str:
    return json.dumps(finite(value), ensure_ascii=False, separators=(",", ":"))


def read(text: str) -> tuple[Any, str]:
    """The value of a JSON text, and a remark where halves of characters were replaced. A byte order mark before it is
    none of it. Raises ValueError; TooDeep where it is nested more than MOST_NESTED levels deep."""
    remark = ""
    text = text.removeprefix("\ufeff")
    try:
        value = orjson.loads(text)
    except ValueError:
        mended = _ESCAPES.sub(lambda m: r"\ufffd" if m[2] else m[0], text) if "\\u" in text else text
        remark = "half of a character (\\ud800 to \\udfff) was replaced by U+FFFD" if mended != text else ""
        text, value = mended, _exact(mended)

    if text.count("[") + text.count("{") > MOST_NESTED and _is_deep(value):
        raise TooDeep
    return (_exact(text) if _LONG_NUMBER.search(text) else value), remark


def _exact(text: str) -> Any:
    """Slower: integers of any length are exact, and numbers that no double holds are None. Raises ValueError."""
    try:
        return finite(json.loads(text, parse_int=_whole, parse_constant=_refuse))
    except RecursionError:
        raise TooDeep from None


def _whole(digits: str) -> int | float:
    return int(digits) if len(digits) <= _MOST_DIGITS else float(digits)


def _refuse(name: str) -> None:
    raise ValueError(f"{name} is no JSON")


def _is_deep(value: Any) -> bool:
    level = [value]
    for _ in range(MOST_NESTED):
        level = [v for x in level if isinstance(x, (dict, list)) for v in (x.values() if isinstance(x, dict) else x)]
        if not level:
            return False
    return any(isinstance(x, (dict, list)) for x in level)
