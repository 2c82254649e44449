"""UNION, EXCEPT and INTERSECT; an order or a limit of theirs is that of a SELECT around them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from runtime.sql.asking.gate import gate
from runtime.sql.asking.said import GateError
from runtime.sql.asking.scope import Columns, Scope
from runtime.sql.asking.tree import Node, first_offset, replaced
from runtime.sql.asking.types import Type, name_quoted
from runtime.sql.grouping import equality
from runtime.sql.model import Refused

if TYPE_CHECKING:
    from .query import Queries

SETS = {"UNION": "UNION", "UNION_BY_NAME": "UNION", "EXCEPT": "EXCEPT", "INTERSECT": "INTERSECT"}


def write(of: Queries, node: Node, scope: Scope) -> tuple[str, Columns]:
    kind = node["setop_type"]
    if kind not in SETS:
        raise Refused(kind.replace("_", " "), first_offset(node))
    if any(m["type"] != "DISTINCT_MODIFIER" for m in node["modifiers"]):
        return of.select(around(node), scope)
    try:
        columns = scope.describe({**node, "cte_map": {"map": scope.ctes}})
    except GateError as error:
        raise Refused(f"this set operation ({error.message})", first_offset(node)) from None
    pieces = []
    for child in node["children"]:
        text, found = of.write(child, scope.parent, scope)
        if kind == "UNION_BY_NAME":
            text, found = by_name(text, found, columns)
        pieces.append(of.shaped(text, found, columns, child))
    word = f"{SETS[kind]}{' ALL' if node.get('setop_all') else ''}"
    for _, kind_of in columns if word != "UNION ALL" else ():
        equality.check(kind_of, node, f"{word} over")
    return f" {word} ".join(pieces), columns


def around(node: Node) -> Node:
    """A set operation as what a SELECT around it reads, with its order and limit: by its columns, which may have had
    tables in it."""
    select: Node = gate().parse("SELECT * FROM (SELECT 1)")["node"]
    table = select["from_table"]
    own = [m for m in node["modifiers"] if m["type"] == "DISTINCT_MODIFIER"]
    inner = {**node, "modifiers": own, "cte_map": {"map": []}}
    return {
        **select,
        "from_table": {**table, "subquery": {**table["subquery"], "node": inner}},
        "modifiers": [replaced(m, untabled) for m in node["modifiers"] if m not in own],
    }


def untabled(item: Node) -> Node | None:
    return {**item, "column_names": item["column_names"][-1:]} if item.get("class") == "COLUMN_REF" else None


def by_name(text: str, found: Columns, columns: Columns) -> tuple[str, Columns]:
    have = {n.lower(): (n, t) for n, t in found}
    picked = [have.get(n.lower()) for n, _ in columns]
    texts = [
        f"{name_quoted(p[0])} AS {name_quoted(n)}" if p else f"NULL AS {name_quoted(n)}"
        for p, (n, _) in zip(picked, columns, strict=True)
    ]
    shaped = [(n, p[1] if p else Type("NULL")) for p, (n, _) in zip(picked, columns, strict=True)]
    return f"SELECT {', '.join(texts)} FROM ({text}) AS __n", shaped
