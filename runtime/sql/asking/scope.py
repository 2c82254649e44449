"""Names and types: what a column reference means, and the type DuckDB gives to any part of an expression.

Types are never guessed. A part is put into the select list of a probe over the same FROM and DuckDB describes it; a
part that it cannot describe is refused.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

from runtime.sql.model import Refused

from .gate import Gate, placeless, template
from .said import GateError
from .tree import EMPTY, NOWHERE, Node, first_offset, is_called
from .types import BOOLEAN, INTEGER, NULL, VARCHAR, Type, name_quoted

Columns = list[tuple[str, Type]]
#: Expressions without any below them: most of a statement.
LEAVES = ("COLUMN_REF", "CONSTANT")
#: Operators whose type is BOOLEAN whatever they stand between.
TRUE_OR_FALSE = ("OPERATOR_NOT", "OPERATOR_IS_NULL", "OPERATOR_IS_NOT_NULL", "COMPARE_IN", "COMPARE_NOT_IN")
#: With one of these below, an expression and its columns do not tell its type.
_FORMLESS = re.compile(r'"class": ?"(?:SUBQUERY|LAMBDA|STAR|POSITIONAL_REFERENCE|PARAMETER|DEFAULT)"')
_COLUMN = re.compile(r'"column_names": ?(\[[^\]"]*(?:"(?:[^"\\]|\\.)*"[^\]"]*)+\])')

#: Types that a cast names.
NAMED = ("TINYINT", "SMALLINT", "INTEGER", "BIGINT", "DOUBLE", "DATE", "TIMESTAMP")


@dataclass
class Source:
    """One item of FROM: its name in the SQL, its columns, and those hidden behind a USING."""

    alias: str
    columns: Columns
    schema: str = ""
    hidden: frozenset[str] = frozenset()
    within: str = ""  # Spark's name of the query that holds it, where it is not alone
    spark: dict[str, str] = field(default_factory=dict)  # and those of its columns there
    single: str = ""  # the column for which the name of the whole stands, of `unnest(list) AS name`
    lent: bool = False  # its columns by the query around, see lent.py

    @property
    def relation(self) -> str:
        """Spark's name of what holds the columns."""
        return self.within or self.alias

    def text(self, name: str) -> str:
        """A column as Spark's text names it."""
        return f"{name_quoted(self.relation)}.{name_quoted(self.spark.get(name, name))}"


