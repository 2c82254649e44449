"""Which row-wise expressions are Spark's own: those whose answer is DuckDB's for every value of their types.

Columns, constants, comparisons of like types, AND, OR, NOT, IS NULL, CASE and COALESCE over these, and the functions
of alike.py. Every other one is DuckDB's.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from runtime.sql.asking.tree import Node, walk
from runtime.sql.asking.types import BOOLEAN, Type

from . import alike, collations
from .casts import COMPARE, COUNTED, common, is_widening
from .functions import is_drawn

if TYPE_CHECKING:
    from runtime.sql.expressions.expr import Expressions

#: Types whose values both order and compare alike.
COMPARED = {"BOOLEAN", "VARCHAR", "DATE", "TIMESTAMP", "TIMESTAMPTZ", "TIME", "DOUBLE"}


def is_plain(w: Expressions, node: Node) -> bool:
    """Whether Spark computes the expression, down to what is not row-wise in it."""
    if id(node) not in w.plain:
        w.plain[id(node)] = w.is_atom(node) or _is_plain(w, node)
        w.scope.kept.append(node)  # so that no other node gets its id
    return w.plain[id(node)]


def _is_plain(w: Expressions, node: Node) -> bool:
    kind = node["class"]
    if kind == "CONSTANT" or w.is_constant(node):
        return is_literal(w.type(node))
    if kind == "COMPARISON":
        return node["type"] in COMPARE and compared(w, node["left"], node["right"])
    if kind == "CONJUNCTION":
        return all(is_condition(w, child) for child in node["children"])
    if kind == "BETWEEN":  # which Spark computes as two comparisons
        if holds_drawn(node["input"]):
            return False
        return compared(w, node["input"], node["lower"]) and compared(w, node["input"], node["upper"])
    if kind == "CASE":
        return is_choice(w, node)
    if kind == "CAST":
        child = node["child"]
        if node.get("try_cast") or not is_plain(w, child):
            return False
        return is_widening(w.type(child), w.type(node)) or alike.find(w, node) is not None
    if kind == "OPERATOR":
        return is_operator(w, node)
    return kind == "FUNCTION" and alike.find(w, node) is not None


def holds_drawn(node: Node) -> bool:
    """Whether it is another value each time that it is asked for."""
    return any("class" in n and is_drawn(n) for n in walk(node))


def is_condition(w: Expressions, node: Node) -> bool:
    return is_plain(w, node) and w.type(node) == BOOLEAN


def is_choice(w: Expressions, node: Node) -> bool:
    results = [check["then_expr"] for check in node["case_checks"]] + [node["else_expr"]]
    return all(is_condition(w, check["when_expr"]) for check in node["case_checks"]) and are_like(w, results, node)


def are_like(w: Expressions, items: list[Node], node: Node) -> bool:
    to = w.type(node)
    return all(is_plain(w, item) and is_widening(w.type(item), to) for item in items)


def is_operator(w: Expressions, node: Node) -> bool:
    kind, items = node["type"], node["children"]
    if kind in ("OPERATOR_IS_NULL", "OPERATOR_IS_NOT_NULL"):
        return is_plain(w, items[0])
    if kind == "OPERATOR_NOT":
        return is_condition(w, items[0])
    if kind == "OPERATOR_COALESCE":
        return are_like(w, items, node)
    if kind in ("COMPARE_IN", "COMPARE_NOT_IN"):
        first = w.type(items[0])
        same = all(w.type(i) == first or i["class"] == "CONSTANT" and first.letter == "i" for i in items[1:])
        return same and all(compared(w, items[0], item) for item in items[1:])
    return False


def compared(w: Expressions, left: Node, right: Node) -> bool:
    """Whether both compare the two alike, in the one type that DuckDB compares them in."""
    if not (is_plain(w, left) and is_plain(w, right)) or collations.holds(left) or collations.holds(right):
        return False
    a, b = w.type(left), w.type(right)
    return comparable(a, b) or any(
        fits(w, one, kind) for one, kind in ((left, b), (right, a)) if kind.name in COMPARED or kind.letter in "id"
    )


def fits(w: Expressions, node: Node, to: Type) -> bool:
    """Whether a constant is compared as a value of that type: a text always, a day with moments, a number if DuckDB
    makes it one."""
    if not w.is_constant(node):
        return False
    kind = w.type(node)
    if kind.name == "VARCHAR":
        return node["class"] == "CONSTANT" and to.name not in ("VARCHAR", "JSON", "NULL")
    if (kind.name, to.name) == ("DATE", "TIMESTAMP"):
        return True
    return kind.is_numeric and common(kind, to) == to


def comparable(a: Type, b: Type) -> bool:
    if a == b:
        return a.name in COMPARED or a.letter in "id"
    if a.letter in "id" and b.letter in "id":
        return common(a, b) is not None
    return {a.name, b.name} <= COUNTED | {"DOUBLE"} and "FLOAT" not in (a.name, b.name)


def is_literal(kind: Type) -> bool:
    """Whether Spark can write a constant of the type."""
    if kind.letter in "?vf" and kind.name != "DOUBLE":
        return False
    if kind.name == "UUID":
        return True
    return all(is_literal(inner) and inner.name != "TIMESTAMPTZ" for inner in kind.args)
