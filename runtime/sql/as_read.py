"""The order in which Spark reads rows: what DuckDB means where a query names none. Known as far as no join and no group
stands between."""

from __future__ import annotations

from collections.abc import Sequence

from .model import Refused
from .scope import Scope, where
from .tree import Node

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
    if any(m["type"] == "ORDER_MODIFIER" for m in node.get("modifiers") or []):
        return True
    if node["type"] == "SET_OPERATION_NODE":
        return node["setop_type"] == "UNION" and node["setop_all"] and all(is_kept(c, ctes) for c in node["children"])
    if node["type"] != "SELECT_NODE" or node.get("group_expressions") or node.get("modifiers"):
        return False
    return node["aggregate_handling"] == "STANDARD_HANDLING" and is_known(node["from_table"], ctes)


def order(scope: Scope, node: Node, what: str) -> str:
    """The key of an order that a query does not name. Refused where none is known."""
    if scope.grouped or scope.from_ast is None or not is_known(scope.from_ast, scope.ctes):
        told = f"{what} without ORDER BY over a join or a group, whose rows have no order,"
        raise Refused(told, where(node), hint=False)
    return NUMBER
