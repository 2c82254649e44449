"""What DuckDB computes from a subquery over columns of the query around it stays where it is written.

Spark makes a join of such a subquery where it stands in a filter or a projection. A call of DuckDB's around it hides
it: Spark would push the condition into a join first, where the subquery is never joined.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from runtime.sql.asking.scope import children, where
from runtime.sql.asking.tree import Node, own, walk
from runtime.sql.asking.types import Type
from runtime.sql.model import Refused

if TYPE_CHECKING:
    from .expr import Expressions


def held(w: Expressions, before: int, text: str) -> str:
    """The text, kept in its place if it has subqueries that were written since; Spark moves nothing that differs from
    task to task."""
    if w.scope.correlated == before or not w.calls.holds(text):
        return text
    return f"CASE WHEN spark_partition_id() >= 0 THEN {text} END"


def column(w: Expressions, node: Node, kind: Type) -> str:
    """One of a select list."""
    before = w.scope.correlated
    text = w.as_type(node, kind).text
    if not w.scope.grouped:
        return held(w, before, text)

    for part in own([node]) if w.scope.parent else ():
        found = w.scope.resolve(part["column_names"]) if part.get("class") == "COLUMN_REF" else None
        if found and found[3] is not w.scope:
            told = "a column of the query around within or beside an aggregate (write it around the subquery)"
            raise Refused(told, where(part), hint=False)
    return text


def condition(w: Expressions, node: Node, above: Sequence[Any] = ()) -> str:
    """HAVING, above which stand these, or QUALIFY."""
    before = w.scope.correlated
    with w.at():
        text = held(w, before, w.condition(node))
    for part in own(above) if w.scope.correlated > before else ():
        if part.get("class") == "WINDOW" and any(is_grouped(w, child) for child in children(part)):
            told = "a subquery over columns of the query around in HAVING, beside a window function over groups"
            raise Refused(f"{told} (write that in a query around)", where(node), hint=False)
    return text


def is_grouped(w: Expressions, node: Node) -> bool:
    return w.scope.has_aggregate(node) or any(n.get("class") == "SUBQUERY" for n in walk(node))
