"""A text looked for in one column of record files, in any case: as SQL, and by the bounds of each file."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, Literal, get_args

from runtime.records import rarity

Within = Literal["identifier", "message", "payload"]
How = Literal["whole", "beginning", "anywhere"]
WITHIN: tuple[Within, ...] = get_args(Within)
HOW: tuple[How, ...] = get_args(How)
COLUMNS: dict[str, str] = {"identifier": "identifier", "message": "status_message", "payload": "record_payload"}

#: Behind every text that begins with another one.
_LAST = "\U0010ffff"
#: DuckDB's lower() makes these of letters beyond ASCII as well (İ, and the sign of Kelvin).
_OF_OTHERS = frozenset("iIkK")


def usual(within: str) -> How:
    """How a text is compared where nobody says."""
    return "beginning" if within == "identifier" else "anywhere"


def condition(text: str, within: str, how: str, sample: Sequence[str] = ()) -> tuple[str, dict[str, Any]]:
    """SQL with its bound values. In a payload `whole` and `beginning` are those of a field's value, `anywhere` is of
    the JSON, in which the text may stand as it is or as JSON writes it. A sample of the column makes it cheaper."""
    column = COLUMNS[within]
    if within == "payload":
        return _in_payload(text, column, how, sample)
    if how == "anywhere":
        return anywhere(text, column, sample)
    return f"{column} IS NOT NULL AND {_compared(f'lower({column})', how)}", {"text": text}


def anywhere(text: str, column: str, sample: Sequence[str], name: str = "text") -> tuple[str, dict[str, Any]]:
    """The column holds the text in any case; `name` is that of the bound value."""
    sql, values = f"contains(lower({column}), lower(${name}))", {name: text}
    if (form := rarity.direct(text, sample)) is not None:
        sql, values = f"(contains({column}, ${name}_direct) OR {sql})", {**values, f"{name}_direct": form}
    return _first_of_all(text, column, sample, sql, values)


def _first_of_all(
    text: str, column: str, sample: Sequence[str], sql: str, values: dict[str, Any]
) -> tuple[str, dict[str, Any]]:
    """The same, where a rare part of the text stands in it."""
    forms = {f"form{n}": form for n, form in enumerate(rarity.part_of(text, sample))}
    if not forms:
        return sql, values
    return f"({' OR '.join(f'contains({column}, ${name})' for name in forms)}) AND {sql}", {**values, **forms}


def _in_payload(text: str, column: str, how: str, sample: Sequence[str]) -> tuple[str, dict[str, Any]]:
    values = {"text": text, "json": json.dumps(text, ensure_ascii=False)[1:-1]}
    holds = f"contains(lower({column}), lower($json))"
    if how == "anywhere":
        if values["json"] == text:
            return anywhere(text, column, sample)
        return f"({holds} OR {_compared(f'lower({column})', how)})", values

    # a CASE, because what is no JSON cannot be asked for its fields
    fields = f"json_extract_string(lower({column}), '$.*')"
    found = f"list_bool_or(list_transform({fields}, lambda field: coalesce({_compared('field', how)}, false)))"
    sql = f"CASE WHEN {holds} AND json_valid({column}) THEN coalesce({found}, false) ELSE false END"
    return _first_of_all(text, column, sample, sql, values) if values["json"] == text else (sql, values)


def _compared(column: str, how: str) -> str:
    if how == "whole":
        return f"{column} = lower($text)"
    return f"{'starts_with' if how == 'beginning' else 'contains'}({column}, lower($text))"


def may_lie_between(text: str, how: str, low: str, high: str) -> bool:
    """Whether an identifier that matches can lie between these two."""
    if how == "anywhere" or not text.isascii() or _OF_OTHERS & set(text):
        return True
    first, last = text.upper(), text.lower()
    return first <= high and low <= (last + _LAST if how == "beginning" else last)
