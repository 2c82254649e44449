"""Subqueries that read no table, such as `(SELECT max(x) FROM unnest(list) AS u(x))`: within a row, so DuckDB's as they
stand; in FROM as the list of their rows."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from runtime.sql.asking.gate import expression
from runtime.sql.asking.scope import Scope, where
from runtime.sql.asking.tree import Node, own, paths, quoted, walk
from runtime.sql.asking.types import Type
from runtime.sql.grouping import aggregates
from runtime.sql.model import Refused
from runtime.sql.scalar import functions, rowwise
from runtime.sql.scalar.casts import E

if TYPE_CHECKING:
    from .expr import Expressions

TABLES = ("range", "generate_series", "unnest", "json_each", "json_tree")


def is_tableless(w: Expressions, node: Node) -> bool:
    """Whether a subquery's answer comes from its own row alone."""
    below = list(walk(node["subquery"]))
    for part in below:
        if part.get("type") in ("BASE_TABLE", "PIVOT", "SHOW_REF") or part.get("sample"):
            return False
        if part.get("type") == "TABLE_FUNCTION" and part["function"]["function_name"] not in TABLES:
            return False
        if part.get("class") == "WINDOW" or part.get("class") == "FUNCTION" and is_left_open(w, part):
            return False
        if part.get("class") == "COLUMN_REF" and part["column_names"][0].lower() in functions.VOLATILE:
            return False
    return True


def others(w: Expressions, items: Any) -> list[Node]:
    """The subqueries of this level that read a table."""
    return [n for n in own(items) if n.get("class") == "SUBQUERY" and not is_tableless(w, n)]


def is_left_open(w: Expressions, node: Node) -> bool:
    """Whether a function may not run here, or is an aggregate that may be one of the query around it."""
    name = node["function_name"]
    if name in TABLES:
        return False
    if name in w.scope.gate.aggregates:
        return name in aggregates.REFUSED or any(map(w.scope.resolve, paths(node)))
    return name in functions.REFUSED | functions.VOLATILE or name not in w.scope.gate.scalars


def write(w: Expressions, node: Node) -> E:
    """The subquery over one row that has the columns of the queries around it, under their names."""
    kind, inputs = w.type(node), set()
    tables: dict[str, dict[str, int]] = {}
    for part in walk(node if w.scope.is_correlated(node["subquery"]["node"]) else node.get("child") or ()):
        found = w.scope.resolve(part["column_names"]) if part.get("class") == "COLUMN_REF" else None
        if found and found[3] not in (w.scope, w.scope.parent):
            raise Refused("a column of a query around the one around this subquery", where(part), hint=False)
        if found:
            source, name, of = named(w, found[0], part)
            at = w.calls.input(w.place, found[0], of)
            inputs.add(at)
            tables.setdefault(source, {})[name] = at

    rows = ", ".join(
        "(SELECT " + ", ".join(f"i{at} AS {quoted(name)}" for name, at in columns.items()) + f") AS {quoted(alias)}"
        for alias, columns in tables.items()
    )
    text = f"(SELECT {w.scope.gate.spelt(node)}{f' FROM {rows}' if rows else ''})"
    return rowwise.made(w, text, inputs, kind, node)


def named(w: Expressions, text: str, node: Node) -> tuple[str, str, Type]:
    """Table, name and type of a column, by Spark's text of it."""
    scope: Scope | None = w.scope
    while scope:
        for source in scope.sources:
            for name, kind in source.columns:
                if source.text(name) == text:
                    return source.alias, name, kind
        scope = scope.parent
    raise Refused("a subquery over a column of USING", where(node), hint=False)


def rows(w: Expressions, node: Node) -> E:
    """The rows of a query over the columns around it, as a list of structs."""
    select = expression("(SELECT list(__r) FROM (SELECT 1) AS __r)")
    outer = select["subquery"]["node"]
    table = {**outer["from_table"], "subquery": {**outer["from_table"]["subquery"], "node": node}}
    return write(w, {**select, "subquery": {**select["subquery"], "node": {**outer, "from_table": table}}})
