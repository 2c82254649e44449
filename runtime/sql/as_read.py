"""The order in which Spark reads rows: what DuckDB means where a query names none. Known as far as no join and no group
stands between."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from .model import Refused
from .scope import where
from .tree import Node, own

if TYPE_CHECKING:
    from .expr import Expressions

#: Spark's number of a row, greater than that of every row read before.
NUMBER = "monotonically_increasing_id()"


def is_known(node: Node, ctes: Sequence[Node]) -> bool:
    """Whether the rows of a FROM have an order, that of a table or file as it lies."""
    kind = node["type"]
    if kind == "SUBQUERY":
        return is_kept(node["subquery"]["node"], ctes)
    if kind == "BASE_TABLE":
        path = node["qualified_name"]["path"]
        named = [e for e in ctes if len(path) == 1 and e["key"].lower() == path[0].lower()]
        return not named or is_kept(named[-1]["value"]["query_node"], ctes)
    return kind in ("TABLE_FUNCTION", "EXPRESSION_LIST", "EMPTY")


def is_kept(node: Node, ctes: Sequence[Node]) -> bool:
    """Whether a query's rows have an order, its own or that of what it reads."""
    modifiers = {m["type"] for m in node.get("modifiers") or []}
    if "ORDER_MODIFIER" in modifiers:
        return True
    if node["type"] == "SET_OPERATION_NODE":
        return node["setop_type"] == "UNION" and node["setop_all"] and all(is_kept(c, ctes) for c in node["children"])
    if node["type"] != "SELECT_NODE" or node.get("group_expressions") or "DISTINCT_MODIFIER" in modifiers:
        return False
    plain = node["aggregate_handling"] == "STANDARD_HANDLING" and not holds(node, "SUBQUERY", "WINDOW")
    return plain and is_known(node["from_table"], ctes)


def holds(select: Node, *kinds: str) -> bool:
    """Whether an expression of a SELECT is, or holds, one of these, which DuckDB joins or sorts for."""
    return any(
        n.get("class") in kinds for n in own([v for k, v in select.items() if k not in ("from_table", "cte_map")])
    )


def is_open(w: Expressions) -> bool:
    """Whether the rows of a query have no order that is known."""
    around = w.scope.from_ast
    return w.mingled or around is None or not is_known(around, w.scope.ctes)


def check(w: Expressions, node: Node, what: str) -> None:
    """Refuses an order that a query does not name where none is known."""
    if is_open(w):
        told = f"{what} without ORDER BY over a join, a group or beside a subquery, where rows have no order,"
        raise Refused(told, where(node), hint=False)


def order(w: Expressions, node: Node, what: str) -> str:
    """The key of an order that a query does not name."""
    check(w, node, what)
    if w.scope.grouped:
        raise Refused(f"{what} without ORDER BY over a group, whose rows have no order,", where(node), hint=False)
    return NUMBER
