"""WITH RECURSIVE … UNION, and USING KEY: Spark has none, so DuckDB computes the whole over the lists of the tables'
rows, which have to fit into memory. One that reads no table is DuckDB's too."""

from __future__ import annotations

from typing import TYPE_CHECKING

from runtime.sql.asking.gate import expression
from runtime.sql.asking.scope import Columns, Scope, where
from runtime.sql.asking.tree import MAKING, Node, is_called, quoted, replaced, walk
from runtime.sql.asking.types import rows_of
from runtime.sql.grouping import aggregates
from runtime.sql.model import Refused
from runtime.sql.scalar import functions, rowwise
from runtime.sql.scalar.casts import E

from .item import exploded

if TYPE_CHECKING:
    from runtime.sql.expressions.expr import Expressions

    from .query import Queries


def whole(of: Queries, entry: Node, scope: Scope) -> tuple[str, Columns]:
    """Spark text and columns of the CTE."""
    body, name = entry["value"]["query_node"], entry["key"].lower()
    check(of, body, scope)
    w = of.expressions(scope.inner(None))
    item = expression(f"(SELECT list(r) FROM (SELECT * FROM {quoted(name)}) AS r)")
    outer = item["subquery"]["node"]
    rows = outer["from_table"]["subquery"]["node"]
    columns = scope.describe({**rows, "cte_map": {"map": [*scope.ctes, entry]}})

    inputs: set[int] = set()
    tables: list[str] = []
    own = {e["key"].lower() for n in walk(body) for e in (n.get("cte_map") or {}).get("map", [])} | {name}

    def one(node: Node) -> Node | None:
        """The list of its rows in the place of a table."""
        path = node["qualified_name"]["path"] if node.get("type") == "BASE_TABLE" else []
        return unpacked(w, node, inputs, tables) if path and not (len(path) == 1 and path[0].lower() in own) else None

    made = {**entry, "value": {**entry["value"], "query_node": replaced(body, one)}}
    inner = {**outer["from_table"]["subquery"], "node": {**rows, "cte_map": {"map": [made]}}}
    outer = {**outer, "from_table": {**outer["from_table"], "subquery": inner}}
    item = {**item, "subquery": {**item["subquery"], "node": outer}}
    found = rowwise.made(w, w.scope.gate.spelt(item), inputs, rows_of(columns), body)
    return exploded(found, " CROSS JOIN ".join(f"({text}) AS __r{at}" for at, text in enumerate(tables))), columns


def is_made(of: Queries, entry: Node, scope: Scope) -> bool:
    """Whether it reads no table, as a series of days does: of each step Spark makes a job."""
    body, own = entry["value"]["query_node"], entry["key"].lower()
    tables = [part["qualified_name"]["path"] for part in walk(body) if part.get("type") == "BASE_TABLE"]
    try:
        check(of, body, scope)
    except Refused:
        return False
    return all(len(path) == 1 and path[0].lower() == own for path in tables)


def check(of: Queries, body: Node, scope: Scope) -> None:
    """Refuses what may not run in DuckDB, or needs the query around it."""
    names = functions.REFUSED | functions.VOLATILE
    for part in walk(body):
        function = part["function"]["function_name"] if part.get("type") == "TABLE_FUNCTION" else ""
        left = is_called(part, names - {"unnest"}) or part.get("sample")
        drawn = part.get("class") == "COLUMN_REF" and part["column_names"][0].lower() in functions.VOLATILE
        if left or drawn or function and function not in MAKING:
            raise Refused("WITH RECURSIVE … UNION with files, chance or the moment", where(part) or where(body))
    if scope.parent is not None:
        raise Refused("WITH RECURSIVE … UNION in a correlated subquery", where(body), hint=False)


def unpacked(w: Expressions, table: Node, inputs: set[int], tables: list[str]) -> Node:
    """A table as the rows of an input, a list that is made in a task: the value of a subquery would be the driver's."""
    item = w.queries.sources.table({**table, "alias": "", "column_name_alias": []}, w.scope)
    source = item.sources[0]
    fields = [E(source.text(name), kind) for name, kind in source.columns]
    listed = f"SELECT collect_list({aggregates.row(fields)}) AS l FROM {item.text}"
    tables += [] if listed in tables else [listed]
    at = w.calls.input(w.place, f"__r{tables.index(listed)}.l", aggregates.listed(fields))
    inputs.add(at)
    names = ", ".join(f"u.a{i} AS {quoted(name)}" for i, (name, _) in enumerate(source.columns))
    found: Node = w.scope.gate.parse(f"SELECT * FROM (SELECT {names} FROM (SELECT unnest(i{at}) AS u))")["node"]
    alias = table.get("alias") or table["qualified_name"]["path"][-1]
    return {**found["from_table"], "alias": alias, "column_name_alias": table.get("column_name_alias") or []}
