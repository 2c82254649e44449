"""Subqueries over columns of the query around them, and what such columns make of an expression."""

from __future__ import annotations

from runtime.sql.asking.scope import Scope
from runtime.sql.asking.tree import Node, own
from runtime.sql.scalar import plain


def is_joined(scope: Scope, node: Node) -> bool:
    """Whether a subquery that reads a table is one that Spark makes a join of."""
    return node["subquery_type"] != "SCALAR" or scope.is_correlated(node["subquery"]["node"])


def of_any_row(query: Node) -> Node:
    """The query of an EXISTS without a LIMIT of a row or more: Spark then joins it, and numbers no rows."""

    def is_idle(modifier: Node) -> bool:
        if modifier["type"] != "LIMIT_MODIFIER" or modifier["limit_type"] == "PERCENTAGE" or modifier.get("offset"):
            return False
        text = ((modifier.get("limit") or {}).get("literal") or {}).get("text") or ""
        return text.isdigit() and int(text) > 0

    kept = [modifier for modifier in query["modifiers"] if not is_idle(modifier)]
    return {**query, "modifiers": kept} if len(kept) < len(query["modifiers"]) else query


def is_varying(scope: Scope, node: Node) -> bool:
    """Whether an expression is another one in other rows."""
    parts = list(own(node))
    queries = [part["subquery"]["node"] for part in parts if part.get("class") == "SUBQUERY"]
    named = [part for part in parts if part.get("class") == "COLUMN_REF"]
    return (
        any(part.get("class") == "POSITIONAL_REFERENCE" for part in parts)
        or any(scope.resolve(part["column_names"]) for part in named)
        or any(scope.is_correlated(query) for query in queries)
        or plain.holds_drawn(node)
    )
