"""EXISTS as a count of rows, where Spark makes no join of its condition."""

from __future__ import annotations

from runtime.sql.asking.scope import Scope, call
from runtime.sql.asking.tree import Node


def is_countable(scope: Scope, node: Node) -> bool:
    """Whether a query has rows just when the count of what it selects from is more than none."""
    own = node["type"] != "SELECT_NODE" or any(node.get(key) for key in ("group_expressions", "having", "qualify"))
    cut = any(m["type"] != "ORDER_MODIFIER" and m["type"] != "DISTINCT_MODIFIER" for m in node["modifiers"])
    return not own and not cut and not any(map(scope.has_aggregate, node["select_list"]))


def counted(node: Node) -> Node:
    return {**node, "select_list": [call("count_star")], "modifiers": []}
