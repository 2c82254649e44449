"""Columns of the query around, for queries within this one: Spark finds a column one query further out and no more, so
this query's rows bring along what those within it name of the one around."""

from __future__ import annotations

from typing import TYPE_CHECKING

from runtime.sql.asking.scope import Scope, Source
from runtime.sql.asking.tree import Node, is_called, own, walk
from runtime.sql.asking.types import Type

from .item import picked, renamed

if TYPE_CHECKING:
    from .query import Queries

#: The name of the table, if it was named, the table, the column and its type.
Wanted = tuple[str, Source, str, Type]


def lent(of: Queries, node: Node, scope: Scope, text: str) -> str:
    """FROM with these columns; the scope then knows them as its own."""
    wanted = asked(of, node, scope)
    if not wanted or scope.merged:
        return text
    number = of.number()
    after = renamed(scope.sources, f"__up{number}", "w")
    items = [picked(scope.sources, after)] if after else []
    made: list[Source] = []
    for at, (alias, source, name, kind) in enumerate(wanted):
        items.append(f"{source.text(name)} AS up{at}")
        hidden = frozenset({name.lower()} if alias else ())
        made.append(Source(alias, [(name, kind)], "", hidden, f"__up{number}", {name: f"up{at}"}))
        made[-1].lent = True
    for one, new in zip(scope.sources, after, strict=True):
        one.within, one.spark = new.within, new.spark
    scope.sources += made
    return f"(SELECT {', '.join(items)}{f' FROM {text}' if text else ''}) AS __up{number}"


def asked(of: Queries, node: Node, scope: Scope) -> list[Wanted]:
    """The columns that queries within this one's expressions name of the query around it."""
    if scope.parent is None:
        return []
    here = {source.alias.lower() for source in scope.sources}
    out: list[Wanted] = []
    parts = list(own([value for key, value in node.items() if key not in ("from_table", "cte_map")]))
    summed = [n for n in parts if is_called(n, scope.gate.aggregates)]
    beyond = {id(n) for call in summed for n in own(call["arguments"])}  # which Spark does not compute
    for query in parts:
        inner = list(walk(query["subquery"])) if query.get("class") == "SUBQUERY" and id(query) not in beyond else []
        tables = {str(n.get("alias") or n.get("table_name")).lower() for n in inner if "column_name_alias" in n} | here
        columns = names(of, inner, scope)
        for part in inner:
            path = [n.lower() for n in part["column_names"]] if part.get("class") == "COLUMN_REF" else []
            one = named(scope.parent, *path[:2]) if len(path) > 1 and path[0] not in tables else []
            if path and not one and columns is not None and path[0] not in columns | tables:
                one = unnamed(scope.parent, path[0])
            out += [found for found in one if found not in out]
    return out


def named(around: Scope, table: str, column: str) -> list[Wanted]:
    sources = [source for source in around.sources if source.alias.lower() == table][:1]
    return [(s.alias, s, name, kind) for s in sources for name, kind in s.columns if name.lower() == column]


def unnamed(around: Scope, column: str) -> list[Wanted]:
    if column in around.merged:
        return []
    sources = [source for source in around.sources if column not in source.hidden]
    return [("", s, name, kind) for s in sources for name, kind in s.columns if name.lower() == column][:1]


def names(of: Queries, inner: list[Node], scope: Scope) -> set[str] | None:
    """The columns that a query within, or this one, has of its own; None where that is not seen from here."""
    found = {name.lower() for source in scope.sources for name, _ in source.columns}
    for part in inner:
        if part.get("type") == "BASE_TABLE":
            path = part["qualified_name"]["path"]
            known = scope.tables.get(path[0].lower()) if len(path) == 1 else None
            columns = known or of.tables(path)[1]
            found |= {name.lower() for name in part.get("column_name_alias") or [name for name, _ in columns]}
        elif "column_name_alias" in part or (part.get("cte_map") or {}).get("map"):
            return None
        elif part.get("alias"):
            found.add(part["alias"].lower())
    return found
