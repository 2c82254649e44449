"""Functions whose answer is the same in DuckDB and in Spark for every value of these types: what everyday models are
made of. They need no worker, and a condition of them reaches the files. `bench/dialect.py --all` compares them.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from runtime.sql.asking.tree import Node
from runtime.sql.asking.types import spark_type

from .arguments import CONSTANT, MADE, fits, given
from .casts import COUNTED, E
from .constants import lambda_params
from .forms import FORMS

if TYPE_CHECKING:
    from runtime.sql.expressions.expr import Expressions

PART = ("date_part", "datepart")
#: Types whose values JSON has as both write them.
TOLD = {"VARCHAR", "BOOLEAN", *COUNTED}
_LISTS = ("list_transform", "array_transform", "list_apply", "array_apply", "apply")
#: What DuckDB computes in less time than Spark, the way to it left aside.
DEAR = {"upper", "ucase", "lower", "lcase", "strftime", "round", "regexp_extract", "regexp_replace"}
_FORMS: dict[str, list[tuple[list[str], str | Callable[..., str | None]]]] = {}
for _names, _kinds, _text in FORMS:
    for _name in _names.split():
        _FORMS.setdefault(_name, []).append((_kinds.split(), _text))
#: Functions and operators with a form that is Spark's.
NAMES = {*PART, *_LISTS, "to_json", *(name for name in _FORMS if not name.endswith("::"))}


@dataclass(frozen=True)
class Alike:
    """Spark's text, with {0}, {1}… in the place of the arguments."""

    text: str
    arguments: Sequence[tuple[str, Node]]


def find(w: Expressions, node: Node) -> Alike | None:
    """A function, or a cast, as Spark's; None where the answers may differ."""
    if node["class"] == "CAST":
        name, items = f"{w.type(node).name}::", [node["child"]]
    else:
        name, items = node["function_name"], [a["expression"] for a in node["arguments"]]
    if name in PART and items and items[0]["class"] == "CONSTANT":
        name, items = str(w.constant(items[0], "the part")).lower(), items[1:]
    if name == "to_json" and len(items) == 1:
        return told(w, items[0])
    if name in _LISTS and len(items) == 2:
        return transformed(w, items[0], items[1], node)
    for kinds, form in _FORMS.get(name, []):
        if len(kinds) == len(items) and all(fits(w, item, kind, node) for item, kind in zip(items, kinds)):
            text = form if isinstance(form, str) else form(*constants(w, kinds, items))
            if text is not None:
                text = text.replace("{name}", name).replace("{to}", spark_type(w.type(node)))
                return Alike(text, tuple(zip(kinds, items)))
    return None


def constants(w: Expressions, kinds: Sequence[str], items: Sequence[Node]) -> list[object]:
    return [w.constant(item, "the argument") for kind, item in zip(kinds, items) if kind in CONSTANT]


def told(w: Expressions, node: Node) -> Alike | None:
    """A struct that is put together there, as JSON."""
    fields = node["arguments"] if node["class"] == "FUNCTION" and node["function_name"] == "struct_pack" else []
    if not fields or not all(is_told(w, field) for field in fields):
        return None
    named = ", ".join(f"{given(field['name'])}, {{{at}}}" for at, field in enumerate(fields))
    text = f"to_json(named_struct({named}), map('ignoreNullFields', 'false'))"
    return Alike(text, [("text", field["expression"]) for field in fields])


def is_told(w: Expressions, field: Node) -> bool:
    plain = w.is_plain(field["expression"]) and w.type(field["expression"]).name in TOLD
    return plain and bool(re.fullmatch(r"[A-Za-z_]\w*", field["name"], re.A))


def transformed(w: Expressions, items: Node, by: Node, node: Node) -> Alike | None:
    """A list with a whole number added to, taken from or multiplied with each element, of its own type."""
    of, body = w.type(items), by.get("expr", {})
    if of.name != "LIST" or of.element.name not in COUNTED or w.type(node) != of or not w.is_plain(items):
        return None
    if body.get("class") != "FUNCTION" or body["function_name"] not in ("+", "-", "*") or len(body["arguments"]) != 2:
        return None
    one, other = (a["expression"] for a in body["arguments"])
    if one["class"] != "COLUMN_REF" or [n.lower() for n in one["column_names"]] != lambda_params(by):
        return None
    number = w.constant(other, "the number") if other["class"] == "CONSTANT" else None
    if type(number) is not int:
        return None
    text = f"transform({{0}}, x -> x {body['function_name']} CAST({number} AS {spark_type(of.element)}))"
    return Alike(text, [("list", items)])


def written(w: Expressions, node: Node) -> E | None:
    found, to = find(w, node), w.type(node)
    if found is None:
        return None
    texts = [(w.as_type(item, to) if kind in MADE else w.write(item)).text for kind, item in found.arguments]
    return E(re.sub(r"\{(\d+)\}", lambda at: texts[int(at[1])], found.text), to)


def along(w: Expressions, items: Sequence[Node]) -> list[int]:
    """The places of those that are DuckDB's from now on: it is asked for others of this projection anyway, and the
    whole then takes a tenth less."""
    if w.scope.grouped or not w.place.asked:
        return []
    found = [at for at, item in enumerate(items) if is_dear(w, item)]
    w.plain.update({id(items[at]): False for at in found})
    return found


def is_dear(w: Expressions, item: Node) -> bool:
    if w.is_atom(item) or w.is_constant(item) or not w.is_plain(item):
        return False
    if item["class"] == "CAST":
        return w.type(item["child"]).name == "VARCHAR" != w.type(item).name
    return item["class"] == "FUNCTION" and item["function_name"] in DEAR
