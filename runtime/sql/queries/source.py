"""FROM: tables, subqueries, joins, VALUES and table functions."""

from __future__ import annotations

import copy
import re
from collections.abc import Callable
from typing import TYPE_CHECKING

from runtime.sql.asking.gate import template
from runtime.sql.asking.scope import Columns, Scope, where
from runtime.sql.asking.tree import Node, walk
from runtime.sql.asking.types import name_quoted
from runtime.sql.expressions import tableless
from runtime.sql.expressions.expr import Expressions
from runtime.sql.grouping import equality
from runtime.sql.model import Refused
from runtime.sql.scalar import functions

from . import around, asof, conditions, lent, made, matching, nested, positional, samples
from .item import Item, exploded, named, relabelled
from .pivot import pivot

if TYPE_CHECKING:
    from .query import Queries


JOINS = {
    "INNER": "JOIN",
    "LEFT": "LEFT JOIN",
    "RIGHT": "RIGHT JOIN",
    "FULL": "FULL JOIN",
    "SEMI": "LEFT SEMI JOIN",
    "ANTI": "LEFT ANTI JOIN",
}


#: Rows of VALUES that stand in Spark's text: of more DuckDB makes a list.
MANY = 1_000
#: What Spark takes in no LATERAL subquery.
OF_TASKS = re.compile(r"\b(monotonically_increasing_id|spark_partition_id|rand|uuid)\(")


