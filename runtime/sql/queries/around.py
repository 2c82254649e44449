"""A SELECT as two, where a subquery in it asks for what its rows have only afterwards: its groups, its aggregates,
names of its select list. These are columns of a query within; the SELECT stands around it, over what is left of each
table."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from runtime.sql.asking.gate import expression, template
from runtime.sql.asking.scope import Scope, Source, call, column
from runtime.sql.asking.tree import EMPTY, Node, below, is_called, own, paths, replaced, walk
from runtime.sql.expressions import correlated, tableless
from runtime.sql.expressions.sameness import same_form
from runtime.sql.scalar.constants import lambda_params

from .lent import Names

if TYPE_CHECKING:
    from runtime.sql.expressions.expr import Expressions

#: What is said of rows that are grouped already, and of rows before that.
SHOWN = ("select_list", "having", "qualify", "modifiers")
EARLIER = ("where_clause", "group_expressions")
NO_GROUPS = {"group_expressions": [], "group_sets": [], "aggregate_handling": "STANDARD_HANDLING"}
#: Begins the name of the query within.
WITHIN = "__g"


def parted(w: Expressions, node: Node, aliases: Mapping[str, Node]) -> Node | None:
    """The SELECT around another one; None where Spark answers it as it is. `node`: with its names written out."""
    queries = [n for n in own([node[clause] for clause in (*SHOWN, *EARLIER)]) if n.get("class") == "SUBQUERY"]
    if not queries and not (w.scope.grouped and w.scope.parent):
        return None
    if rows := summed(w, node):
        return Within(w, numbered(rows)).around(node)
    named = missing(w, queries, aliases)
    if in_keys := missing(w, [n for n in own(w.scope.groups) if n.get("class") == "SUBQUERY"], aliases):
        return Within(w, in_keys).around(node)
    if w.scope.grouped:
        found = Within(w, named, "groups").around(node)
        return found if named or is_asked(w, found, queries) else None
    if named:
        return Within(w, named).around(node)
    windows = [n for n in own([node[clause] for clause in SHOWN]) if n.get("class") == "WINDOW"]
    compared = any(n in windows for query in queries for n in own(query.get("child")))
    return Within(w, numbered(windows), "windows").around(node) if compared else None


def missing(w: Expressions, queries: list[Node], aliases: Mapping[str, Node]) -> dict[str, Node]:
    """What the names of the select list stand for that these ask for, in its order."""
    found = {name for query in queries for name in Names(w, query["subquery"]).missing(aliases)}
    return {name: item for name, item in aliases.items() if name in found}


def numbered(items: list[Node]) -> dict[str, Node]:
    return {f"__s{at}": item for at, item in enumerate(items)}


def summed(w: Expressions, node: Node) -> list[Node]:
    """The subqueries in aggregates of a correlated query, which Spark plans and cannot run."""
    calls = [n for n in own([node[clause] for clause in SHOWN]) if is_called(n, w.scope.gate.aggregates)]
    queries = [n for n in tableless.others(w, calls) if correlated.is_joined(w.scope, n)]
    return queries if queries and w.scope.parent and w.scope.is_correlated(node) else []


def is_asked(w: Expressions, changed: Node, before: list[Node]) -> bool:
    """Whether Spark knows no groups where these stand: subqueries over them, and columns of a query around."""
    shown = [changed[clause] for clause in (*SHOWN, "where_clause")]
    as_before = {id(n["subquery"]) for n in before}
    if any(n.get("class") == "SUBQUERY" and id(n["subquery"]) not in as_before for n in own(shown)):
        return True
    if any(correlated.is_joined(w.scope, n) for n in tableless.others(w, shown)):
        return True
    return any(w.is_outer(n) for n in own(shown) if n.get("class") == "COLUMN_REF")


def is_summed(w: Expressions, item: Node, aliases: Mapping[str, Node]) -> bool:
    """Whether an aggregate of this query stands in an expression, or in a subquery in it."""
    if w.scope.has_aggregate(item):
        return True
    for query in [n for n in own(item) if n.get("class") == "SUBQUERY"]:
        names, calls = Names(w, query["subquery"]), w.scope.gate.aggregates
        if any(is_called(n, calls) and names.are_from_here(paths(n)) for n in walk(query["subquery"])):
            return True
        if any(w.scope.has_aggregate(aliases[name]) for name in names.missing(aliases)):
            return True
    return False


class Within:
    """The query within: its columns by the form of what they are. It makes `groups`, `windows`, or only `rows`."""

    def __init__(self, w: Expressions, named: Mapping[str, Node], made: str = "rows") -> None:
        self.w, self.made, self.grouped = w, made, made == "groups"
        grouped = self.grouped
        self.name = f"{WITHIN}{w.queries.number()}"
        self.labels: dict[str, str] = {}
        self.items: list[Node] = []
        self.tables: list[Node] = []  # as the query around knows them
        keys = {self.form(key): key for key in w.scope.groups} if grouped else {}
        columns = [
            (s.alias, [column(*w.scope.path(s, name)) for name, _ in s.columns]) for s in w.scope.sources if not s.lent
        ]
        for alias, of in [*columns, (tableless.MERGED, [column(name) for name in w.scope.merged])]:
            kept = [one for one in of if not grouped or self.form(one) in keys]
            items = [{**column(self.name, self.label(one)), "alias": one["column_names"][-1]} for one in kept]
            self.tables += [subquery(items, alias)] if items else []
        for key in keys.values():
            self.label(key)
        for name, item in named.items():
            self.label(item, name)

    def form(self, part: Node) -> str:
        """A text that is equal for the same expressions, however they name their columns."""

        def one(node: Node) -> Node | None:
            if node.get("class") in ("SUBQUERY", "LAMBDA"):
                return node
            found = self.w.scope.resolve(node["column_names"]) if node.get("class") == "COLUMN_REF" else None
            return column(found[0], *found[2]) if found else None

        return same_form(replaced(part, one))

    def label(self, part: Node, name: str = "") -> str:
        """The name of the column that an expression is within."""
        form = self.form(part)
        if name or form not in self.labels:
            self.labels[form] = name or f"__c{len(self.items)}"
            self.items.append({**part, "alias": self.labels[form]})
        return self.labels[form]

    def taken(self, part: Node) -> Node | None:
        """What stands around in the place of a part that is computed within, or has such parts in a subquery."""
        found = self.column(part)
        if found or part.get("class") != "SUBQUERY":
            return found
        names = Names(self.w, part["subquery"])

        def inside(one: Node) -> Node | None:
            return self.column(one) if "class" in one and names.are_from_here(paths(one)) else None

        kept = below(part, self.taken, without="subquery")
        return {**kept, "subquery": replaced(part["subquery"], inside)}

    def column(self, part: Node) -> Node | None:
        """The column of what is computed within; None for what is not, and for columns, which keep their names."""
        scope, kind = self.w.scope, part.get("class")
        if kind == "LAMBDA" and any(scope.resolve([name]) for name in lambda_params(part)):
            return part  # in which that name is no column
        named = kind == "COLUMN_REF" and len(part["column_names"]) < 3 and not self.w.fields(part)
        if named or kind in (None, "CONSTANT"):
            return None
        summed = is_called(part, scope.gate.aggregates) or part.get("type") == "GROUPING_FUNCTION"
        label = self.label(part) if self.grouped and summed else self.labels.get(self.form(part))
        return {**column(self.name, label), "alias": part.get("alias", "")} if label else None

    def around(self, node: Node) -> Node:
        """The query around."""
        clauses = (*SHOWN, *EARLIER) if self.made == "rows" else SHOWN
        changed = {clause: replaced(node[clause], self.taken) for clause in clauses}
        inner = {key: node[key] for key in ("from_table", "sample")}
        if changed.get("where_clause", node["where_clause"]) is node["where_clause"]:
            inner["where_clause"] = node["where_clause"]
            changed["where_clause"] = None
        if self.made == "windows":
            changed |= {"where_clause": changed["qualify"], "qualify": None}
        if self.grouped:
            inner |= self.groups()
            changed |= {**NO_GROUPS, "where_clause": changed["having"], "having": None}
        table = subquery(self.items, self.name, inner)
        for other in self.tables:
            table = {**template()["from_table"], "left": table, "right": other}
        return {**node, **changed, "cte_map": {"map": []}, "sample": None, "from_table": table}

    def groups(self) -> Node:
        scope = self.w.scope
        if scope.constant_groups:
            return {"group_expressions": [expression("'g'")], "group_sets": [[0]]}
        if not scope.groups:
            self.label(call("count_star"))
        return {"group_expressions": scope.groups, "group_sets": scope.group_sets}


def subquery(items: list[Node], name: str, of: Node | None = None) -> Node:
    """A SELECT in FROM."""
    table = template()["from_table"]["right"]
    node = {**template(), "from_table": EMPTY, **NO_GROUPS, "select_list": items, **(of or {})}
    return {**table, "subquery": {**table["subquery"], "node": node}, "alias": name}


def left(table: Node, scope: Scope) -> Source | None:
    """What is left of a table: names of columns of the query within."""
    items = (table.get("subquery") or {}).get("node", {}).get("select_list") or []
    if not items or any(not (n.get("column_names") or [""])[0].startswith(WITHIN) for n in items):
        return None
    within = next(source for source in scope.sources if source.alias == items[0]["column_names"][0])
    kinds = dict(within.columns)
    columns = [(item["alias"], kinds[item["column_names"][1]]) for item in items]
    return Source(
        table["alias"], columns, "", within=within.alias, spark={n["alias"]: n["column_names"][1] for n in items}
    )