@dataclass
class Scope:
    """The names that one SELECT sees; `parent` is the query around it."""

    gate: Gate
    parent: Scope | None = None
    ctes: list[Node] = field(default_factory=list)
    tables: dict[str, Columns] = field(default_factory=dict)  # CTE name -> its columns
    sources: list[Source] = field(default_factory=list)
    merged: dict[str, Type] = field(default_factory=dict)  # USING columns
    from_ast: Node | None = None
    query: Node | None = None  # the SELECT itself
    grouped: bool = False
    constant_groups: bool = False
    groups: list[Node] = field(default_factory=list)
    group_sets: list[list[int]] = field(default_factory=list)
    known: dict[int, Type] = field(default_factory=dict)
    kept: list[Node] = field(default_factory=list)  # nodes whose id() is a key of `known`
    lent: dict[str, tuple[Source, str]] = field(
        default_factory=dict
    )  # by Spark's text in the query around, see lent.py

    def inner(self, parent: Scope | None) -> Scope:
        """A scope that knows the same CTEs, and what `parent` sees."""
        return Scope(self.gate, parent, self.ctes, self.tables)

    def over(self, sources: list[Source], from_ast: Node) -> Scope:
        """The scope of what stands between these sources of its FROM."""
        return Scope(self.gate, self.parent, self.ctes, self.tables, sources, dict(self.merged), from_ast)

    def resolve(self, names: Sequence[str]) -> tuple[str, Type, list[str], Scope] | None:
        """Spark text, type, remaining struct fields and the scope of a column reference."""
        low = [n.lower() for n in names]
        for skip in (2, 1, 0):
            if len(low) <= skip:
                continue
            for source in self.sources:
                if skip == 0 and low[0] in self.merged:
                    return name_quoted(low[0]), self.merged[low[0]], list(names[1:]), self
                if (skip == 1 and low[0] != source.alias.lower()) or (
                    skip == 2 and (low[0], low[1]) != (source.schema, source.alias.lower())
                ):
                    continue
                for name, kind in source.columns:
                    if name.lower() == low[skip] and not (skip == 0 and name.lower() in source.hidden):
                        return source.text(name), kind, list(names[skip + 1 :]), self
                if source.single and skip == 1:
                    return source.text(source.single), dict(source.columns)[source.single], list(names[1:]), self
        found = self.parent.resolve(names) if self.parent else None
        if found and found[0] in self.lent:
            source, name = self.lent[found[0]]
            return source.text(name), found[1], found[2], self
        return found

    def path(self, source: Source, name: str) -> list[str]:
        """How a column is named, one of a subquery without a name by itself."""
        same = sum(of.lower() == name.lower() for other in self.sources for of, _ in other.columns)
        return [name] if source.alias.startswith("__s") and same == 1 else [source.alias, name]

    @contextmanager
    def ungrouped(self) -> Iterator[None]:
        """Meanwhile the rows are not grouped yet."""
        before, self.grouped = self.grouped, False
        try:
            yield
        finally:
            self.grouped = before

    def owns(self, name: str) -> bool:
        """Whether an unqualified name is a column of this FROM (and not of a query around it)."""
        found = self.resolve([name])
        return found is not None and found[3] is self

    def describe(self, node: Node) -> Columns:
        """The columns of a query node, alone or within what it refers to."""
        try:
            return self.gate.columns(node)
        except GateError:
            if self.parent is None or self.parent.from_ast is None:
                raise
        return self.parent.describe(self.parent.around(node))

    def is_correlated(self, query: Node) -> bool:
        """Whether a query node needs columns of those around it: DuckDB does not take it alone then."""
        try:
            self.gate.describe(self.gate.text({**query, "cte_map": {"map": self.ctes + query["cte_map"]["map"]}}))
        except GateError:
            return True
        return False

    def probe(self, select: list[Node], grouped: bool = False) -> Columns:
        """DuckDB's description of a select list over this FROM."""
        return self.describe(self.select(select, grouped))

    def types_of(self, select: list[Node], grouped: bool = False) -> list[Type]:
        """The types alone, which is cheaper."""
        if self.parent is None or self.parent.from_ast is None:
            return self.gate.types(self.select(select, grouped))
        return [kind for _, kind in self.probe(select, grouped)]

    def select(self, select: list[Node], grouped: bool = False) -> Node:
        node = {
            **template(),
            "select_list": select,
            "from_table": self.from_ast or EMPTY,
            "cte_map": {"map": self.ctes},
            "aggregate_handling": "STANDARD_HANDLING",
        }
        return node | {"group_expressions": self.groups, "group_sets": self.group_sets} if grouped else node

    def around(self, node: Node) -> Node:
        """A query node that refers to this scope's columns, as a lateral subquery of it."""
        star, join = template()["select_list"][0], template()["from_table"]
        lateral = {**join["right"], "subquery": {**join["right"]["subquery"], "node": node}, "alias": "__q"}
        return {
            **self.select([{**star, "relation_name": "__q"}]),
            "from_table": {**join, "left": self.from_ast or EMPTY, "right": lateral},
        }

    def prime(self, nodes: list[Node], aggregates: bool) -> None:
        """Types of many parts in one or two probes; what fails is tried alone when it is asked for."""
        plain: list[Node] = []
        grouped: list[Node] = []
        for part in nodes:
            if part.get("class") in (None, "LAMBDA", "STAR", "TYPE", "COLUMN_REF") or id(part) in self.known:
                continue
            kind = told(part) or self.gate.forms.get(self.form(part))
            if kind:
                self.tell(part, kind)
            else:
                (grouped if aggregates and self.has_aggregate(part) else plain).append(part)
        if grouped and all(map(is_fixed, plain)):
            plain, grouped = [], grouped + plain
        for bunch, by_group in ((plain, False), (grouped, True)):
            if not bunch:
                continue
            try:
                found = self.types_of([bare(n) for n in bunch], by_group)
            except GateError:
                continue
            if len(found) == len(bunch):
                for node, kind in zip(bunch, found, strict=True):
                    self.tell(node, kind)
                    if form := self.form(node):
                        self.gate.forms[form] = kind

    def form(self, part: Node) -> tuple[str, ...]:
        """An expression with the types of its columns, which together decide its type; empty for one of which more is
        needed."""
        written = placeless(bare(part))
        if _FORMLESS.search(written):
            return ()
        columns = []
        for names in _COLUMN.findall(written):
            found = self.resolve(json.loads(names))
            if found is None or found[2] or found[3] is not self or not found[1].is_whole:
                return ()
            columns.append(str(found[1]))
        return written, *columns

    def tell(self, node: Node, kind: Type) -> None:
        """The type of a part that need not be asked for."""
        self.known[id(node)] = kind
        self.kept.append(node)  # so that no other node gets its id

    def has_aggregate(self, node: Node) -> bool:
        """Whether an aggregate of this query level stands below the node."""
        if node.get("class") == "SUBQUERY":  # what is compared with its rows is of this level
            return bool(node["child"]) and self.has_aggregate(node["child"])
        if node.get("type") == "GROUPING_FUNCTION":
            return True
        if is_called(node, self.gate.aggregates):
            return True
        return any(self.has_aggregate(child) for child in children(node))

    def type(self, node: Node) -> Type:
        """The type DuckDB gives to this part."""
        if node.get("class") == "COLUMN_REF":
            found = self.resolve(node["column_names"])
            if found and not found[2]:
                return found[1]
        if id(node) not in self.known:
            try:
                kind = told(node) or self.types_of([bare(node)], self.grouped and self.has_aggregate(node))[0]
            except GateError as error:
                raise Refused(
                    f"this expression, whose type DuckDB does not tell ({error.message.splitlines()[0]})", where(node)
                ) from None
            self.tell(node, kind)
        return self.known[id(node)]


