"""What DuckDB computes from a subquery over columns of the query around it stays where it is written.

Spark makes a join of such a subquery where it stands in a filter or a projection. A call of DuckDB's around it hides
it: Spark would push the condition into a join first, where the subquery is never joined.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from runtime.sql.asking.tree import Node
from runtime.sql.asking.types import Type

from . import tableless

if TYPE_CHECKING:
    from .expr import Expressions


#: True, and another one for each task to the optimizer: so it moves no subquery below a UNION ALL, where it fails.
HERE = "spark_partition_id() >= 0"


def held(w: Expressions, items: Sequence[Node], text: str) -> str:
    """The text of these, kept in its place if there are such subqueries in it; Spark moves nothing that differs from
    task to task."""
    found = tableless.others(w, items) if w.calls.holds(text) else []
    if any(n["subquery_type"] == "SCALAR" and w.scope.is_correlated(n["subquery"]["node"]) for n in found):
        return f"CASE WHEN {HERE} THEN {text} END"
    return text


def column(w: Expressions, node: Node, kind: Type) -> str:
    """One of a select list."""
    return held(w, [node], w.as_type(node, kind).text)


def condition(w: Expressions, node: Node) -> str:
    """HAVING or QUALIFY."""
    with w.at():
        return held(w, [node], w.condition(node))
