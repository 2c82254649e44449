"""COLLATE: what it compares and orders by, as functions of DuckDB's over the text.

DuckDB keeps a collation with the type of a column, Spark's text does not hold it: within a row it is DuckDB's, as a key
of an order it is one of these functions, and as a column that others may compare it is refused.
"""

from __future__ import annotations

from runtime.sql.asking.scope import call, where
from runtime.sql.asking.tree import Node, walk
from runtime.sql.asking.types import Type
from runtime.sql.model import Refused

FUNCTIONS = {"nocase": "lower", "noaccent": "strip_accents", "nfc": "nfc_normalize"}
PLAIN = ("binary", "c", "posix")


def holds(node: Node) -> bool:
    return any(n.get("class") == "COLLATE" for n in walk(node))


def is_collated(node: Node, kind: Type) -> bool:
    """Whether a value of this type may have kept a collation that stands below."""
    return "VARCHAR" in str(kind) and holds(node)


def key(node: Node, kind: Type) -> Node:
    """What an order by the expression, which has this type, is an order by."""
    if node["class"] != "COLLATE":
        if is_collated(node, kind):
            raise Refused(
                "a key of GROUP BY, ORDER BY or PARTITION BY with COLLATE within (write it last)", where(node)
            )
        return node
    return under(node["child"], node["collation"])


def under(node: Node, collation: str) -> Node:
    if node["class"] == "COLLATE" and node["collation"].lower() == collation.lower():
        return under(node["child"], collation)
    if holds(node):
        raise Refused("COLLATE within COLLATE", where(node))
    for name in collation.lower().split("."):
        if name not in FUNCTIONS and name not in PLAIN:
            raise Refused(f"COLLATE {collation}", where(node))
        node = call(FUNCTIONS[name], node) if name in FUNCTIONS else node
    return node


def compared(node: Node) -> Node:
    """A comparison as one of what its collation makes of both sides."""
    if node["class"] != "COMPARISON":
        return node
    sides = node["left"], node["right"]
    names = {side["collation"].lower() for side in sides if side["class"] == "COLLATE"}
    if len(names) != 1:
        return node
    left, right = (under(s["child"] if s["class"] == "COLLATE" else s, *names) for s in sides)
    return {**node, "left": left, "right": right}
