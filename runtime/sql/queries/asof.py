"""ASOF JOIN: of the rows of the right table the nearest one to each row of the left.

Both tables are put in one order, in which each row of the left takes the last row of the right before it: the rows of a
key are looked through once, and not once for each of them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from runtime.sql.asking.gate import conjunction, expression
from runtime.sql.asking.scope import Scope, Source, column, where
from runtime.sql.asking.tree import Node, paths
from runtime.sql.asking.types import Type, name_quoted
from runtime.sql.expressions.expr import Expressions
from runtime.sql.grouping import as_read
from runtime.sql.model import Refused
from runtime.sql.scalar.casts import common

from . import conditions
from .item import Item, names, picked, placed, renamed

if TYPE_CHECKING:
    from .source import Sources

DOWN = ("COMPARE_GREATERTHAN", "COMPARE_GREATERTHANOREQUALTO")
UP = ("COMPARE_LESSTHAN", "COMPARE_LESSTHANOREQUALTO")


@dataclass
class Nearest:
    """What an ASOF JOIN compares: pairs of keys that are equal, each the left and the right side, and the pair of which
    the right is the nearest `below` (or above) the left, itself too if `touching`; conditions of one side alone."""

    near: tuple[Node, Node]
    below: bool
    touching: bool
    equal: list[tuple[Node, Node]]
    left: list[Node]
    right: list[Node]
    plain: bool = True  # whether that is all


def joined(of: Sources, node: Node, left: Item, right: Item, scope: Scope, ast: Node) -> Item:
    if (
        node["join_type"] not in ("INNER", "LEFT")
        or len(right.sources) != 1
        or node["condition"] is None
        and not node.get("using_columns")
    ):
        raise Refused("this form of ASOF JOIN", where(node))
    compared = of_using(node, left, right) if node.get("using_columns") else node["condition"]
    w = of.queries.expressions(scope.over(left.sources + right.sources, ast))
    found = parted(w, compared, right.sources[0], node)
    if not found.plain or any("LATERAL" in item.text for item in (left, right)):
        return for_each(w, node, left, right, compared, found)
    return in_order(of, w, node, left, right, found, scope)


def parted(w: Expressions, compared: Node, mine: Source, node: Node) -> Nearest:
    parts = conditions.conjuncts(compared)
    unequal = [c for c in parts if c["type"] in DOWN + UP and len(sides(w, c, mine)) > 1]
    if len(unequal) != 1:
        raise Refused("an ASOF JOIN without exactly one inequality", where(node))
    (one,) = unequal
    turned = not only_of(one["right"], mine, w.scope)
    near = (one["right"], one["left"]) if turned else (one["left"], one["right"])
    if not only_of(near[1], mine, w.scope):
        raise Refused("an ASOF JOIN whose inequality does not compare a column of the right table", where(node))

    found = Nearest(near, (one["type"] in DOWN) != turned, one["type"].endswith("OREQUALTO"), [], [], [])
    found.plain = conditions.is_sided(w, one) and comes_to(w, near) is not None
    for part in parts:
        of = sides(w, part, mine)
        if part is one:
            continue
        if len(of) == 1:
            (found.right if True in of else found.left).append(part)
        elif part["type"] == "COMPARE_EQUAL" and conditions.is_sided(w, part):
            turned = not only_of(part["right"], mine, w.scope)
            found.equal.append((part["right"], part["left"]) if turned else (part["left"], part["right"]))
        else:
            found.plain = False
    found.plain &= all(only_of(key[1], mine, w.scope) and comes_to(w, key) for key in found.equal)
    found.plain &= not any(map(w.is_outer, parts)) and not any(map(conditions.holds_subquery, parts))
    return found


def sides(w: Expressions, node: Node, mine: Source) -> set[bool]:
    """Whether columns of the right table stand in it, of others, or of both."""
    return {name == name_quoted(mine.relation) for name in conditions.sources(w, node)}


def only_of(node: Node, source: Source, scope: Scope) -> bool:
    found = list(map(scope.resolve, paths(node)))
    return bool(found) and all(f is not None and f[0].startswith(name_quoted(source.relation) + ".") for f in found)


def comes_to(w: Expressions, pair: tuple[Node, Node]) -> Type | None:
    """The type in which both are compared."""
    return common(w.type(pair[0]), w.type(pair[1]))


def in_order(of: Sources, w: Expressions, node: Node, left: Item, right: Item, found: Nearest, scope: Scope) -> Item:
    number = of.queries.number()
    sides = [renamed(left.sources, f"__a{number}", "l"), renamed(right.sources, f"__a{number}", "r")]
    merged = list(map(name_quoted, scope.merged))
    kept, other = [*names(sides[0]), *merged], names(sides[1])
    beside = [f"__k{i}" for i in range(len(found.equal) + 1)]

    columns = picked(left.sources, sides[0]) + "".join(f", {n}" for n in merged)
    rows = f"SELECT *, 1 AS __s, NULL AS __r FROM ({keyed(w, found, 0, columns, left.text)})"
    pairs = ", ".join(f"'{n}', {n}" for n in other)
    empty = "".join(f"NULL AS {n}, " for n in kept)
    known = " AND ".join(f"{name} IS NOT NULL" for name in beside)
    near = (
        f"SELECT {empty}{', '.join(beside)}, __n, __is, {0 if found.touching else 2}, named_struct({pairs}) "
        f"FROM ({keyed(w, found, 1, picked(right.sources, sides[1]), right.text)}) WHERE __is AND {known}"
    )

    *by, of_near = beside
    way = "ASC NULLS FIRST" if found.below else "DESC NULLS FIRST"
    parts = f"PARTITION BY {', '.join(by)} " if by else ""
    over = f"{parts}ORDER BY {of_near} {way}, __s, __n DESC"
    last = f"last_value(__r, true) OVER ({over} ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW)"
    shown = f"{', '.join(kept)}, __s, CASE WHEN __is THEN {last} END AS __r"
    out = ", ".join([*kept, *(f"__r.{n} AS {n}" for n in other)])
    met = " AND __r IS NOT NULL" if node["join_type"] == "INNER" else ""
    text = f"SELECT {out} FROM (SELECT {shown} FROM ({rows} UNION ALL {near})) WHERE __s = 1{met}"
    sources = left.sources + right.sources
    return placed(text, f"__a{number}", sources, sides[0] + sides[1], sources)


def keyed(w: Expressions, found: Nearest, at: int, columns: str, text: str) -> str:
    """The rows of the left or right table with their keys, their order, and whether they take part."""
    with w.at():
        keys = [f"{key(w, pair, at)} AS __k{i}" for i, pair in enumerate((*found.equal, found.near))]
        own = " AND ".join(conditions.of_parts(w, (found.left, found.right)[at])) or "true"
    return f"SELECT {columns}, {', '.join(keys)}, {as_read.number(w)} AS __n, {own} AS __is FROM {text}"


def key(w: Expressions, pair: tuple[Node, Node], at: int) -> str:
    to = comes_to(w, pair)
    assert to is not None
    return w.cast(w.write(pair[at]), to, pair[at]).text


def for_each(w: Expressions, node: Node, left: Item, right: Item, compared: Node, found: Nearest) -> Item:
    """By other conditions: a lateral query with LIMIT 1."""
    mine = right.sources[0]
    on = " AND ".join(conditions.parted(w, compared))
    columns = ", ".join(f"{mine.text(n)} AS {name_quoted(n)}" for n, _ in mine.columns)
    labels = ", ".join(name_quoted(n) for n, _ in mine.columns)
    with w.at():
        nearest = w.write(found.near[1]).text
    join = "LEFT JOIN" if node["join_type"] == "LEFT" else "JOIN"
    rows = f"SELECT {columns}, {nearest} AS __k FROM {right.text} WHERE {on}"
    first = f"SELECT {labels} FROM ({rows} ORDER BY __k {'DESC' if found.below else 'ASC'} LIMIT 1)"
    text = f"{left.text} {join} LATERAL ({first}) AS {name_quoted(mine.alias)} ON true"
    return Item(text, left.sources + right.sources)


def of_using(node: Node, left: Item, right: Item) -> Node:
    """ASOF … USING (a, b): a is equal, b the nearest. * shows them once."""
    names, mine = node["using_columns"], right.sources[0]
    owners = [s for name in names for s in left.sources if name.lower() in {n.lower() for n, _ in s.columns}]
    if len(owners) != len(names):
        raise Refused("ASOF JOIN USING a column of several tables", where(node), hint=False)
    equal = expression("a.b = a.b")
    parts = [
        {**equal, "left": column(s.alias, name), "right": column(mine.alias, name)}
        for s, name in zip(owners, names, strict=True)
    ]
    parts[-1]["type"] = "COMPARE_GREATERTHANOREQUALTO"
    mine.hidden = mine.hidden | {name.lower() for name in names}
    return conjunction(parts)
