"""Functions whose answer is the same in DuckDB and in Spark for every value of these types: what everyday models are
made of. They need no worker, and a condition of them reaches the files. `bench/dialect.py --all` compares them.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from . import collations
from .casts import COUNTED, INFINITE, E, is_widening
from .tree import Node
from .types import spark_type

if TYPE_CHECKING:
    from .expr import Expressions

UNITS = {"year", "quarter", "month", "week", "day", "hour", "minute", "second"}
TYPES = {"text": "VARCHAR", "moment": "TIMESTAMP", "date": "DATE"}
#: Types of which an argument is made the function's own, where that loses nothing.
SAME = {"VARCHAR", "BOOLEAN", "DATE", "TIMESTAMP", *COUNTED}
_DATE, _MOMENT = (f"NOT ({INFINITE[letter].replace('{0}', '{%d}')})" for letter in "DT")
_DAYS = "CAST(unix_date(CAST({2} AS DATE)) AS BIGINT) - CAST(unix_date(CAST({1} AS DATE)) AS BIGINT)"
_FAR = "WHEN {0} IS NOT NULL THEN date_from_unix_date(IF({0} > TIMESTAMP_NTZ'1970-01-01', 2147483647, -2147483647))"
PART = ("date_part", "datepart")
_PARTS = "year month day quarter dayofyear"

#: Names (with `::` a cast to that type), what each argument has to be (see `_fits`), and Spark's text, in which {name}
#: and {to} are the function's own name and type.
FORMS = (
    ("||", "text text", "({0} || {1})"),
    ("~~", "text pattern", "({0} LIKE {1})"),
    ("!~~", "text pattern", "({0} NOT LIKE {1})"),
    ("^@ starts_with prefix", "text text", "startswith({0}, {1})"),
    ("ends_with suffix", "text text", "endswith({0}, {1})"),
    ("contains", "text text", "contains({0}, {1})"),
    ("length len char_length character_length", "text", "CAST(char_length({0}) AS BIGINT)"),
    ("strlen", "text", "CAST(octet_length({0}) AS BIGINT)"),
    ("replace", "text text text", "replace({0}, {1}, {2})"),
    ("substring substr", "text place", "substring({0}, {1})"),
    ("substring substr", "text place length", "substring({0}, {1}, {2})"),
    ("left", "text length", "substring({0}, 1, {1})"),
    ("md5", "text", "md5({0})"),
    ("sha1", "text", "sha1({0})"),
    ("sha256", "text", "sha2({0}, 256)"),
    ("nullif greatest least", "same same", "{name}({0}, {1})"),
    ("+", "number number", "({0} + {1})"),
    ("-", "number number", "({0} - {1})"),
    ("*", "number number", "({0} * {1})"),
    ("%", "same divisor", "({0} % {1})"),
    ("//", "same divisor", "CAST({0} div {1} AS {to})"),
    ("list_sort array_sort", "list", "array_sort({0})"),
    ("VARCHAR::", "spelt", "CAST({0} AS STRING)"),
    ("DATE::", "moment", f"CASE WHEN {_MOMENT % 0} THEN CAST({{0}} AS DATE) {_FAR} END"),
    (_PARTS, "date", f"CASE WHEN {_DATE % 0} THEN CAST({{name}}({{0}}) AS BIGINT) END"),
    (f"{_PARTS} hour minute", "moment", f"CASE WHEN {_MOMENT % 0} THEN CAST({{name}}({{0}}) AS BIGINT) END"),
    (
        "date_trunc datetrunc",
        "unit moment",
        f"CASE WHEN {_MOMENT % 1} THEN CAST(date_trunc({{0}}, {{1}}) AS TIMESTAMP_NTZ) ELSE {{1}} END",
    ),
    ("date_diff datediff", "today moment moment", f"CASE WHEN {_MOMENT % 1} AND {_MOMENT % 2} THEN {_DAYS} END"),
    ("date_diff datediff", "today date date", f"CASE WHEN {_DATE % 1} AND {_DATE % 2} THEN {_DAYS} END"),
)
_FORMS: dict[str, list[tuple[list[str], str]]] = {}
for _names, _kinds, _text in FORMS:
    for _name in _names.split():
        _FORMS.setdefault(_name, []).append((_kinds.split(), _text.replace("{name}", _name)))
#: Functions and operators with a form that is Spark's.
NAMES = {*PART, *(name for name in _FORMS if not name.endswith("::"))}


@dataclass(frozen=True)
class Alike:
    """Spark's text, with {0}, {1}… in the place of the arguments."""

    text: str
    arguments: tuple[tuple[str, Node], ...]


def find(w: Expressions, node: Node) -> Alike | None:
    """A function, or a cast, as Spark's; None where the answers may differ."""
    if node["class"] == "CAST":
        name, items = f"{w.type(node).name}::", [node["child"]]
    else:
        name, items = node["function_name"], [a["expression"] for a in node["arguments"]]
    if name in PART and items and items[0]["class"] == "CONSTANT":
        name, items = str(w.constant(items[0], "the part")).lower(), items[1:]
    for kinds, text in _FORMS.get(name, []):
        if len(kinds) == len(items) and all(_fits(w, item, kind, node) for item, kind in zip(items, kinds)):
            return Alike(text.replace("{to}", spark_type(w.type(node))), tuple(zip(kinds, items)))
    return None


def written(w: Expressions, node: Node) -> E | None:
    found, to = find(w, node), w.type(node)
    if found is None:
        return None
    made = ("same", "number", "divisor")
    texts = [(w.as_type(item, to) if kind in made else w.write(item)).text for kind, item in found.arguments]
    return E(re.sub(r"\{(\d)\}", lambda at: texts[int(at[1])], found.text), to)


def _fits(w: Expressions, item: Node, kind: str, node: Node) -> bool:
    """`text`: any; `date` and `moment`: a column or a constant, since they stand there twice; `same` and `number`: what
    is made the function's own type without loss; `spelt`: a whole number or a Boolean; `list`: of whole numbers or
    texts. The others are constants: a `pattern` without a backslash, a `unit`, `today` for days, a `divisor` or a
    `place` from 1 on, a `length` from 0 on."""
    of = w.type(item)
    if kind in ("pattern", "unit", "today", "divisor", "place", "length"):
        return item["class"] == "CONSTANT" and _is_given(kind, w.constant(item, "the argument"))
    if not w.is_plain(item) or collations.holds(item):
        return False
    if kind in ("same", "number"):
        to = w.type(node)
        return to.name in (SAME if kind == "same" else {"DOUBLE", *COUNTED}) and is_widening(of, to)
    if kind == "spelt":
        return of.name in {"BOOLEAN", *COUNTED}
    if kind == "list":
        return of.name == "LIST" and of.element.name in {"VARCHAR", *COUNTED}
    return of.name == TYPES[kind] and (kind == "text" or w.is_atom(item) or w.is_constant(item))


def _is_given(kind: str, value: object) -> bool:
    if isinstance(value, str):
        return {"pattern": "\\" not in value, "unit": value in UNITS, "today": value == "day"}.get(kind, False)
    least = {"divisor": 1, "place": 1, "length": 0}.get(kind)
    return type(value) is int and least is not None and least <= value < 2**31