def told(node: Node) -> Type | None:
    """The type that DuckDB gives to whatever has this form, once it has taken the whole statement."""
    if (
        node["class"] in ("COMPARISON", "CONJUNCTION", "BETWEEN")
        or node["class"] == "OPERATOR"
        and node["type"] in TRUE_OR_FALSE
    ):
        return BOOLEAN
    if node["class"] == "CAST" and node["type_expr"]["type_name"] in NAMED and not node["type_expr"]["children"]:
        return Type(node["type_expr"]["type_name"])
    if node["class"] == "CONSTANT":
        literal = node["literal"]
        if literal["kind"] == "INTEGER" and str(literal.get("text")).isdigit() and int(literal["text"]) < 2**31:
            return INTEGER
        return {"STRING": VARCHAR, "BOOLEAN": BOOLEAN, "NULL": NULL}.get(literal["kind"])
    return None


def is_fixed(node: Node) -> bool:
    """Whether neither a column nor a query stands below."""
    return node["class"] not in ("COLUMN_REF", "SUBQUERY", "POSITIONAL_REFERENCE", "WINDOW", "STAR", "LAMBDA") and all(
        map(is_fixed, children(node))
    )


def children(node: Node) -> list[Node]:
    """The expressions directly below an expression (a subquery's own query excluded)."""
    out: list[Node] = []
    if node.get("class") in LEAVES:
        return out
    for key, value in node.items():
        of = type(value)
        if (of is not dict and of is not list) or not value or key == "subquery" or key == "type_expr":
            continue
        for item in value if of is list else (value,):
            if type(item) is dict:
                if "class" in item:
                    out.append(item)
                else:
                    out += children(item)
    return out


def parts(node: Node) -> list[Node]:
    """The node and every expression below it that has a type of its own; lambda bodies and subqueries are left out."""
    out = [node]
    for child in children(node):
        if child["class"] not in ("LAMBDA", "STAR", "TYPE") or child.get("syntax_type") == "SINGLE_ARROW":
            out += parts(child)
    return out


def where(node: Node) -> int | None:
    """Where in the text an expression begins, as near as its parts know."""
    at: int = node.get("query_location", NOWHERE)
    return at if at < NOWHERE else first_offset(node)


def bare(node: Node) -> Node:
    return {**node, "alias": ""} if node.get("alias") else node


def call(name: str, *arguments: Node) -> Node:
    """A plain function call as DuckDB serializes one."""
    return {
        "class": "FUNCTION",
        "type": "FUNCTION",
        "alias": "",
        "query_location": NOWHERE,
        "query_location_length": 0,
        "function_name": name,
        "schema": "",
        "filter": None,
        "order_bys": {"type": "ORDER_MODIFIER", "orders": []},
        "distinct": False,
        "is_operator": False,
        "export_state": False,
        "catalog": "",
        "arguments": [{"name": "", "expression": a} for a in arguments],
        "qualified_name": {"path": [name]},
    }


def column(*names: str) -> Node:
    return {
        "class": "COLUMN_REF",
        "type": "COLUMN_REF",
        "alias": "",
        "query_location": NOWHERE,
        "query_location_length": 0,
        "column_names": list(names),
    }
