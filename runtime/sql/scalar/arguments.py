"""What the arguments of a function have to be so that Spark's form of it is DuckDB's answer."""

from __future__ import annotations

from typing import TYPE_CHECKING

from runtime.sql.asking.tree import Node

from . import collations
from .casts import COUNTED, INFINITE, is_widening
from .functions import is_drawn
from .texts import string

if TYPE_CHECKING:
    from runtime.sql.expressions.expr import Expressions

UNITS = {"year", "quarter", "month", "week", "day", "hour", "minute", "second"}
TYPES = {
    "text": "VARCHAR",
    "word": "VARCHAR",
    "usual": "VARCHAR",
    "moment": "TIMESTAMP",
    "date": "DATE",
    "double": "DOUBLE",
}
#: Types of which an argument is made the function's own, where that loses nothing.
SAME = {"VARCHAR", "BOOLEAN", "DATE", "TIMESTAMP", *COUNTED}
#: Those that are made the function's own type.
MADE = ("same", "number", "divisor")
CONSTANT = ("pattern", "unit", "today", "divisor", "place", "length", "given")
#: Whether a day or a moment is finite; moments are compared as they are, without a way through a time zone.
DATE = f"NOT ({INFINITE['D']})"
MOMENT = "{0} > TIMESTAMP_NTZ'-290308-12-21 19:59:05.224193' AND {0} < TIMESTAMP_NTZ'+294247-01-10 04:00:54.775807'"
#: Columns and constants of an expression that may stand several times in a form, at most.
SHORT = 3


def fits(w: Expressions, item: Node, kind: str, node: Node) -> bool:
    """`text`: any; `word`, `date` and `moment`: a column or a constant, since they stand there several times; `usual`:
    a word of the usual spelling, unless that is too little; `double`: a column, a constant or a short sum or product;
    `same` and `number`: what is made the function's own type without loss; `spelt`: a whole number or a Boolean;
    `numbers` and `texts`: a list of whole ones or of texts. The others are constants: a `pattern` without a backslash,
    a `unit`, `today` for days, a `divisor` or a `place` from 1 on, a `length` from 0 on; of a `given` one the form
    itself says whether it is right."""
    of = w.type(item)
    if kind in CONSTANT:
        return item["class"] == "CONSTANT" and _is_given(kind, w.constant(item, "the argument"))
    if not w.is_plain(item) or collations.holds(item):
        return False
    if kind in ("same", "number"):
        to = w.type(node)
        return to.name in (SAME if kind == "same" else {"DOUBLE", *COUNTED}) and is_widening(of, to)
    if kind == "spelt":
        return of.name in {"BOOLEAN", *COUNTED}
    if kind in ("numbers", "texts"):
        elements = COUNTED if kind == "numbers" else {"VARCHAR"}
        return of.name == "LIST" and of.element.name in elements and is_atom(w, item)
    if of.name != TYPES[kind] or kind == "usual" and w.calls.exact:
        return False
    return kind == "text" or is_atom(w, item) or kind == "double" and leaves(w, item) <= SHORT


def is_atom(w: Expressions, item: Node) -> bool:
    """Whether it may stand several times: it is computed already, or is a constant."""
    if item["class"] in ("SUBQUERY", "WINDOW") or is_drawn(item):
        return False
    return w.is_atom(item) or w.is_constant(item)


def leaves(w: Expressions, item: Node) -> int:
    """The columns and constants of which it is the sum or product; more than may stand several times if it is not."""
    if is_atom(w, item):
        return 1
    if item["class"] != "FUNCTION" or item["function_name"] not in ("+", "-", "*"):
        return SHORT + 1
    return sum(leaves(w, a["expression"]) for a in item["arguments"])


def _is_given(kind: str, value: object) -> bool:
    if kind == "given":
        return type(value) in (str, int)
    if isinstance(value, str):
        return {"pattern": "\\" not in value, "unit": value in UNITS, "today": value == "day"}.get(kind, False)
    least = {"divisor": 1, "place": 1, "length": 0}.get(kind)
    return type(value) is int and least is not None and least <= value < 2**31


def given(text: str) -> str:
    """A text within a form, in which {0} stands for an argument."""
    return string(text).replace("{", "\\u007b")