class Sources:
    """Writes FROM items; `queries` writes what stands in parentheses."""

    def __init__(self, queries: Queries) -> None:
        self.queries = queries

    def read(self, node: Node, scope: Scope, select: Node | None = None) -> str:
        """Fills the scope's sources; the text after FROM ("" for none), a sample of it if the SELECT says so."""
        if node["type"] == "EMPTY":
            scope.from_ast = node
            return ""
        item = self.item(node, scope)
        if select and select.get("sample"):
            item = samples.drawn(self, select, item)
        scope.from_ast = node
        return item.text

    def item(self, node: Node, scope: Scope) -> Item:
        writers: dict[str, Callable[[Node, Scope], Item]] = {
            "BASE_TABLE": self.table,
            "SUBQUERY": self.subquery,
            "JOIN": self.join,
            "TABLE_FUNCTION": lambda node, scope: made.item(self.queries, node, scope),
            "EXPRESSION_LIST": self.values,
            "PIVOT": lambda node, scope: pivot(self, node, scope),
        }
        if node["type"] not in writers:
            raise Refused(f"{node['type'].replace('_', ' ').lower()} in FROM", where(node))
        item = writers[node["type"]](node, scope)
        if node.get("sample"):
            item = samples.drawn(self, node, item)
        scope.sources += [s for s in item.sources if s not in scope.sources]
        return item

    def table(self, node: Node, scope: Scope) -> Item:
        if node.get("at_clause"):
            raise Refused("AT (…)", where(node))
        path = node["qualified_name"]["path"]
        if len(path) == 1 and path[0].lower() in scope.tables:
            return named(name_quoted(path[0].lower()), scope.tables[path[0].lower()], node, path[0])
        view, columns = self.queries.tables(path)
        return named(name_quoted(view), columns, node, path[-1], path[-2].lower() if len(path) > 1 else "main")

    def subquery(self, node: Node, scope: Scope) -> Item:
        inner = node["subquery"]["node"]
        lateral = ""
        parent: Scope | None = None
        if scope.from_ast is not None or scope.parent is not None:
            lateral, parent = self.lateral(inner, scope)
            if lateral and (listed := self.listed(node, scope)):
                return listed
            if lateral:
                self.queries.lateral.add(id(inner))
        self.queries.beside += bool(lateral)
        text, found = self.queries.write(inner, parent, scope)
        self.queries.beside -= bool(lateral)
        if lateral and self.queries.calls.finds(OF_TASKS, text):
            told = "chance, rows by their number, or what DuckDB makes of a subquery's answer in a LATERAL subquery"
            raise Refused(f"{told} (compute it in a query around)", where(node), hint=False)
        columns = deduplicated(found)
        if columns != found:
            labels = relabelled(columns, node.get("column_name_alias") or [])
            node = {**node, "column_name_alias": [name for name, _ in labels]}
        return named(f"{lateral}({text})", columns, node, node.get("alias") or f"__s{self.queries.number()}")

    def listed(self, node: Node, scope: Scope) -> Item | None:
        """A LATERAL subquery over no table: DuckDB makes a list of its rows."""
        writer = self.queries.expressions(scope.inner(scope))
        if not tableless.is_tableless(writer, node):
            return None
        rows = tableless.rows(writer, node["subquery"]["node"])
        columns = list(zip(rows.type.element.fields, rows.type.element.args, strict=True))
        return named(f"LATERAL ({exploded(rows)})", columns, node, f"__s{self.queries.number()}")

    def lateral(self, inner: Node, scope: Scope) -> tuple[str, Scope | None]:
        """Whether a subquery refers to what stands left of it: DuckDB does not bind it alone then."""
        if not scope.is_correlated(inner):
            return "", None
        return ("LATERAL ", scope) if scope.from_ast is not None else ("", scope.parent)

    def join(self, node: Node, scope: Scope) -> Item:
        kind, ref = node["join_type"], node["ref_type"]
        if ref not in ("REGULAR", "CROSS", "ASOF", "NATURAL", "POSITIONAL") or kind not in JOINS:
            raise Refused(f"{ref if ref != 'REGULAR' else kind} JOIN", where(node))
        if turned := nested.turned(node, scope):
            return self.join(turned, scope)
        left = self.item(node["left"], scope)
        side = scope.over(list(scope.sources), node["left"])
        if left_over := around.left(node["right"], side):
            return Item(left.text, [*left.sources, left_over])
        left = lent.beside(self.queries, left, node, side)
        if node["right"]["type"] == "JOIN":
            right = nested.alone(self, node["right"], scope)
        else:
            right = self.item(node["right"], side)
        using = list(node.get("using_columns") or [])
        if ref == "NATURAL":
            names = {n.lower() for s in left.sources for n, _ in s.columns}
            using = [n for s in right.sources for n, _ in s.columns if n.lower() in names]
        if ref == "ASOF":
            return asof.joined(self, node, left, right, scope, _inner(node))
        if ref == "POSITIONAL":
            return positional.joined(self, left, right)
        sources = left.sources if kind in ("SEMI", "ANTI") else left.sources + right.sources
        if ref == "CROSS":
            return Item(f"{left.text} CROSS JOIN {right.text}", sources)
        if using:
            return self.using(using, node, left, right, scope)
        if node["condition"] is None:
            raise Refused("a join without a condition", where(node))
        both = scope.over(left.sources + right.sources, _inner(node))
        writer = self.queries.expressions(both)
        if conditions.apart(writer, node["condition"], left.sources, kind)[1]:
            return matching.joined(self, node, left, right, scope, _inner(node))
        writer.allow_in(node["condition"])
        on = " AND ".join(conditions.parted(writer, node["condition"]))
        return Item(f"{left.text} {JOINS[kind]} {right.text} ON {on}", sources)

    def using(self, using: list[str], node: Node, left: Item, right: Item, scope: Scope) -> Item:
        """USING: the columns become one; both sides must have one type, so that nothing is compared as something
        else."""
        if any(s.within for s in (*left.sources, *right.sources)):
            raise Refused("USING after a join whose condition is computed over both sides", where(node), hint=False)
        low = frozenset(n.lower() for n in using)
        for name in low:
            kinds = [t for s in (*left.sources, *right.sources) for n, t in s.columns if n.lower() == name]
            if len({k.letter if k.letter == "i" else str(k) for k in kinds}) > 1:
                raise Refused(
                    f"USING ({name}) over columns of types {' and '.join(map(str, kinds))}", where(node), hint=False
                )
            equality.check(kinds[0], node, f"USING ({name}) over")
            scope.merged[name] = kinds[0]
        kind = node["join_type"]
        text = f"{left.text} {JOINS[kind]} {right.text} USING (" + ", ".join(map(name_quoted, using)) + ")"
        if kind in ("SEMI", "ANTI"):
            for name in low:
                del scope.merged[name]
            return Item(text, left.sources)
        for source in right.sources:
            source.hidden = source.hidden | low
        return Item(text, left.sources + right.sources)

    def values(self, node: Node, scope: Scope) -> Item:
        """VALUES: every column gets the type DuckDB finds for it."""
        select = copy.copy(template())
        star = copy.deepcopy(select["select_list"][0])
        star["relation_name"] = ""
        select.update(
            select_list=[star], from_table={**node, "column_name_alias": []}, aggregate_handling="STANDARD_HANDLING"
        )
        kinds = scope.gate.describe(scope.gate.text(select))
        writer = self.queries.expressions(scope.inner(scope.parent))
        names = node.get("expected_names") or [n for n, _ in kinds]
        columns = [(n, t) for n, (_, t) in zip(names, kinds, strict=True)]
        labels = ", ".join(name_quoted(n) for n, _ in columns)
        many = len(node["values"]) > MANY and all(writer.is_constant(cell) for row in node["values"] for cell in row)
        rows = [] if many else self.cells(writer, node["values"], kinds)
        if many:
            text = f"({exploded(tableless.rows(writer, select))})"
        elif self.is_asked(node["values"], rows):  # no VALUES of Spark's computes these
            text = "(" + " UNION ALL ".join(f"SELECT {', '.join(row)}" for row in rows) + ")"
        else:
            text = "VALUES " + ", ".join(f"({', '.join(row)})" for row in rows)
        inner = f"(SELECT * FROM {text} AS __v({labels}))"
        return named(
            inner, columns, node, f"__s{self.queries.number()}" if node.get("alias") in (None, "", "valueslist") else ""
        )

    def is_asked(self, nodes: list[list[Node]], rows: list[list[str]]) -> bool:
        """Whether a cell is DuckDB's, chance or a subquery."""
        of_rows = any(n.get("class") == "SUBQUERY" or functions.is_drawn(n) for n in walk(nodes) if "class" in n)
        return of_rows or any(self.queries.calls.holds(cell) for row in rows for cell in row)

    def cells(self, writer: Expressions, rows: list[list[Node]], kinds: Columns) -> list[list[str]]:
        """The texts of VALUES."""
        for (_, kind), *column in zip(kinds, *rows, strict=True):
            writer.fold_ahead(column, kind)
        return [[writer.as_type(cell, kind).text for cell, (_, kind) in zip(row, kinds, strict=True)] for row in rows]


def _inner(node: Node) -> Node:
    """The join as one whose both sides are in sight, for probes of its condition."""
    return {
        **node,
        "join_type": "INNER",
        "ref_type": "CROSS",
        "condition": None,
        "using_columns": [],
        "is_implicit": False,
    }


def deduplicated(columns: Columns) -> Columns:
    """Names as DuckDB makes them distinct in a subquery: id, id_1."""
    seen: dict[str, int] = {}
    out: Columns = []
    for name, kind in columns:
        low = name.lower()
        if low in seen:
            seen[low] += 1
            name = f"{name}_{seen[low]}"
        else:
            seen[low] = 0
        out.append((name, kind))
    return out
