"""Columns of the query around, for queries within this one: Spark finds a column one query further out and no more, so
this query's rows bring along what those within it name of the one around."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .matching import picked, renamed
from .scope import Scope, Source
from .tree import Node, own, walk
from .types import Type

if TYPE_CHECKING:
    from .query import Queries


def lent(of: Queries, node: Node, scope: Scope, text: str) -> str:
    """FROM with these columns; the scope then knows them as its own."""
    wanted = asked(node, scope)
    if not wanted or scope.merged:
        return text
    number = of.number()
    after = renamed(scope.sources, f"__up{number}", "w")
    items = [picked(scope.sources, after)] if after else []
    made: list[Source] = []
    for at, (source, name, kind) in enumerate(wanted):
        items.append(f"{source.text(name)} AS up{at}")
        made.append(
            Source(source.alias, [(name, kind)], "", frozenset({name.lower()}), f"__up{number}", {name: f"up{at}"})
        )
        made[-1].lent = True
    for one, new in zip(scope.sources, after, strict=True):
        one.within, one.spark = new.within, new.spark
    scope.sources += made
    return f"(SELECT {', '.join(items)}{f' FROM {text}' if text else ''}) AS __up{number}"


def asked(node: Node, scope: Scope) -> list[tuple[Source, str, Type]]:
    """The columns that queries within this one's expressions name by a table of the query around it."""
    if scope.parent is None:
        return []
    here = {source.alias.lower() for source in scope.sources}
    out: list[tuple[Source, str, Type]] = []
    parts = list(own([value for key, value in node.items() if key not in ("from_table", "cte_map")]))
    summed = [n for n in parts if n.get("class") == "FUNCTION" and n["function_name"] in scope.gate.aggregates]
    beyond = {id(n) for call in summed for n in own(call["arguments"])}  # which Spark does not compute
    for query in parts:
        inner = list(walk(query["subquery"])) if query.get("class") == "SUBQUERY" and id(query) not in beyond else []
        names = {str(n.get("alias") or n.get("table_name")).lower() for n in inner if "column_name_alias" in n} | here
        for part in inner:
            if part.get("class") != "COLUMN_REF" or part["column_names"][0].lower() in names:
                continue
            found = [s for s in scope.parent.sources if s.alias.lower() == part["column_names"][0].lower()]
            for name, kind in found[0].columns if found and len(part["column_names"]) > 1 else ():
                if name.lower() == part["column_names"][1].lower() and (found[0], name, kind) not in out:
                    out.append((found[0], name, kind))
    return out
