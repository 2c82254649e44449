"""IN (SELECT …), and = ANY, > ANY and the like: Spark's own, or written out with their NULLs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from . import collations, plain
from .casts import E, compared
from .clauses import groupable
from .model import Refused
from .scope import Columns, where
from .tree import Node
from .types import BOOLEAN, Type

if TYPE_CHECKING:
    from .expr import Expressions


def one(w: Expressions, node: Node, text: str, kind: Type) -> E:
    """`x IN (SELECT …)` and `x > ANY (SELECT …)`: Spark's own where NULL and false come to the same, else written
    out, since Spark makes false of NULL."""
    if collations.holds(node["child"]):
        raise Refused("COLLATE with IN (SELECT …)", where(node), hint=False)
    with w.at(grouped=w.grouped):
        left = w.write(node["child"])
    if node["comparison_type"] in ("COMPARE_EQUAL", "COMPARE_NOTEQUAL") and kind.letter in "lr":
        groupable(kind, node, "IN (SELECT …) over")
    elif left.type != kind and (left.type.letter, kind.letter) != ("i", "i") or not plain.comparable(kind, kind):
        raise Refused(f"{left.type} IN (SELECT {kind})", where(node), hint=False)
    if id(node) in w.plain_in and node["comparison_type"] == "COMPARE_EQUAL":
        return E(f"({left.text} IN ({text}))", BOOLEAN)
    name = f"__in{w.queries.number()}"
    rows, one = f"SELECT 1 FROM ({text}) AS {name}(v)", E(f"{name}.v", kind)
    found = f"EXISTS ({rows} WHERE {compared(node['comparison_type'], left, one)})"
    unknown = f"({left.text} IS NULL AND EXISTS ({rows})) OR EXISTS ({rows} WHERE {one.text} IS NULL)"
    return E(f"CASE WHEN {found} THEN true WHEN {unknown} THEN CAST(NULL AS BOOLEAN) ELSE false END", BOOLEAN)


def several(w: Expressions, node: Node, text: str, columns: Columns) -> E:
    """`(a, b) IN (SELECT …)`, column by column."""
    child = node["child"]
    items = [a["expression"] for a in child["arguments"]] if child.get("function_name") == "row" else []
    kinds = [(w.type(item), kind) for item, (_, kind) in zip(items, columns, strict=False)]
    if len(items) != len(columns) or any(a != b or not plain.comparable(a, b) for a, b in kinds):
        raise Refused("IN (SELECT …) over several columns of other types", where(node), hint=False)
    with w.at(grouped=w.grouped):
        left = [w.write(item) for item in items]
    if id(node) in w.plain_in:
        return E(f"(({', '.join(e.text for e in left)}) IN ({text}))", BOOLEAN)
    name = f"__in{w.queries.number()}"
    rows = f"SELECT 1 FROM ({text}) AS {name}({', '.join(f'v{i}' for i in range(len(left)))}) WHERE "
    equal = [f"({e.text} = {name}.v{i})" for i, e in enumerate(left)]
    unlike = [f"coalesce({same}, true)" for same in equal]
    found, unknown = (f"EXISTS ({rows}{' AND '.join(parts)})" for parts in (equal, unlike))
    return E(f"CASE WHEN {found} THEN true WHEN {unknown} THEN CAST(NULL AS BOOLEAN) ELSE false END", BOOLEAN)
