"""Query nodes: SELECT, set operations, CTEs. Every projection is written out under DuckDB's name and type for it."""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping
from typing import Any

from runtime.sql.asking.gate import Gate
from runtime.sql.asking.said import GateError
from runtime.sql.asking.scope import Columns, Scope, parts, where
from runtime.sql.asking.tree import Node, first_offset, own
from runtime.sql.asking.types import name_quoted
from runtime.sql.expressions import correlated, held, tableless
from runtime.sql.expressions.expr import E, Expressions
from runtime.sql.grouping import aggregates, as_read, equality
from runtime.sql.grouping.orders import position
from runtime.sql.model import Refused
from runtime.sql.scalar import alike, collations
from runtime.sql.scalar.calls import Calls

from . import around, conditions, lent, modifiers, recursion, repeated, rolled, rows, setops, shadowing
from .aliases import substitute
from .clauses import Select, assembled
from .item import relabelled
from .source import Sources, deduplicated
from .stars import every, expand
from .unnest import is_apart, parted, unnested

Lookup = Callable[[list[str]], tuple[str, Columns]]


class Queries:
    def __init__(self, gate: Gate, tables: Lookup, calls: Calls) -> None:
        self.gate = gate
        self.calls = calls
        self.tables = tables
        self.sources = Sources(self)
        self.known: dict[int, Columns] = {}  # nodes that DuckDB has described already
        self.top: int | None = None  # the whole statement, by id()
        self.lateral: set[int] = set()  # the queries of LATERAL subqueries, by id()
        self.beside = 0  # LATERAL subqueries around what is written
        self.kept: list[Node] = []  # so that no other node gets the id() of one of these
        self.united: set[str] = set()  # names of CTEs that hold a UNION ALL
        self._count = 0

    def number(self) -> int:
        self._count += 1
        return self._count

    def expressions(self, scope: Scope) -> Expressions:
        return Expressions(self, scope)

    def write(self, node: Node, parent: Scope | None, around: Scope | None = None) -> tuple[str, Columns]:
        """Spark text and columns of a query node. `around` lends its CTEs, `parent` also its columns."""
        above = around or parent
        if above and (other := shadowing.apart(node, above.tables)) is not node:
            self.stands_for(other, node)
            node = other
        scope = Scope(self.gate, parent, list(above.ctes) if above else [], dict(above.tables) if above else {})
        scope.query = node
        head = self.ctes(node, scope)
        if node["type"] == "SELECT_NODE":
            text, columns = rolled.written(self, node, scope)
        elif node["type"] == "SET_OPERATION_NODE":
            text, columns = setops.write(self, node, scope)
        else:
            raise Refused(node["type"].removesuffix("_NODE").replace("_", " ").lower(), first_offset(node))
        return head + text, columns

    def is_united(self, text: str) -> bool:
        return "UNION ALL" in text or any(name_quoted(name) in text for name in self.united)

    def ctes(self, node: Node, scope: Scope) -> str:
        """The WITH of a query node; its tables are added to the scope."""
        written, recursive, once = [], False, repeated.repeated(node)
        for entry in node["cte_map"]["map"]:
            name, body = entry["key"].lower(), entry["value"]["query_node"]
            aliases = entry["value"].get("aliases") or []
            if body["type"] == "RECURSIVE_CTE_NODE":
                text, columns = self.recursive(entry, scope, aliases)
                recursive = True
            else:
                text, columns = self.write(body, scope.parent, scope)
                text = repeated.ONCE.format(text) if name in once else text
            columns = deduplicated(columns)
            columns = relabelled(columns, aliases)
            scope.ctes.append(entry)
            scope.tables[name] = columns
            self.united |= {name} if self.is_united(text) else set()
            written.append(f"{name_quoted(name)}(" + ", ".join(name_quoted(n) for n, _ in columns) + f") AS ({text})")
        return f"WITH {'RECURSIVE ' if recursive else ''}" + ", ".join(written) + " " if written else ""

    def recursive(self, entry: Node, scope: Scope, aliases: list[str]) -> tuple[str, Columns]:
        body, name = entry["value"]["query_node"], entry["key"].lower()
        if not body["union_all"] or body.get("key_targets") or recursion.is_made(self, entry, scope):
            return recursion.whole(self, entry, scope)
        select = {**copy.deepcopy(body["left"]), "cte_map": {"map": []}}
        left, columns = self.write(select, scope.parent, scope)
        inner = Scope(self.gate, scope.parent, [*scope.ctes, entry], {**scope.tables})
        inner.tables[name] = relabelled(columns, aliases)
        right, found = self.write(body["right"], scope.parent, inner)
        return f"{left} UNION ALL {self.shaped(right, found, columns, body)}", columns

    def select(self, node: Node, scope: Scope) -> tuple[str, Columns]:
        if is_apart(node):
            return self.select(parted(node, [n for n, _ in self.described(node, scope)]), scope)
        source = self.sources.read(node["from_table"], scope, node)
        try:
            described = self.described(node, scope)
        except GateError as error:
            raise Refused(
                f"this SELECT, which DuckDB does not describe alone ({error.message.splitlines()[0]})",
                first_offset(node),
            ) from None
        whole, node = node, equality.of_distinct({**node, **self.rows(node, scope)}, described)
        projections = expand(node["select_list"], scope)
        if len(projections) != len(described):
            raise Refused("this form of * or COLUMNS()", first_offset(node))
        aliases: dict[str, Node] = {}
        for at, item in enumerate(projections):
            item = substitute(item, aliases, scope)
            projections[at] = item
            scope.tell(item, described[at][1])
            if item.get("alias"):
                aliases.setdefault(item["alias"].lower(), {**item, "alias": ""})
        clauses = {
            k: substitute(every(node[k], scope), aliases, scope) if node.get(k) else None
            for k in ("where_clause", "having", "qualify")
        }
        self.check_collations(whole, projections, described)
        writer = self.expressions(scope)
        groups = self.find_groups(node, projections, aliases, clauses["having"], writer)
        nodes = [p for root in [*projections, *groups, *filter(None, clauses.values())] for p in parts(root)]
        scope.prime(nodes, scope.grouped)
        shown = [{**item, "alias": name} for item, (name, _) in zip(projections, described, strict=True)]
        if apart := around.parted(writer, {**node, "select_list": shown, **clauses}, aliases):
            return self.around(apart, whole, scope, described)
        first, *others = clauses.values()
        later = aggregates.settled(writer, [projections, groups, others, node["modifiers"]])
        source = lent.lent(writer, source, [first, later], [*groups, *conditions.unjoined(writer, first)], first)
        out = Select([n for n, _ in described], [], [t for _, t in described], source, as_read=as_read.number(writer))
        out.projections, out.aliases = projections, aliases
        if any(m["type"] == "DISTINCT_MODIFIER" and not m.get("distinct_on_targets") for m in whole["modifiers"]):
            out.selected = frozenset(map(writer.form, projections))
        out.source = unnested(writer, projections, clauses["qualify"], out.source, lateral=id(whole) in self.lateral)
        for item, (name, kind) in zip(projections, described, strict=True):
            if item["class"] == "COLUMN_REF" and writer.type(item).letter not in (kind.letter, "0"):
                raise Refused(f"the name {name}, which DuckDB takes for something else", where(item))
            out.texts.append(held.column(writer, item, kind))
        for at in alike.along(writer, projections):
            out.texts[at] = held.column(writer, projections[at], out.types[at])
        kept = [held.HERE] if self.is_united(out.source) and tableless.others(writer, later) else []
        if first:
            writer.allow_in(first)
            kept.append(conditions.written(writer, first))
        out.where = " AND ".join(kept)
        if scope.grouped and groups:
            out.group = self.grouping(groups, node, writer)
        self.groups_kept(clauses, out, [projections, node["modifiers"]], writer)
        modifiers.write(writer, node, out)
        return assembled(out), list(zip(out.names, out.types, strict=True))

    def around(self, node: Node, instead_of: Node, scope: Scope, described: Columns) -> tuple[str, Columns]:
        """The query in the place of another one."""
        self.stands_for(node, instead_of)
        scope.group_sets = []
        text, columns = self.select(node, scope.inner(scope.parent))
        if columns != described:
            raise Refused("a subquery that needs what this SELECT makes of its rows", first_offset(instead_of))
        return text, columns

    def stands_for(self, node: Node, instead_of: Node) -> None:
        """What is known of a query, of another one that takes its place."""
        self.kept.append(node)
        self.top = id(node) if self.top == id(instead_of) else self.top
        self.lateral |= {id(node)} if id(instead_of) in self.lateral else set()

    def described(self, node: Node, scope: Scope) -> Columns:
        return self.known.get(id(node)) or scope.describe({**node, "cte_map": {"map": scope.ctes}})

    def groups_kept(
        self, clauses: Mapping[str, Node | None], out: Select, others: list[Any], writer: Expressions
    ) -> None:
        """HAVING and QUALIFY."""
        if clauses["having"]:
            aggregates.settle_having(writer, clauses["having"])
            out.having = held.condition(writer, clauses["having"])
            below = own([clauses["having"], *others])
            grouping = any(n.get("type") == "GROUPING_FUNCTION" for n in own(clauses["having"]))
            if grouping and not clauses["qualify"] and not any(n.get("class") == "WINDOW" for n in below):
                out.having, out.qualify = "", out.having  # Spark knows no grouping() of what is computed in HAVING
        if writer.scope.constant_groups:  # a group for some rows, none for none
            out.having = f"(count(1) > 0) AND {out.having}" if out.having else "count(1) > 0"
        if clauses["qualify"]:
            out.qualify = held.condition(writer, clauses["qualify"])

    def rows(self, node: Node, scope: Scope) -> Node:
        """The parts of a SELECT, with a STRUCT in the place of each name of a table."""
        named = frozenset(item["alias"].lower() for item in node["select_list"] if item.get("alias"))
        first: Node = {"select_list": [rows.written_out(item, scope) for item in node["select_list"]]}
        return first | {
            key: rows.written_out({"": node[key]}, scope, named)[""]
            for key in ("where_clause", "having", "qualify", "group_expressions", "modifiers")
            if node.get(key)
        }

    def check_collations(self, node: Node, projections: list[Node], described: Columns) -> None:
        """A column that has a collation goes nowhere but out."""
        for item, (_, kind) in zip(projections, described, strict=True) if id(node) != self.top else ():
            if collations.is_collated(item, kind):
                told = "COLLATE in a column of a subquery (write lower(x) or strip_accents(x))"
                raise Refused(told, where(item), hint=False)

    def find_groups(
        self, node: Node, projections: list[Node], aliases: Mapping[str, Node], having: Node | None, writer: Expressions
    ) -> list[Node]:
        """The keys of its groups, which the scope knows from now on."""
        scope = writer.scope
        groups = self.groups(node, projections, aliases, scope)
        by = bool(groups) or scope.constant_groups or having is not None
        scope.grouped = by or any(around.is_summed(writer, p, aliases) for p in projections)
        written = len(groups) == len(node["group_expressions"]) > 0
        scope.group_sets = node["group_sets"] if written else [list(range(len(groups)))] if groups else []
        scope.groups = groups
        return groups

    def groups(self, node: Node, projections: list[Node], aliases: Mapping[str, Node], scope: Scope) -> list[Node]:
        if node["aggregate_handling"] == "FORCE_AGGREGATES":
            writer = self.expressions(scope)
            plain = [{**p, "alias": ""} for p in projections if not around.is_summed(writer, p, aliases)]
            kept = node.get("of_distinct")  # of GROUP BY ALL, what no column is in is no group
            varying = [p for p in plain if not writer.is_constant(p)]
            varying = varying if kept else [p for p in varying if correlated.is_varying(scope, p)]
            scope.constant_groups = bool(kept and plain and not varying)
            return varying
        out: list[Node] = []
        constants: list[Node] = []
        for group in node["group_expressions"]:
            at = position(group)
            if at is not None:
                group = {**projections[at - 1], "alias": ""}
            else:
                group = substitute(group, aliases, scope)
            if self.expressions(scope).is_constant(group):
                if len(node["group_sets"]) > 1:
                    raise Refused("GROUPING SETS with a constant", where(group), hint=False)
                constants.append(group)
            else:
                out.append(group)
        scope.constant_groups = bool(constants) and not out
        return out

    def grouping(self, groups: list[Node], node: Node, writer: Expressions) -> str:
        with writer.below():
            texts = [equality.group(writer, g) for g in groups]
        sets = node["group_sets"] if node["group_expressions"] else []
        if len(sets) <= 1:
            return ", ".join(texts)
        return "GROUPING SETS (" + ", ".join("(" + ", ".join(texts[i] for i in one) + ")" for one in sets) + ")"

    def shaped(self, text: str, found: Columns, wanted: Columns, node: Node) -> str:
        """The query in parentheses, its columns cast to the common types where they differ."""
        if [t for _, t in found] == [t for _, t in wanted]:
            return f"({text})"
        names = [f"c{i}" for i in range(len(found))]
        writer = self.expressions(Scope(self.gate))
        texts = [
            writer.cast(E(f"__x.{n}", t), w, node).text + f" AS {name_quoted(label)}"
            for n, (_, t), (label, w) in zip(names, found, wanted, strict=True)
        ]
        return f"(SELECT {', '.join(texts)} FROM ({text}) AS __x({', '.join(names)}))"
