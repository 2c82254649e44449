"""GROUP BY, DISTINCT and PARTITION BY: what stands for a value where DuckDB finds others equal than Spark does."""

from __future__ import annotations

from typing import TYPE_CHECKING

from runtime.sql.asking.gate import gate
from runtime.sql.asking.scope import Columns, where
from runtime.sql.asking.tree import Node, is_called, own
from runtime.sql.asking.types import Type
from runtime.sql.model import Refused
from runtime.sql.scalar import collations, plain
from runtime.sql.scalar.casts import E

from .orders import length

if TYPE_CHECKING:
    from runtime.sql.expressions.expr import Expressions

#: Types without a letter of which Spark finds equal what DuckDB does.
OTHERS = ("UUID", "ENUM", "ARRAY", "BIT", "TIMESTAMP_NS")


def is_alike(kind: Type) -> bool:
    """Whether Spark finds equal what DuckDB does: all but maps, whose order counts, and intervals, which are texts."""
    plain = kind.letter not in "mv" and (kind.letter != "?" or kind.name in OTHERS)
    return plain and all(map(is_alike, kind.args))


def check(kind: Type, node: Node, what: str) -> None:
    if not is_alike(kind):
        raise Refused(f"{what} a value of type {kind}", where(node))


def check_distinct(kind: Type, node: Node) -> None:
    """The same of DISTINCT where it is not a GROUP BY of all columns."""
    check(kind, node, "DISTINCT over")
    if collations.is_collated(node, kind):
        raise Refused("DISTINCT over COLLATE beside a window or a group", where(node), hint=False)


def stands(w: Expressions, node: Node) -> bool:
    """Whether an expression is its own key."""
    return is_alike(w.type(node)) and not collations.is_collated(node, w.type(node))


def key(w: Expressions, node: Node, what: str) -> str:
    """Spark's text of what is equal for equal values of an expression."""
    return of_value(w, w.write(collations.key(node, w.type(node))), node, what)


def group(w: Expressions, node: Node) -> str:
    """The key of a group."""
    if plain.holds_drawn(node):
        raise Refused("GROUP BY a drawn value, of which each mention is another one,", where(node), hint=False)
    return key(w, node, "GROUP BY")


def of_value(w: Expressions, e: E, node: Node, what: str) -> str:
    if e.type.name == "INTERVAL":
        return length(w, e, node).text
    if e.type.name == "MAP" and all(map(is_alike, e.type.args)):
        return f"map_entries({e.text})"
    check(e.type, node, what)
    return e.text


def groups(w: Expressions) -> dict[str, Node]:
    """The expressions of GROUP BY by their forms, those that are their own key and columns left out: for Spark they
    are their groups anyway."""
    out: dict[str, Node] = {}
    for group in w.scope.groups:
        if group["class"] != "COLUMN_REF" or not stands(w, group):
            out.setdefault(w.form(group), group)  # of two that are the same the first
        if collations.is_collated(group, w.type(group)):
            one = collations.key(group, w.type(group))
            out.setdefault(w.form(one), one)
    return out


def of_distinct(select: Node, columns: Columns) -> Node:
    """SELECT DISTINCT as the GROUP BY of all its columns, where one is not its own key."""
    kept = [m for m in select["modifiers"] if m["type"] != "DISTINCT_MODIFIER" or m.get("distinct_on_targets")]
    plain = all(is_alike(kind) for _, kind in columns) and not any(map(collations.holds, select["select_list"]))
    if plain or kept == select["modifiers"] or select["qualify"] or is_summed(select):
        return select
    return {**select, "modifiers": kept, "aggregate_handling": "FORCE_AGGREGATES", "of_distinct": True}


def is_summed(select: Node) -> bool:
    """Whether it has groups, aggregates, windows or unnest()."""
    names = gate().aggregates | {"unnest"}
    if select["group_expressions"] or select["having"] or select["aggregate_handling"] == "FORCE_AGGREGATES":
        return True
    return any(n.get("class") == "WINDOW" or is_called(n, names) for n in own(select["select_list"]))


def any_of(w: Expressions, e: E, group: Node) -> str:
    """A value of the group where its key is another: NULL where the key is rolled up."""
    value = f"any_value({e.text})"
    if len(w.scope.group_sets) < 2:
        return value
    return f"CASE WHEN grouping({key(w, group, 'GROUP BY')}) = 0 THEN {value} END"
