"""Joins by what no join of Spark's compares: outer, semi and anti ones whose condition DuckDB computes over both sides,
and any with a subquery over their columns.

Each row of the side that is kept gets a number, and is joined by what of the condition is Spark's; DuckDB says which of
the pairs match. Kept are those pairs, and of a row without any the row alone.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from runtime.sql.asking.scope import Scope, Source, where
from runtime.sql.asking.tree import Node
from runtime.sql.asking.types import BOOLEAN, name_quoted
from runtime.sql.model import Refused
from runtime.sql.scalar.casts import E

from . import conditions
from .item import Item, names, picked, placed, renamed

if TYPE_CHECKING:
    from .source import Sources

#: The sources of the left and of the right, as columns of one query each.
Sides = list[list[Source]]
#: Which rows remain of the pairs.
KEPT = {
    "LEFT": "__ok OR (__all = 0 AND __at = 1)",
    "RIGHT": "__ok OR (__all = 0 AND __at = 1)",
    "SEMI": "__all > 0 AND __at = 1",
    "ANTI": "__all = 0 AND __at = 1",
}


def joined(of: Sources, node: Node, left: Item, right: Item, scope: Scope, ast: Node) -> Item:
    kind, number = node["join_type"], of.queries.number()
    if "LATERAL" in (left.text[:7], right.text[:7]):
        told = f"a condition of a {kind} JOIN over columns of both sides that does not compare one side with the other"
        raise Refused(f"{told} (compute it in a subquery, or move it to WHERE)", where(node), hint=False)

    sides = [renamed(left.sources, f"__l{number}", "l"), renamed(right.sources, f"__r{number}", "r")]
    w = of.queries.expressions(scope.over(sides[0] + sides[1], ast))
    plain, mixed = conditions.apart(w, node["condition"], sides[0], kind)
    with w.at():
        on = " AND ".join(conditions.of_parts(w, plain)) or "true"

    def matching(paired: str) -> str:
        with w.at():
            return conditions.matching(w, E(paired, BOOLEAN), mixed)

    if kind == "INNER":
        text = inner(left, right, sides, scope, on, " AND ".join(conditions.of_parts(w, mixed)))
    else:
        text = (full if kind == "FULL" else kept_rows)(kind, left, right, sides, scope, on, matching)
    sources = left.sources + right.sources
    seen = left.sources if kind in ("SEMI", "ANTI") else sources
    return placed(text, f"__m{number}", sources, sides[0] + sides[1], seen)


def kept_rows(
    kind: str, left: Item, right: Item, sides: Sides, scope: Scope, on: str, matching: Callable[[str], str]
) -> str:
    """Of all but a FULL JOIN, one side of which is kept."""
    kept, other = sides[::-1] if kind == "RIGHT" else sides
    ok = matching(f"{name_quoted(other[0].relation)}.__has")
    tables = [
        f"(SELECT {picked(before.sources, after)}{merged(scope, before is left)}, {flag} FROM {before.text}) AS "
        f"{name_quoted(after[0].relation)}"
        for before, after, flag in (
            (right if kind == "RIGHT" else left, kept, "monotonically_increasing_id() AS __id"),
            (left if kind == "RIGHT" else right, other, "true AS __has"),
        )
    ]
    pairs = f"SELECT *, coalesce({ok}, false) AS __ok FROM {tables[0]} LEFT JOIN {tables[1]} ON {on}"
    over = "OVER (PARTITION BY __id ORDER BY __id ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING)"
    rows = f"SELECT *, count_if(__ok) {over} AS __all, row_number() OVER (PARTITION BY __id ORDER BY __id) AS __at"

    out = [*names(kept)] if kind in ("SEMI", "ANTI") else [*names(kept), *names(other)]
    items = [n if n in names(kept) else f"CASE WHEN __ok THEN {n} END AS {n}" for n in out]
    for name in map(name_quoted, scope.merged):
        items.append(f"CASE WHEN __ok THEN {name} END AS {name}" if kind == "RIGHT" else name)
    return f"SELECT {', '.join(items)} FROM ({rows} FROM ({pairs})) WHERE {KEPT[kind]}"


def inner(left: Item, right: Item, sides: Sides, scope: Scope, on: str, ok: str) -> str:
    """An inner join with a subquery over its columns, which Spark answers in a WHERE."""
    tables = [
        f"(SELECT {picked(item.sources, after)}{merged(scope, item is left)} FROM {item.text}) AS "
        f"{name_quoted(after[0].relation)}"
        for item, after in zip((left, right), sides, strict=True)
    ]
    shown = [*names(sides[0]), *names(sides[1]), *map(name_quoted, scope.merged)]
    return f"SELECT {', '.join(shown)} FROM {tables[0]} JOIN {tables[1]} ON {on} WHERE {ok}"


def full(
    kind: str, left: Item, right: Item, sides: Sides, scope: Scope, on: str, matching: Callable[[str], str]
) -> str:
    """A FULL JOIN: a pair that does not match may stand for a row of each side that is alone."""
    ok = matching("(__id_l IS NOT NULL AND __id_r IS NOT NULL)")
    tables = [
        f"(SELECT {picked(item.sources, after)}{merged(scope, item is left)}, monotonically_increasing_id() AS "
        f"__id_{letter} FROM {item.text}) AS {name_quoted(after[0].relation)}"
        for item, after, letter in zip((left, right), sides, "lr", strict=True)
    ]
    pairs = f"SELECT *, coalesce({ok}, false) AS __ok FROM {tables[0]} FULL JOIN {tables[1]} ON {on}"
    counts = ", ".join(
        f"count_if(__ok) OVER (PARTITION BY __id_{side}) AS __all_{side}, row_number() OVER (PARTITION BY __id_{side} "
        f"ORDER BY __id_{side}) AS __at_{side}"
        for side in "lr"
    )
    alone = ", ".join(
        f"CASE WHEN __id_{side} IS NOT NULL AND __all_{side} = 0 AND __at_{side} = 1 THEN '{side}' END" for side in "lr"
    )
    kinds = f"LATERAL VIEW explode(array_compact(array(CASE WHEN __ok THEN 'lr' END, {alone}))) AS __k"
    items = [
        f"CASE WHEN __k IN ('lr', '{letter}') THEN {n} END AS {n}"
        for side, letter in zip(sides, "lr", strict=True)
        for n in [*names(side), *(map(name_quoted, scope.merged) if letter == "l" else ())]
    ]
    return f"SELECT {', '.join(items)} FROM (SELECT *, {counts} FROM ({pairs})) {kinds}"


def merged(scope: Scope, is_left: bool) -> str:
    """The columns that a USING to the left has made one, under their names."""
    return "".join(f", {name_quoted(name)}" for name in scope.merged) if is_left else ""
