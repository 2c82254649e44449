"""Subqueries that read no table, such as `(SELECT max(x) FROM unnest(list) AS u(x))`: within a row, so DuckDB's as they
stand; in FROM as the list of their rows."""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING, Any

from runtime.sql.asking.gate import expression
from runtime.sql.asking.scope import Scope, column, where
from runtime.sql.asking.tree import MAKING, Node, below, is_called, own, paths, quoted, replaced, walk
from runtime.sql.asking.types import Type, name_quoted
from runtime.sql.grouping import aggregates
from runtime.sql.model import Refused
from runtime.sql.scalar import functions, rowwise
from runtime.sql.scalar.casts import E

if TYPE_CHECKING:
    from .expr import Expressions

#: The table that has the columns of USING.
MERGED = "__u"


def is_tableless(w: Expressions, node: Node) -> bool:
    """Whether a subquery's answer comes from its own row alone."""
    if is_list(node):
        return True
    below = list(walk(node["subquery"]))
    inner = {name.lower() for part in below for name in [*(part.get("column_name_alias") or []), *from_alias(part)]}
    for part in below:
        if part.get("type") in ("BASE_TABLE", "PIVOT", "SHOW_REF") or part.get("sample"):
            return False
        if part.get("type") == "TABLE_FUNCTION" and part["function"]["function_name"] not in MAKING:
            return False
        if part.get("class") == "WINDOW" or part.get("class") == "FUNCTION" and is_left_open(w, part, inner):
            return False
        if part.get("class") == "COLUMN_REF" and part["column_names"][0].lower() in functions.VOLATILE:
            return False
    return True


def is_list(node: Node) -> bool:
    """Whether it is `x = ANY (list)`, parsed as `x = ANY (SELECT unnest(list))`, in which a window function would be
    over the one row of that."""
    query = node["subquery"]["node"]
    items = query.get("select_list") or []
    if not node.get("child") or len(items) != 1 or not is_called(items[0], ("unnest",)):
        return False
    if any(part.get("class") == "WINDOW" for part in own(items)):
        return False
    others = [query[key] for key in ("where_clause", "having", "qualify", "modifiers", "group_expressions", "sample")]
    return query["from_table"]["type"] == "EMPTY" and not any(others) and len(items[0]["arguments"]) == 1


def others(w: Expressions, items: Any) -> list[Node]:
    """The subqueries of this level that read a table."""
    return [n for n in own(items) if n.get("class") == "SUBQUERY" and not is_tableless(w, n)]


def from_alias(part: Node) -> list[str]:
    return [part["alias"]] if part.get("alias") and "column_name_alias" in part else []


def is_left_open(w: Expressions, node: Node, inner: Collection[str]) -> bool:
    """Whether a function may not run here, or is an aggregate that may be one of the query around it; `inner` are names
    from FROM within."""
    name = node["function_name"]
    if name in MAKING:
        return False
    if name in w.scope.gate.aggregates:
        found = [path[0].lower() not in inner and w.scope.resolve(path) is not None for path in paths(node)]
        closed = not all(found) and not any(part.get("class") == "LAMBDA" for part in walk(node))
        return name in aggregates.REFUSED or any(found) and not closed
    return name in functions.REFUSED | functions.VOLATILE or name not in w.scope.gate.scalars


def write(w: Expressions, node: Node) -> E:
    """The subquery over one row that has the columns of the queries around it, under their names; what it is compared
    with stands beside them."""
    if is_list(node):
        return of_list(w, node)
    kind, node = w.type(node), replaced(node, lambda part: without_schema(w.scope, part))
    tables = around(w, node["subquery"]["node"])
    inputs = {at for columns in tables.values() for at in columns.values()}
    row = {f"i{at}": f"__i{at}" for at in inputs}
    if node["child"]:
        node = {**node, "child": beside(w, node["child"], row, inputs)}

    rows = [f"(SELECT {', '.join(row)}) AS __q({', '.join(row.values())})"] if row else []
    for alias, columns in tables.items():
        values = ", ".join(f"__q.__i{at}" for at in columns.values())
        rows.append(f"(SELECT {values}) AS {quoted(alias)}({', '.join(map(quoted, columns))})")
    text = f"(SELECT {w.scope.gate.spelt(node)}{' FROM ' if rows else ''}{', '.join(rows)})"
    return rowwise.made(w, text, inputs, kind, node)


