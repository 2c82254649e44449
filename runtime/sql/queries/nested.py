"""A join that is the right of another: `FROM a, b JOIN c ON …`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from runtime.sql.asking.gate import expression
from runtime.sql.asking.said import GateError
from runtime.sql.asking.scope import Scope, where
from runtime.sql.asking.tree import Node
from runtime.sql.model import Refused

from .item import Item

if TYPE_CHECKING:
    from .source import Sources


def turned(node: Node, scope: Scope) -> Node | None:
    """a × (b joined with c) as (a × b) joined with c, where b may be of a row of a; None where that is not the same, or
    a name would mean another column."""
    if node["ref_type"] != "CROSS" or node["right"]["type"] != "JOIN" or not is_turnable(node["right"]):
        return None
    made = beside(node, node["right"])
    return made if is_bound(made, scope) else None


def is_bound(node: Node, scope: Scope) -> bool:
    """Whether DuckDB finds each name of a FROM, and but once."""
    try:
        scope.over([], node).probe([expression("1")])
    except GateError:
        return False
    return True


def is_turnable(node: Node) -> bool:
    while node["type"] == "JOIN":
        others = node["join_type"] in ("RIGHT", "FULL") or node["ref_type"] in ("NATURAL", "POSITIONAL")
        if others or node.get("using_columns") or node.get("alias"):
            return False
        node = node["left"]
    return True


def beside(node: Node, right: Node) -> Node:
    if right["type"] != "JOIN":
        return {**node, "right": right, "is_implicit": False}
    return {**right, "left": beside(node, right["left"])}


def alone(of: Sources, node: Node, scope: Scope) -> Item:
    """The join in parentheses, from which Spark sees nothing that is left of them."""
    side = scope.inner(scope.parent)
    if not is_bound(node, side):
        told = "a join that is the right of another and names a column of what is left of it"
        raise Refused(f"{told} (write one join after the other)", where(node), hint=False)
    item = of.item(node, side)
    scope.merged |= side.merged
    return Item(f"({item.text})", item.sources)
