"""Subqueries over columns of the query around them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from runtime.sql.asking.said import GateError
from runtime.sql.asking.scope import Scope, where
from runtime.sql.asking.tree import Node
from runtime.sql.model import Refused

if TYPE_CHECKING:
    from .expr import Expressions


def is_correlated(scope: Scope, query: Node) -> bool:
    """Whether a query node needs columns of those around it: DuckDB does not take it alone then."""
    try:
        scope.gate.describe(scope.gate.text({**query, "cte_map": {"map": scope.ctes + query["cte_map"]["map"]}}))
    except GateError:
        return True
    return False


def of_group(w: Expressions, node: Node, text: str) -> str:
    """A subquery's value beside groups. One over their columns is for Spark a value of the rows, not of the group; in
    all rows of a group it is the same."""
    if not (w.grouped and w.scope.grouped and w.scope.groups and is_correlated(w.scope, node["subquery"]["node"])):
        return text
    if len(w.scope.group_sets) > 1:
        told = "a subquery over columns of GROUPING SETS, ROLLUP or CUBE (write it in a query around the groups)"
        raise Refused(told, where(node), hint=False)
    return f"any_value({text})"
