"""WHERE and ON: what of a condition stays Spark's, so that it is pushed down and joins stay equi-joins, and what is
DuckDB's.

Of the parts that AND joins, the plain ones are Spark's. A comparison of one side with another is Spark's over what
DuckDB makes of each. All others are one condition of DuckDB's, in the model's order: a part is not computed for rows
that an earlier one left out.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING

from runtime.sql.asking.scope import Source
from runtime.sql.asking.tree import Node, walk
from runtime.sql.asking.types import BOOLEAN, name_quoted
from runtime.sql.expressions import held, tableless
from runtime.sql.scalar import collations, plain
from runtime.sql.scalar.casts import COMPARE, E, compared
from runtime.sql.scalar.spellings import UNUSUAL

if TYPE_CHECKING:
    from runtime.sql.expressions.expr import Expressions


def written(w: Expressions, node: Node) -> str:
    """A WHERE."""
    with w.scope.ungrouped():
        return " AND ".join(parted(w, node))


def unjoined(w: Expressions, node: Node | None) -> list[Node]:
    """The parts of a WHERE over columns of two queries of which Spark makes no join."""
    with w.scope.ungrouped():
        parts = conjuncts(node) if node else []
        mixed = [item for item in parts if w.is_mixed(item) and not is_sparks(w, item)]
        return [item for item in mixed if not is_sided(w, item)]


def apart(w: Expressions, node: Node, left: Sequence[Source], kind: str) -> tuple[list[Node], list[Node]]:
    """The parts of an ON that a join of Spark's of a kind can have, and the others: subqueries over columns of the
    join, and DuckDB's over both sides, which only an inner one has."""
    names = {name_quoted(s.relation) for s in left} | set(map(name_quoted, w.scope.merged))
    plain_parts: list[Node] = []
    mixed: list[Node] = []
    for item in conjuncts(node):
        sides = {of in names for of in sources(w, item)}
        both = kind != "INNER" and len(sides) > 1 and not is_sparks(w, item) and not is_sided(w, item, names)
        (mixed if both or is_asked(w, item, len(sides)) else plain_parts).append(item)
    return plain_parts, mixed


def is_sparks(w: Expressions, item: Node) -> bool:
    """Whether nothing in it is DuckDB's, a subquery over its row alone neither."""
    within = [n for n in walk(item) if n.get("class") == "SUBQUERY"]
    return plain.is_plain(w, item) and not any(tableless.is_tableless(w, n) for n in within)


def is_asked(w: Expressions, item: Node, sides: int) -> bool:
    """Whether a subquery below needs columns of the join, one that is a value of any, another of both sides."""
    return any(
        (n["subquery_type"] == "SCALAR" or sides > 1) and w.scope.is_correlated(n["subquery"]["node"])
        for n in tableless.others(w, item)
    )


def matching(w: Expressions, first: E, items: Sequence[Node]) -> str:
    """Whether these hold where the first does."""
    asked = list(filter(holds_subquery, items))
    texts = [first.text, *(around_subquery(w, item) for item in asked)]
    if others := [item for item in items if item not in asked]:
        found = selecting(w, "CONJUNCTION_AND", others)
        texts.append(w.over("CASE WHEN {0} THEN {1} END", [first, found], BOOLEAN, others[0]).text)
    return "(" + " AND ".join(texts) + ")"


def conjuncts(node: Node) -> list[Node]:
    if node["class"] == "CONJUNCTION" and node["type"] == "CONJUNCTION_AND":
        return [part for child in node["children"] for part in conjuncts(child)]
    return [collations.compared(node)]


def parted(w: Expressions, node: Node) -> list[str]:
    return of_parts(w, conjuncts(node))


def of_parts(w: Expressions, items: Sequence[Node]) -> list[str]:
    out: list[str] = []
    others: list[Node] = []
    for item in items:
        if plain.is_plain(w, item):
            with w.at():
                text = w.condition(item)
            if others and UNUSUAL in text:  # it would meet what DuckDB's parts keep from it
                w.plain[id(item)] = False
                others.append(item)
            else:
                out.append(text)
        elif is_sided(w, item):
            out.append(held.held(w, [item], sided(w, item)))
        elif holds_subquery(item):
            out += [around_subquery(w, item)]
        else:
            others.append(item)
    if others:
        with w.at():
            out.append(held.held(w, others, selecting(w, "CONJUNCTION_AND", others).text))
    return out


def selecting(w: Expressions, kind: str, items: Sequence[Node]) -> E:
    """AND or OR as DuckDB selects rows by it: one part is not computed where another has decided already, and NULL is
    as good as false."""
    found = [
        selecting(w, item["type"], item["children"])
        if item["class"] == "CONJUNCTION"
        else w.cast(w.write(item), BOOLEAN, item)
        for item in items
    ]
    sql = f"{{{len(found) - 1}}}"
    for at in reversed(range(len(found) - 1)):
        sql = f"CASE WHEN {{{at}}} THEN {sql if kind == 'CONJUNCTION_AND' else f'true ELSE {sql}'} END"
    return found[0] if len(found) == 1 else w.over(sql, found, BOOLEAN, items[0])


def around_subquery(w: Expressions, item: Node) -> str:
    """AND, OR and NOT around a subquery's answer are Spark's, which joins it."""
    if item["class"] == "CONJUNCTION":
        word = " AND " if item["type"] == "CONJUNCTION_AND" else " OR "
        return "(" + word.join(around_subquery(w, child) for child in item["children"]) + ")"
    if item["class"] == "OPERATOR" and item["type"] == "OPERATOR_NOT":
        return f"(NOT {around_subquery(w, item['children'][0])})"
    with w.at():
        return w.condition(item)


def holds_subquery(item: Node) -> bool:
    """Whether IN (SELECT …) or EXISTS stands below, whose answer is a join."""
    return any(n.get("class") == "SUBQUERY" and n["subquery_type"] != "SCALAR" for n in walk(item))


def is_sided(w: Expressions, item: Node, names: Collection[str] = ()) -> bool:
    """Whether it compares a value of some tables with one of others, in a type that Spark compares; each over one side
    of a join, if `names` are those of its left."""
    if item["class"] != "COMPARISON" or item["type"] not in COMPARE:
        return False
    a, b = (sources(w, item[side]) for side in ("left", "right"))
    kinds = [w.type(item[side]) for side in ("left", "right")]
    if names and any(len({name in names for name in of - {""}}) > 1 for of in (a, b)):
        return False
    return bool(a and b) and not a & b and plain.comparable(*kinds) and not collations.holds(item)


def sided(w: Expressions, item: Node) -> str:
    found = []
    for side in ("left", "right"):
        with w.at():
            found.append(w.write(item[side]))
    return compared(item["type"], *found)


def sources(w: Expressions, node: Node) -> set[str]:
    """The tables of the columns below, those of queries around it as one."""
    out = set()
    for part in walk(node):
        if part.get("class") == "COLUMN_REF" and (found := w.scope.resolve(part["column_names"])):
            out.add(found[0].split(".")[0] if found[3] is w.scope else "")
    return out
