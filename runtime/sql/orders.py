"""ORDER BY: positions, and the orders of set operations."""

from __future__ import annotations

from .gate import gate
from .tree import Node


def position(node: Node) -> int | None:
    """The number in ORDER BY 2, GROUP BY 1 or #1."""
    if node["class"] == "CONSTANT" and node["literal"]["kind"] == "INTEGER":
        return int(node["literal"]["text"])
    if node["class"] == "POSITIONAL_REFERENCE":
        return int(node["index"])
    return None


def is_computed(modifier: Node) -> bool:
    """Whether it orders by something else than columns."""
    items = [order["expression"] for order in modifier.get("orders") or []]
    return any(item["class"] not in ("COLUMN_REF", "STAR") and position(item) is None for item in items)


def around(node: Node) -> Node:
    """A set operation as what a SELECT around it reads, with its order and limit."""
    select: Node = gate().parse("SELECT * FROM (SELECT 1)")["node"]
    table = select["from_table"]
    own = [m for m in node["modifiers"] if m["type"] == "DISTINCT_MODIFIER"]
    inner = {**node, "modifiers": own, "cte_map": {"map": []}}
    return {
        **select,
        "from_table": {**table, "subquery": {**table["subquery"], "node": inner}},
        "modifiers": [m for m in node["modifiers"] if m not in own],
    }
