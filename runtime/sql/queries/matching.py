"""Joins by what no join of Spark's compares: outer, semi and anti ones whose condition DuckDB computes over both sides,
and any with a subquery over their columns.

Each row of the side that is kept gets a number, and is joined by what of the condition is Spark's; DuckDB says which of
the pairs match. Kept are those pairs, and of a row without any the row alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from runtime.sql.asking.scope import Scope, Source, where
from runtime.sql.asking.tree import Node
from runtime.sql.asking.types import BOOLEAN, name_quoted
from runtime.sql.model import Refused
from runtime.sql.scalar.casts import E

from . import conditions

if TYPE_CHECKING:
    from .source import Item, Sources

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

    if kind in ("FULL", "INNER"):
        return (full if kind == "FULL" else inner)(of, node, left, right, scope, ast)
    sides = [renamed(left.sources, f"__l{number}", "l"), renamed(right.sources, f"__r{number}", "r")]
    kept, other = sides[::-1] if kind == "RIGHT" else sides
    both = Scope(scope.gate, scope.parent, scope.ctes, scope.tables, sides[0] + sides[1], dict(scope.merged), ast)
    w = of.queries.expressions(both)
    plain, mixed = conditions.apart(w, node["condition"], sides[0], kind)
    with w.at():
        on = " AND ".join(conditions.of_parts(w, plain)) or "true"
    has = E(f"{name_quoted(other[0].relation)}.__has", BOOLEAN)
    with w.at():
        ok = conditions.matching(w, has, mixed)

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
    text = f"(SELECT {', '.join(items)} FROM ({rows} FROM ({pairs})) WHERE {KEPT[kind]}) AS __m{number}"
    for source, new in zip(left.sources + right.sources, sides[0] + sides[1], strict=True):
        source.within, source.spark = f"__m{number}", new.spark
    return of.made(text, left.sources if kind in ("SEMI", "ANTI") else left.sources + right.sources)


def inner(of: Sources, node: Node, left: Item, right: Item, scope: Scope, ast: Node) -> Item:
    """An inner join with a subquery over its columns, which Spark answers in a WHERE."""
    number = of.queries.number()
    sides = [renamed(left.sources, f"__l{number}", "l"), renamed(right.sources, f"__r{number}", "r")]
    both = Scope(scope.gate, scope.parent, scope.ctes, scope.tables, sides[0] + sides[1], dict(scope.merged), ast)
    w = of.queries.expressions(both)
    plain, asked = conditions.apart(w, node["condition"], sides[0], "INNER")
    on, ok = (" AND ".join(conditions.of_parts(w, items)) for items in (plain, asked))

    tables = [
        f"(SELECT {picked(item.sources, after)}{merged(scope, item is left)} FROM {item.text}) AS "
        f"{name_quoted(after[0].relation)}"
        for item, after in zip((left, right), sides, strict=True)
    ]
    shown = [*names(sides[0]), *names(sides[1]), *map(name_quoted, scope.merged)]
    text = f"(SELECT {', '.join(shown)} FROM {tables[0]} JOIN {tables[1]} ON {on or 'true'} WHERE {ok}) AS __m{number}"
    for source, new in zip(left.sources + right.sources, sides[0] + sides[1], strict=True):
        source.within, source.spark = f"__m{number}", new.spark
    return of.made(text, left.sources + right.sources)


def full(of: Sources, node: Node, left: Item, right: Item, scope: Scope, ast: Node) -> Item:
    """A FULL JOIN: a pair that does not match may stand for a row of each side that is alone."""
    number = of.queries.number()
    sides = [renamed(left.sources, f"__l{number}", "l"), renamed(right.sources, f"__r{number}", "r")]
    both = Scope(scope.gate, scope.parent, scope.ctes, scope.tables, sides[0] + sides[1], dict(scope.merged), ast)
    w = of.queries.expressions(both)
    plain, mixed = conditions.apart(w, node["condition"], sides[0], "FULL")
    with w.at():
        on = " AND ".join(conditions.of_parts(w, plain)) or "true"
    with w.at():
        ok = conditions.matching(w, E("(__id_l IS NOT NULL AND __id_r IS NOT NULL)", BOOLEAN), mixed)

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
    text = f"(SELECT {', '.join(items)} FROM (SELECT *, {counts} FROM ({pairs})) {kinds}) AS __m{number}"
    for source, new in zip(left.sources + right.sources, sides[0] + sides[1], strict=True):
        source.within, source.spark = f"__m{number}", new.spark
    return of.made(text, left.sources + right.sources)


def merged(scope: Scope, is_left: bool) -> str:
    """The columns that a USING to the left has made one, under their names."""
    return "".join(f", {name_quoted(name)}" for name in scope.merged) if is_left else ""


def renamed(sources: Sequence[Source], within: str, letter: str) -> list[Source]:
    """The sources as columns `l0`, `l1`… of one query."""
    out, count = [], 0
    for source in sources:
        spark = {name: f"{letter}{count + at}" for at, (name, _) in enumerate(source.columns)}
        count += len(spark)
        out.append(Source(source.alias, source.columns, source.schema, source.hidden, within, spark))
    return out


def names(sources: Sequence[Source]) -> list[str]:
    return [name for source in sources for name in source.spark.values()]


def picked(before: Sequence[Source], after: Sequence[Source]) -> str:
    return ", ".join(
        f"{one.text(name)} AS {new.spark[name]}"
        for one, new in zip(before, after, strict=True)
        for name, _ in one.columns
    )
