"""ROLLUP, CUBE and GROUPING SETS with a group of all rows: over no rows DuckDB shows that group, Spark shows none.

So the groups are followed by what the same SELECT says of no rows at all, where there are none: each key is NULL there,
each aggregate that of nothing.
"""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING, Any

from runtime.sql.asking.gate import conjunction, expression
from runtime.sql.asking.scope import Columns, Scope
from runtime.sql.asking.tree import UNNESTING, Node, first_offset, is_called, own, replaced, walk
from runtime.sql.expressions.expr import Expressions
from runtime.sql.model import Refused

from .aliases import substitute
from .stars import every

if TYPE_CHECKING:
    from .query import Queries


def written(of: Queries, node: Node, scope: Scope) -> tuple[str, Columns]:
    """Spark text and columns of a SELECT."""
    text, columns = of.select(node, scope)
    sets = scope.group_sets
    if len(sets) > 1 and scope.parent is not None and scope.is_correlated(node):
        told = "ROLLUP, CUBE or GROUPING SETS in a correlated subquery"
        raise Refused(f"{told} (group by the columns of the query around, and join)", first_offset(node), hint=False)
    if len(sets) < 2 or all(sets):
        return text, columns
    apart = scope.inner(scope.parent)
    other, found = of.select(of_no_rows(of.expressions(scope), node), apart)
    return f"SELECT * FROM ({text}) UNION ALL {of.shaped(other, found, columns, node)}", columns


def of_no_rows(w: Expressions, node: Node) -> Node:
    """The SELECT as one group of no rows, which is left out where there are some."""
    keys = {w.form(group): group for group in w.scope.groups}
    clauses = ("select_list", "having", "qualify")
    select = node | {clause: without_keys(w, node.get(clause), keys) for clause in clauses}
    having = [none_of(w, node), *filter(None, [select["having"]])]
    return select | {
        "group_expressions": [],
        "group_sets": [],
        "where_clause": expression("false"),
        "having": conjunction(having),
        "modifiers": [m for m in node["modifiers"] if m["type"] == "LIMIT_MODIFIER"],
    }


def without_keys(w: Expressions, value: Any, keys: dict[str, Node]) -> Any:
    """Expressions with NULL for each key; not below an aggregate, which is of rows."""

    def one(node: Node) -> Node | None:
        if is_called(node, w.scope.gate.aggregates):
            return node
        alias = node.get("alias") or ""
        if "class" in node and (group := keys.get(w.form(node))):
            return {**expression(f"CAST(NULL AS {w.type(group)})"), "alias": alias}
        if node.get("class") == "SUBQUERY":  # what is compared with its rows is of the group
            return {**node, "child": replaced(node["child"], one)}
        if node.get("type") == "GROUPING_FUNCTION":
            return {**expression(f"CAST({2 ** len(node['children']) - 1} AS BIGINT)"), "alias": alias}
        return None

    return replaced(value, one)


def none_of(w: Expressions, node: Node) -> Node:
    """That FROM and WHERE have no rows."""
    found = copy.deepcopy(expression("NOT EXISTS (SELECT 1 FROM t WHERE true)"))
    aliases = {item["alias"].lower(): {**item, "alias": ""} for item in node["select_list"] if item.get("alias")}
    inner = next(part["subquery"]["node"] for part in walk(found) if "subquery" in part)
    unnested = [n for n in own(node["select_list"]) if is_called(n, UNNESTING)]
    inner["select_list"] = unnested or inner["select_list"]
    inner["from_table"] = node["from_table"]
    where = node.get("where_clause")
    inner["where_clause"] = substitute(every(where, w.scope), aliases, w.scope) if where else None
    return found
