"""Row-wise expressions that DuckDB computes: their text over inputs, which are columns and what else is not
row-wise."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TYPE_CHECKING

from runtime.sql.asking import tree
from runtime.sql.asking.gate import expression
from runtime.sql.asking.scope import column, where
from runtime.sql.asking.tree import NOWHERE, Node, below, paths
from runtime.sql.asking.types import Type, UnknownType
from runtime.sql.model import Refused

from . import collations, functions
from .calls import Asked
from .casts import E
from .constants import lambda_params

if TYPE_CHECKING:
    from runtime.sql.expressions.expr import Expressions

#: Functions that name a field after the column that is given, and from which argument on.
NAMING = {"struct_pack": 0, "struct_insert": 1, "struct_update": 1}
#: What inputs are called.
INPUT = re.compile(r"i\d+", re.I)
#: So many constants of a list may be reduced.
FEW = 10


def last_name(node: Node) -> str:
    return str(node["column_names"][-1]) if node["class"] == "COLUMN_REF" else ""


def write(w: Expressions, node: Node) -> E:
    """The expression as one of DuckDB's."""
    kind = w.type(node)
    inputs: set[int] = set()
    return made(w, w.scope.gate.spelt(rewritten(w, node, inputs)), inputs, kind, node)


def made(w: Expressions, text: str, inputs: set[int], kind: Type, node: Node) -> E:
    return E(w.calls.add(w.place, Asked(text, tuple(sorted(inputs)), kind, span(node))), kind)


def over(w: Expressions, sql: str, found: list[E], kind: Type, node: Node) -> E:
    """DuckDB's text with {0}, {1}… for values that are written already."""
    if any(w.calls.wraps(e.text, w.place) for e in found):
        with w.at(grouped=w.grouped):
            return over(w, sql, found, kind, node)
    inputs: set[int] = set()
    texts = []
    for e in found:
        asked = w.calls.asked(e.text, w.place)
        if asked:
            inputs |= set(asked.inputs)
            texts.append(f"({asked.sql})")
        else:
            at = w.calls.input(w.place, e.text, e.type)
            inputs.add(at)
            texts.append(f"i{at}")
    for at, text in enumerate(texts):
        sql = sql.replace(f"{{{at}}}", text)
    return made(w, sql, inputs, kind, node)


def rewritten(w: Expressions, node: Node, inputs: set[int]) -> Node:
    """The expression with an input in the place of each column and of what else is not row-wise."""

    def taken(item: Node) -> Node:
        e = w.atom(item)
        asked = w.calls.asked(e.text, w.place)
        if asked:  # DuckDB's itself, computed here as well
            inputs.update(asked.inputs)
            return expression(asked.sql)
        if item["class"] != "COLLATE" and collations.is_collated(item, e.type):
            raise Refused("a value that has its COLLATE from elsewhere (write it last)", where(item), hint=False)
        try:
            at = w.calls.input(w.place, e.text, e.type, anew=functions.is_drawn(item))
        except UnknownType as error:
            raise Refused(f"a value of type {error} from elsewhere", where(item)) from None
        inputs.add(at)
        return {**item, "child": column(f"i{at}")} if item["class"] == "COLLATE" else column(f"i{at}")

    return replaced(w, node, taken)


def replaced(w: Expressions, node: Node, taken: Callable[[Node], Node], inner: frozenset[str] = frozenset()) -> Node:
    """The expression with what `taken` makes of each column and of what else is not row-wise; `inner` are the names
    that lambdas bind."""
    if node["class"] == "COLUMN_REF" and node["column_names"][0].lower() in inner:
        return parameter(node)
    below_it = paths(node) if inner and node["class"] not in ("SUBQUERY", "WINDOW") else []
    own = any(path[0].lower() in inner for path in below_it)
    if not own and w.is_atom(node):
        if inner and functions.is_drawn(node):
            raise Refused(f"{node['function_name']}() inside a lambda", where(node))
        return taken(node)
    if node["class"] == "COLUMN_REF":
        rest = w.reached(node)
        base = taken({**node, "column_names": node["column_names"][: -len(rest)]})
        return {**base, "column_names": [*base["column_names"], *rest]}
    check(w, node)
    if node["class"] == "LAMBDA" and is_lambda(w, node, inner):
        lhs = tree.replaced(node["lhs"], lambda n: parameter(n) if n.get("class") == "COLUMN_REF" else None)
        return {**node, "lhs": lhs, "expr": replaced(w, node["expr"], taken, inner | set(lambda_params(node)))}

    if node["class"] == "FUNCTION" and node["function_name"] in NAMING:
        first = NAMING[node["function_name"]]
        named = [{**a, "name": a["name"] or last_name(a["expression"])} for a in node["arguments"][first:]]
        node = {**node, "arguments": [*node["arguments"][:first], *named]}

    def one(item: Node) -> Node | None:
        return replaced(w, item, taken, inner) if "class" in item else None

    return below(node, one, without="type_expr")


def parameter(node: Node) -> Node:
    """A name that a lambda binds, which may not be that of an input."""
    first, *rest = node["column_names"]
    return {**node, "column_names": [f"__{first}", *rest]} if INPUT.fullmatch(first) else node


def is_lambda(w: Expressions, node: Node, inner: frozenset[str]) -> bool:
    """Whether it is a lambda, also in the old way to write one, `x -> …`, in which JSON is taken apart too."""
    if node.get("syntax_type") != "SINGLE_ARROW":
        return True
    lhs = node["lhs"]
    if lhs["class"] != "COLUMN_REF" or len(lhs["column_names"]) != 1 or lhs["column_names"][0].lower() in inner:
        return lhs["class"] == "FUNCTION" and lhs["function_name"] == "row"
    return w.scope.resolve(lhs["column_names"]) is None


def check(w: Expressions, node: Node) -> None:
    """Refuses what DuckDB may not compute."""
    if node["class"] in ("STAR", "PARAMETER", "DEFAULT", "POSITIONAL_REFERENCE"):
        raise Refused(node["class"].replace("_", " ").lower(), where(node))
    if node["class"] != "FUNCTION":
        return
    name = node["function_name"]
    if (
        name not in w.scope.gate.scalars
        or name in functions.REFUSED
        or name.startswith(("__internal", "icu_", "collate_"))
    ):
        shown = f"{name}()" if name.replace("_", "").isalnum() else f"the operator {name}"
        raise Refused(shown, where(node))
    if name in functions.REDUCING and not is_short(w, node["arguments"][0]["expression"]):
        raise Refused(f"{name}() of a constant, which may grow with each element", where(node), hint=False)


def is_short(w: Expressions, node: Node) -> bool:
    """Whether a list is one of rows, or a few constants that are written out."""
    return not w.is_constant(node) or node["class"] == "FUNCTION" and len(node["arguments"]) <= FEW


def span(node: Node) -> tuple[int, int]:
    """Where an expression stands in the model's text; (-1, 0) if that is not known."""
    at, length = node.get("query_location", NOWHERE), node.get("query_location_length") or 0
    if at >= 2**62 or not length:
        first = where(node)
        return (-1, 0) if first is None else (first, 0)
    return at, length
