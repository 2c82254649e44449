"""Subqueries over columns of the query around them, and what such columns make of an expression."""

from __future__ import annotations

from typing import TYPE_CHECKING

from runtime.sql.asking.scope import Scope, where
from runtime.sql.asking.tree import Node, is_called, own, replaced
from runtime.sql.model import Refused
from runtime.sql.scalar import plain

from . import tableless

if TYPE_CHECKING:
    from .expr import Expressions

#: What makes of a SELECT with aggregates another number of rows than one, or a condition of it.
BESIDE_ROWS = ("group_expressions", "group_sets", "having", "qualify", "modifiers", "sample")


def of_group(w: Expressions, node: Node, text: str) -> str:
    """A subquery's value beside groups. One over their columns is for Spark a value of the rows, not of the group; in
    all rows of a group it is the same."""
    if not (w.grouped and w.scope.grouped and w.scope.groups and w.scope.is_correlated(node["subquery"]["node"])):
        return text
    if len(w.scope.group_sets) > 1:
        told = "a subquery over columns of GROUPING SETS, ROLLUP or CUBE (write it in a query around the groups)"
        raise Refused(told, where(node), hint=False)
    return f"any_value({text})"


def is_varying(scope: Scope, node: Node) -> bool:
    """Whether an expression is another one in other rows."""
    parts = list(own(node))
    queries = [part["subquery"]["node"] for part in parts if part.get("class") == "SUBQUERY"]
    named = [part for part in parts if part.get("class") == "COLUMN_REF"]
    return (
        any(part.get("class") == "POSITIONAL_REFERENCE" for part in parts)
        or any(scope.resolve(part["column_names"]) for part in named)
        or any(scope.is_correlated(query) for query in queries)
        or plain.holds_drawn(node)
    )


def of_one_row(w: Expressions, node: Node) -> Node | None:
    """An expression of aggregates and of columns around the subquery whose value it is, as the expression of
    subqueries for each aggregate: Spark knows such columns in a WHERE alone. None for what is nothing of the kind."""
    query = node["subquery"]["node"]
    if node["subquery_type"] != "SCALAR" or query["type"] != "SELECT_NODE" or len(query["select_list"]) != 1:
        return None
    if any(query.get(clause) for clause in BESIDE_ROWS) or query["from_table"]["type"] == "EMPTY":
        return None
    if any(part.get("class") in ("SUBQUERY", "WINDOW", "LAMBDA", "STAR") for part in own(query["select_list"])):
        return None
    summed: list[Node] = []
    beside: list[Node] = []

    def apart(part: Node) -> Node | None:
        if is_called(part, w.scope.gate.aggregates):
            summed.append(part)
            return {**node, "alias": "", "subquery": {**node["subquery"], "node": {**query, "select_list": [part]}}}
        beside.extend([part] if part.get("class") == "COLUMN_REF" else [])
        return None

    found: Node = replaced(query["select_list"][0], apart)
    return {**found, "alias": ""} if summed and beside else None


def check_summed(w: Expressions, node: Node) -> None:
    """Refuses what Spark plans and cannot run: a correlated subquery in an aggregate that is a correlated one's
    value."""
    query = node["subquery"]["node"]
    summed = [n for n in own(query.get("select_list")) if is_called(n, w.scope.gate.aggregates)]
    for part in tableless.others(w, summed):
        if w.scope.is_correlated(part["subquery"]["node"]) and w.scope.is_correlated(query):
            told = "a subquery over columns of the one around it in an aggregate of that (join, or write LATERAL)"
            raise Refused(told, where(part), hint=False)
