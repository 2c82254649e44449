"""IN (SELECT …), and = ANY, > ANY and the like: Spark's own, or written out with their NULLs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from runtime.sql.asking.scope import Columns, where
from runtime.sql.asking.tree import Node
from runtime.sql.asking.types import BOOLEAN, TIMESTAMP, Type
from runtime.sql.grouping import equality
from runtime.sql.model import Refused
from runtime.sql.scalar import collations, plain
from runtime.sql.scalar.casts import E, common, compared

if TYPE_CHECKING:
    from .expr import Expressions


def one(w: Expressions, node: Node, text: str, kind: Type) -> E:
    """`x IN (SELECT …)` and `x > ANY (SELECT …)`: Spark's own where NULL and false come to the same, else written
    out, since Spark makes false of NULL."""
    if collations.holds(node["child"]):
        raise Refused("COLLATE with IN (SELECT …)", where(node), hint=False)
    if plain.holds_drawn(node["child"]):
        raise Refused("a drawn value IN (SELECT …)", where(node), hint=False)
    with w.at(grouped=w.grouped):
        left = w.write(node["child"])
    nested = left.type == kind or kind.letter == "l" and "FLOAT" not in f"{left.type} {kind}"
    if node["comparison_type"] in ("COMPARE_EQUAL", "COMPARE_NOTEQUAL") and kind.letter in "lr" and nested:
        equality.check(kind, node, "IN (SELECT …) over")
    else:
        left, text, kind = shaped(w, node, left, text, kind)
    if id(node) in w.plain_in and node["comparison_type"] == "COMPARE_EQUAL":
        return E(f"({left.text} IN ({text}))", BOOLEAN)
    name = f"__in{w.queries.number()}"
    rows, one = f"SELECT 1 FROM ({text}) AS {name}(v)", E(f"{name}.v", kind)
    found = f"EXISTS ({rows} WHERE {compared(node['comparison_type'], left, one)})"
    unknown = f"({left.text} IS NULL AND EXISTS ({rows})) OR EXISTS ({rows} WHERE {one.text} IS NULL)"
    return E(f"CASE WHEN {found} THEN true WHEN {unknown} THEN CAST(NULL AS BOOLEAN) ELSE false END", BOOLEAN)


def shaped(w: Expressions, node: Node, left: E, text: str, kind: Type) -> tuple[E, str, Type]:
    """The value and the subquery in the type in which DuckDB compares them."""
    if (left.type.letter, kind.letter) == ("i", "i"):
        return left, text, kind
    to = common(left.type, kind)
    if {left.type.name, kind.name} == {"DATE", "TIMESTAMP"}:
        to = TIMESTAMP
    if to is None or not plain.comparable(to, to):
        raise Refused(f"{left.type} IN (SELECT {kind})", where(node), hint=False)
    with w.at(grouped=w.grouped):
        left = w.cast(left, to, node)
    return left, w.queries.shaped(text, [("v", kind)], [("v", to)], node)[1:-1], to


def several(w: Expressions, node: Node, text: str, columns: Columns) -> E:
    """`(a, b) IN (SELECT …)`, column by column."""
    child = node["child"]
    items = [a["expression"] for a in child["arguments"]] if child.get("function_name") == "row" else []
    kinds = [common(w.type(item), kind) for item, (_, kind) in zip(items, columns, strict=False)]
    wanted = [kind for kind in kinds if kind and plain.comparable(kind, kind)]
    if not len(items) == len(columns) == len(wanted):
        raise Refused("IN (SELECT …) over several columns of other types", where(node), hint=False)
    with w.at(grouped=w.grouped):
        left = [w.cast(w.write(item), kind, item) for item, kind in zip(items, wanted, strict=True)]
    text = w.queries.shaped(text, columns, [(f"v{i}", kind) for i, kind in enumerate(wanted)], node)[1:-1]
    if id(node) in w.plain_in:
        return E(f"(({', '.join(e.text for e in left)}) IN ({text}))", BOOLEAN)
    name = f"__in{w.queries.number()}"
    rows = f"SELECT 1 FROM ({text}) AS {name}({', '.join(f'v{i}' for i in range(len(left)))}) WHERE "
    equal = [f"({e.text} = {name}.v{i})" for i, e in enumerate(left)]
    unlike = [f"coalesce({same}, true)" for same in equal]
    found, unknown = (f"EXISTS ({rows}{' AND '.join(parts)})" for parts in (equal, unlike))
    return E(f"CASE WHEN {found} THEN true WHEN {unknown} THEN CAST(NULL AS BOOLEAN) ELSE false END", BOOLEAN)
