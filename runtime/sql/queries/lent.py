"""Columns of the query around, where Spark knows none: it finds a column one query further out and no more, and not
within an aggregate, so this query's rows bring along what it, or those within it, name there of the one around."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING, Any

from runtime.sql.asking.gate import expression
from runtime.sql.asking.scope import Scope, Source, where
from runtime.sql.asking.tree import SERIES, UNNESTING, Node, is_called, own, walk
from runtime.sql.asking.types import Type, name_quoted
from runtime.sql.model import Refused

from .item import Item, picked, renamed

if TYPE_CHECKING:
    from runtime.sql.expressions.expr import Expressions

    from .query import Queries

#: Tables whose columns are called as they are.
CALLED = (*SERIES, "unnest")


def lent(w: Expressions, text: str, items: Any, whole: Sequence[Node] = (), joined: Node | None = None) -> str:
    """FROM with what these name of such columns, anywhere in those that are `whole`; the scope then knows them as its
    own. With them go those of a condition, by which Spark joins them."""
    scope = w.scope
    wanted = asked(w, items, whole)
    if not wanted:
        return text
    wanted |= asked(w, [], [joined] if joined else [])
    number = w.queries.number()
    after = renamed(scope.sources, f"__up{number}", "w")
    items = [*filter(None, [picked(scope.sources, after)]), *map(name_quoted, scope.merged)]
    items += [f"{spark} AS up{at}" for at, spark in enumerate(wanted)]
    for one, new in zip(scope.sources, after, strict=True):
        one.within, one.spark = new.within, new.spark
    made = Source(f"__up{number}", [(f"up{at}", kind) for at, kind in enumerate(wanted.values())], lent=True)
    scope.lent |= {spark: (made, f"up{at}") for at, spark in enumerate(wanted)}
    scope.sources.append(made)
    return f"(SELECT {', '.join(items)}{f' FROM {text}' if text else ''}) AS __up{number}"


def asked(w: Expressions, items: Any, whole: Sequence[Node]) -> dict[str, Type]:
    """Text and type of the columns of the query around that aggregates, windows and queries within these name."""
    around = w.scope.parent
    if around is None:
        return {}
    out: dict[str, Type] = {}
    called = {*w.scope.gate.aggregates, *(UNNESTING if w.scope.sources else ())}
    for part in [*whole, *own(items)]:
        paths = []
        if part.get("class") == "SUBQUERY":
            names = Names(w, part["subquery"])
            paths = [path for path in columns(walk(part["subquery"])) if names.is_from_beyond(path)]
        if part.get("class") == "WINDOW" or is_called(part, called) or part in whole:
            paths += [path for path in columns(own(part)) if is_of(around, w.scope, path)]
        for path in paths:
            if found := around.resolve(path):
                if "MAP(" in str(found[1]):
                    told = f"{'.'.join(path)}, a {found[1]} of the query around, as Spark joins by none (take it apart"
                    raise Refused(f"{told} in a query around)", where(part), hint=False)
                out[found[0]] = found[1]
    return out


def beside(of: Queries, left: Item, join: Node, side: Scope) -> Item:
    """What stands left in a join, with what the right names of such columns; `side` is what the right sees."""
    w, table = of.expressions(side.over(left.sources[:], join["left"])), join["right"]
    if table["type"] == "TABLE_FUNCTION":
        text = lent(w, left.text, [], [argument["expression"] for argument in table["function"]["arguments"]])
    else:
        text = lent(w, left.text, {**expression("(SELECT 1)"), **table} if table["type"] == "SUBQUERY" else [])
    side.sources += w.scope.sources[len(left.sources) :]
    side.lent |= w.scope.lent
    return Item(text, w.scope.sources)


def columns(parts: Any) -> list[list[str]]:
    return [part["column_names"] for part in parts if part.get("class") == "COLUMN_REF"]


def is_of(owner: Scope, seen: Scope, path: list[str]) -> bool:
    """Whether a column, as one scope sees it, is of that one."""
    found = seen.resolve(path)
    return found is not None and found[3] is owner


class Names:
    """The names of tables and columns that a query, and those within it, have of their own."""

    def __init__(self, w: Expressions, query: Node) -> None:
        self.scope = w.scope
        parts = list(walk(query))
        tables = [part for part in parts if "column_name_alias" in part]
        self.tables = {str(part.get("alias") or part.get("table_name")).lower() for part in tables}
        self.paths = columns(parts)
        self.columns: set[str] = set()
        self.unseen = False  # whether there are others, which are not seen from here
        called: set[int] = set()
        ctes = {entry["key"].lower() for part in parts for entry in (part.get("cte_map") or {}).get("map", [])}
        for part in parts:
            self.columns |= {
                name.lower() for name in [part.get("alias"), *(part.get("column_name_alias") or [])] if name
            }
            if part.get("type") == "BASE_TABLE":
                path = [name.lower() for name in part["qualified_name"]["path"]]
                known = self.scope.tables.get(path[0]) if len(path) == 1 else None
                found = [] if len(path) == 1 and path[0] in ctes else known or w.queries.tables(path)[1]
                self.columns |= {name.lower() for name, _ in found}
            elif part.get("type") == "TABLE_FUNCTION" and part["function"]["function_name"] in CALLED:
                self.columns.add(part["function"]["function_name"])
                called.add(id(part["function"]))
            elif id(part) in called:
                continue
            elif "select_list" in part and part is not query.get("node"):
                self.columns |= {path[-1].lower() for path in columns(part["select_list"])}
            else:
                other = part.get("type") in ("TABLE_FUNCTION", "PIVOT") or is_called(part, UNNESTING)
                self.unseen |= bool(
                    other or part.get("rename_list") or part.get("relation_name", "").lower() not in {"", *self.tables}
                )

    def are_from_here(self, paths: list[list[str]]) -> bool:
        """Whether there are columns, and all are of the query around these."""
        return bool(paths) and all(self.is_free(p, self.scope) and is_of(self.scope, self.scope, p) for p in paths)

    def is_from_beyond(self, path: list[str]) -> bool:
        """Whether it is one of the query around that."""
        around = self.scope.parent
        return around is not None and self.is_free(path, around) and is_of(around, self.scope, path)

    def missing(self, aliases: Collection[str]) -> set[str]:
        """The aliases that are named here, where nothing else has the name."""
        named = {path[0].lower() for path in self.paths if len(path) == 1 and self.is_free(path, self.scope)}
        return {name for name in named & set(aliases) if not self.scope.owns(name)}

    def is_free(self, path: list[str], around: Scope) -> bool:
        """Whether no query of these has a column of that name, for all that is seen."""
        first = path[0].lower()
        if first in self.tables:
            return False
        if len(path) > 1 and any(source.alias.lower() == first for source in around.sources):
            return True
        return not self.unseen and first not in self.columns