def of_list(w: Expressions, node: Node) -> E:
    """x = ANY (list): x and the list may be any values of the row around, also aggregates."""
    inputs: set[int] = set()

    def one(item: Node) -> Node | None:
        return rowwise.rewritten(w, item, inputs) if "class" in item else None

    query = node["subquery"]["node"]
    query = {**query, "select_list": [below(query["select_list"][0], one)]}
    made = {**node, "child": one(node["child"]), "subquery": {**node["subquery"], "node": query}}
    return rowwise.made(w, w.scope.gate.spelt(made), inputs, w.type(node), node)


def without_schema(scope: Scope | None, node: Node) -> Node | None:
    """A column `schema.table.name` as `table.name`; None for what is none."""
    names = node["column_names"] if node.get("class") == "COLUMN_REF" else []
    while scope and len(names) > 2:
        if [n.lower() for n in names[:2]] in [[source.schema, source.alias.lower()] for source in scope.sources]:
            return {**node, "column_names": names[1:]}
        scope = scope.parent
    return None


def around(w: Expressions, query: Node) -> dict[str, dict[str, int]]:
    """The columns of the queries around that a query may name, by their tables, with the inputs that they are."""
    tables: dict[str, dict[str, int]] = {}
    for part in walk(query) if w.scope.is_correlated(query) else ():
        found = w.scope.resolve(part["column_names"]) if part.get("class") == "COLUMN_REF" else None
        if found and found[3] not in (w.scope, w.scope.parent):
            raise Refused("a column of a query around the one around this subquery", where(part), hint=False)
        if found:
            source, name, of = named(found[3], found[0])
            tables.setdefault(source, {})[name] = w.calls.input(w.place, found[0], of)

    both = {name for name in tables.get(MERGED, ()) for table in tables if table != MERGED and name in tables[table]}
    if both:
        told = f"a subquery over a column of USING and that of its table ({', '.join(sorted(both))})"
        raise Refused(told, where(query), hint=False)
    return tables


def beside(w: Expressions, child: Node, row: dict[str, str], inputs: set[int]) -> Node:
    """What is compared with the rows of a subquery, as a column of the row; one for each that stands in `(a, b)`."""
    if is_called(child, ("row",)):
        items = [{**a, "expression": beside(w, a["expression"], row, inputs)} for a in child["arguments"]]
        return {**child, "arguments": items}
    if w.is_constant(child):
        return child
    text = w.scope.gate.spelt(rowwise.rewritten(w, child, inputs))
    return column("__q", row.setdefault(text, f"__c{len(row)}"))


def named(scope: Scope, text: str) -> tuple[str, str, Type]:
    """Table, name and type of a column, by Spark's text of it."""
    lent = {source.text(name): spark for spark, (source, name) in scope.lent.items()}
    if scope.parent and text in lent:
        return named(scope.parent, lent[text])
    known = {name_quoted(name): (MERGED, name, kind) for name, kind in scope.merged.items()}
    for source in scope.sources:
        known |= {source.text(name): (source.alias, name, kind) for name, kind in source.columns}
    return known[text]


def rows(w: Expressions, node: Node) -> E:
    """The rows of a query over the columns around it, as a list of structs."""
    select = expression("(SELECT list(__r) FROM (SELECT 1) AS __r)")
    outer = select["subquery"]["node"]
    table = {**outer["from_table"], "subquery": {**outer["from_table"]["subquery"], "node": node}}
    return write(w, {**select, "subquery": {**select["subquery"], "node": {**outer, "from_table": table}}})
