"""Expressions: DuckDB's parse tree in, Spark text with DuckDB's type out. What is plain is written for Spark, every
other row-wise expression stands in the text as a call of DuckDB."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from runtime.sql.asking.said import GateError
from runtime.sql.asking.scope import Scope, where
from runtime.sql.asking.tree import UNNESTING, Node, is_called, paths
from runtime.sql.asking.types import BOOLEAN, NULL, Type, UnknownType, name_quoted
from runtime.sql.grouping import aggregates, equality, windows
from runtime.sql.model import Refused, SqlProblems
from runtime.sql.scalar import ahead, alike, casts, constants, plain, rowwise
from runtime.sql.scalar.calls import Place
from runtime.sql.scalar.casts import COMPARE, E, common, compared
from runtime.sql.scalar.constants import as_type
from runtime.sql.scalar.functions import moment

from . import among, correlated, respelt, tableless
from .sameness import same_form

if TYPE_CHECKING:
    from runtime.sql.queries.query import Queries

VOLATILE_NAMES = {"current_date", "current_time", "current_timestamp", "localtime", "localtimestamp", "today"}


class Expressions:
    """Writes the expressions of one scope."""

    def __init__(self, queries: Queries, scope: Scope) -> None:
        self.queries = queries
        self.scope = scope
        self.calls = queries.calls
        self.place = self.calls.place()
        self.grouped = True  # whether an expression of GROUP BY stands for its group here
        self.unnested: dict[str | int, E] = {}  # by form; by id() what may stand once, in the select list
        self.plain_in: set[int] = set()
        self.plain: dict[int, bool] = {}
        self.all_asked = False  # whether its aggregates are DuckDB's
        self._below: Place | None = None
        self._partitions: dict[str, Place] = {}
        self._groups: dict[str, Node] | None = None
        self._writers: dict[str, Callable[[Node], E]] = {
            "CONSTANT": self.folded,
            "COLUMN_REF": self.column,
            "COMPARISON": self.comparison,
            "CONJUNCTION": self.conjunction,
            "OPERATOR": self.operator,
            "CASE": self.case,
            "CAST": self.cast_node,
            "BETWEEN": self.between,
            "SUBQUERY": self.subquery,
            "POSITIONAL_REFERENCE": self.positional,
            "FUNCTION": self.function,
            "WINDOW": lambda n: windows.write(self, n),
        }

    def write(self, node: Node) -> E:
        try:
            if self.is_atom(node):
                return self.atom(node)
            if self.is_plain(node):
                if self.is_constant(node):
                    return self.folded(node)
                return self._writers[node["class"]](node)
            return rowwise.write(self, node)
        except UnknownType as error:
            raise Refused(f"a value of type {error} (cast it, or use it within one expression)", where(node)) from None
        except Refused as refusal:
            if refusal.where is None:
                refusal.where = where(node)
            raise
        except (GateError, SqlProblems, RecursionError):
            raise
        except Exception as error:  # an unforeseen form: told at its line like any other that is not translated
            raise Refused(unforeseen(node, error), where(node)) from error

    # ---- where an expression is computed

    @contextmanager
    def at(self, place: Place | None = None, *, grouped: bool = True) -> Iterator[None]:
        """What is written meanwhile goes into calls of a place of its own."""
        before = self.place, self.grouped
        self.place, self.grouped = place or self.calls.place(), grouped
        try:
            yield
        finally:
            self.place, self.grouped = before

    def below(self) -> Any:
        """Keys of groups and arguments of aggregates are computed together, before the rows are grouped."""
        self._below = self._below or self.calls.place()
        return self.at(self._below, grouped=False)

    def of_partitions(self, keys: str) -> Place:
        """Where windows over the same partitions are computed together."""
        return self._partitions.setdefault(keys, self.calls.place())

    def is_plain(self, node: Node) -> bool:
        return plain.is_plain(self, node)

    def is_atom(self, node: Node) -> bool:
        """Whether an expression is an input of row-wise ones: a column, or what rows are needed for."""
        kind = node["class"]
        if kind == "COLUMN_REF":
            return not self.reached(node)
        if kind in ("SUBQUERY", "WINDOW", "POSITIONAL_REFERENCE"):
            return True
        if kind == "OPERATOR" and node["type"] == "GROUPING_FUNCTION":
            return True
        if kind == "FUNCTION":
            name = node["function_name"]
            if name in self.scope.gate.aggregates or moment(name) and not node["arguments"] or self.listed(node):
                return True
        return self.group(node) is not None

    def reached(self, node: Node) -> list[str]:
        """The names in `json.field.field` that are no fields of a struct: what DuckDB itself looks for in the value."""
        found = self.scope.resolve(node["column_names"])
        kind, rest = (found[1], found[2]) if found else (NULL, [])
        for at, name in enumerate(rest):
            if kind.name != "STRUCT":
                return rest[at:]
            kind = dict(zip(map(str.lower, kind.fields), kind.args, strict=True)).get(name.lower(), NULL)
        return []

    def atom(self, node: Node) -> E:
        if found := self.listed(node):
            return found
        group = self.group(node)
        if group is None:
            return self._writers[node["class"]](node)
        with self.below():
            found = self.write(group["child"] if group["class"] == "COLLATE" else group)
            if equality.stands(self, group):
                return found
            return E(equality.any_of(self, found, group), found.type)

    def listed(self, node: Node) -> E | None:
        """The value that an unnest() has in a row."""
        if not is_called(node, UNNESTING):
            return None
        return self.unnested.get(id(node)) or self.unnested.get(same_form(node))

    def group(self, node: Node) -> Node | None:
        """The expression of GROUP BY that this one is; none for a column that Spark itself takes for its group."""
        if not self.grouped or not self.scope.grouped or node["class"] == "CONSTANT":
            return None
        if self._groups is None:
            self._groups = equality.groups(self)
        return self._groups.get(self.form(node)) if self._groups else None

    def form(self, node: Node) -> str:
        """A text that is equal for the same expressions."""
        found = self.scope.resolve(node["column_names"]) if node["class"] == "COLUMN_REF" else None
        return found[0] if found and not found[2] else same_form(node)

    # ---- types

    def type(self, node: Node) -> Type:
        return self.scope.type(node)

    def cast(self, e: E, to: Type, node: Node) -> E:
        """The value as `to`."""
        try:
            text = casts.widened(e, to)
            return E(text, to) if text is not None else rowwise.over(self, f"CAST({{0}} AS {to})", [e], to, node)
        except UnknownType as error:
            raise Refused(f"a value of type {error} (cast it, or use it within one expression)", where(node)) from None

    def as_type(self, node: Node, to: Type) -> E:
        """An expression as a value of a type; a constant is made one while the model is checked."""
        kind = self.type(node)
        if kind != to and not casts.is_widening(kind, to) and self.is_constant(node) and plain.is_literal(to):
            return self.folded(self.made(node, to))
        return self.cast(self.write(node), to, node)

    def made(self, node: Node, to: Type) -> Node:
        """A cast of the node."""
        made = as_type(node, to)
        self.scope.tell(made, to)
        return made

    def over(self, sql: str, found: list[E], kind: Type, node: Node) -> E:
        """DuckDB's text with {0}, {1}… for values that are written already."""
        return rowwise.over(self, sql, found, kind, node)

    def condition(self, node: Node) -> str:
        """A node that must be true or false."""
        return self.cast(self.write(node), BOOLEAN, node).text

    # ---- constants: DuckDB itself computes them

    def is_constant(self, node: Node) -> bool:
        return constants.is_constant(self.scope.gate, node)

    def folded(self, node: Node) -> E:
        return constants.folded(self, node) or self.asked(node)

    def asked(self, node: Node) -> E:
        """A constant that DuckDB computes where its value is needed."""
        return rowwise.made(self, self.scope.gate.spelt(node), set(), self.type(node), node)

    def fold_ahead(self, nodes: list[Node], kind: Type) -> None:
        """Has those of many that are constants computed at once, as values of a type."""
        ahead.fold(self, nodes, kind)

    def constant(self, node: Node, what: str) -> Any:
        """The Python value of an argument that must be constant."""
        return constants.value(self, node, what)

    # ---- columns and operators

    def column(self, node: Node) -> E:
        names = node["column_names"]
        found = self.scope.resolve(names)
        if found is None:
            said = moment(names[0].lower()) if len(names) == 1 else None
            if said:
                return said
            if len(names) == 1 and (meant := respelt.named(names[0])):
                return self.write({**meant, "query_location": node["query_location"]})
            raise Refused(f"the name {'.'.join(names)}", where(node))
        text, kind, rest, scope = found
        if scope is not self.scope and scope is not self.scope.parent:
            told = "a column of a query around the one around this (write its table before it, or a join)"
            told = f"{'.'.join(names)}, {told}"
            raise Refused(told, where(node), hint=False)
        for name in rest:
            text, kind = self.field(E(text, kind), name, node)
        return E(text, kind)

    def allow_in(self, node: Node, alone: bool = True) -> None:
        """Notes the IN (SELECT …) of a WHERE for which NULL and false come to the same, or that Spark negates with
        NULLs in mind."""
        if node["class"] == "CONJUNCTION":
            for child in node["children"]:
                self.allow_in(child, alone and node["type"] == "CONJUNCTION_AND")
        elif node["class"] == "SUBQUERY":
            self.plain_in.add(id(node))
        elif node["class"] == "OPERATOR" and node["type"] == "OPERATOR_NOT" and alone:
            self.plain_in.add(id(node["children"][0]))

    def positional(self, node: Node) -> E:
        """#1: the first column of FROM."""
        columns = [(s, n, t) for s in self.scope.sources for n, t in s.columns]
        source, name, kind = columns[int(node["index"]) - 1]
        return E(source.text(name), kind)

    def field(self, e: E, name: str, node: Node) -> tuple[str, Type]:
        if e.type.name == "STRUCT":
            for field, kind in zip(e.type.fields, e.type.args, strict=True):
                if field.lower() == name.lower():
                    return f"{e.text}.{name_quoted(field)}", kind
        raise Refused(f".{name} of a value of type {e.type}", where(node))

    def both(self, left: Node, right: Node) -> tuple[E, E]:
        """Two plain sides of a comparison; a constant takes the other side's type."""
        for one, other in ((left, right), (right, left)):
            kind = self.type(other)
            if self.is_constant(one) and self.type(one) != kind and plain.fits(self, one, kind):
                spelt = self.folded(self.made(one, kind))
                return (spelt, self.write(other)) if one is left else (self.write(other), spelt)
        a, b = self.write(left), self.write(right)
        if a.type == b.type or a.type.letter in "id" and b.type.letter in "id":
            return a, b
        kind = common(a.type, b.type) or a.type
        return self.cast(a, kind, left), self.cast(b, kind, right)

    def comparison(self, node: Node) -> E:
        a, b = self.both(node["left"], node["right"])
        return E(compared(node["type"], a, b), BOOLEAN)

    def conjunction(self, node: Node) -> E:
        word = " AND " if node["type"] == "CONJUNCTION_AND" else " OR "
        return E("(" + word.join(self.condition(c) for c in node["children"]) + ")", BOOLEAN)

    def between(self, node: Node) -> E:
        low, high = self.both(node["input"], node["lower"]), self.both(node["input"], node["upper"])
        return E(
            f"({compared('COMPARE_GREATERTHANOREQUALTO', *low)} AND {compared('COMPARE_LESSTHANOREQUALTO', *high)})",
            BOOLEAN,
        )

    def case(self, node: Node) -> E:
        kind = self.type(node)
        out = ["CASE"]
        for check in node["case_checks"]:
            then = self.as_type(check["then_expr"], kind).text
            out.append(f"WHEN {self.condition(check['when_expr'])} THEN {then}")
        out.append(f"ELSE {self.as_type(node['else_expr'], kind).text} END")
        return E(" ".join(out), kind)

    def cast_node(self, node: Node) -> E:
        return alike.written(self, node) or self.cast(self.write(node["child"]), self.type(node), node)

    def operator(self, node: Node) -> E:
        kind, items = node["type"], node["children"]
        if kind == "OPERATOR_NOT":
            return E(f"(NOT {self.condition(items[0])})", BOOLEAN)
        if kind in ("OPERATOR_IS_NULL", "OPERATOR_IS_NOT_NULL"):
            return E(f"({self.write(items[0]).text} IS {'NOT ' if 'NOT' in kind else ''}NULL)", BOOLEAN)
        if kind == "OPERATOR_COALESCE":
            to = self.type(node)
            return E("coalesce(" + ", ".join(self.as_type(c, to).text for c in items) + ")", to)
        if kind in ("COMPARE_IN", "COMPARE_NOT_IN"):
            return self.within(items, kind)
        if kind == "GROUPING_FUNCTION" and items:
            with self.below():
                bits = [f"CAST(grouping({equality.key(self, i, 'grouping() of')}) AS BIGINT)" for i in items]
            weighed = [f"{bit} * {2**at}L" if at else bit for at, bit in enumerate(reversed(bits))]
            return E(f"({' + '.join(reversed(weighed))})", self.type(node))
        raise Refused(kind.replace("OPERATOR_", "").replace("_", " "), where(node))

    def within(self, items: list[Node], kind: str) -> E:
        head = self.write(items[0])
        self.fold_ahead(items[1:], head.type)
        texts = [self.both(items[0], item)[1].text for item in items[1:]]
        return E(f"({head.text} {'NOT IN' if kind == 'COMPARE_NOT_IN' else 'IN'} ({', '.join(texts)}))", BOOLEAN)

    def subquery(self, node: Node) -> E:
        if tableless.is_tableless(self, node):
            return tableless.write(self, node)
        kind, inner = node["subquery_type"], node["subquery"]["node"]
        if kind in ("EXISTS", "NOT_EXISTS"):
            self.queries.stands_for(of_any := correlated.of_any_row(inner), inner)
            inner = of_any
        text, columns = self.queries.write(inner, self.scope)
        if kind in ("EXISTS", "NOT_EXISTS"):
            return E(f"({'NOT ' if kind == 'NOT_EXISTS' else ''}EXISTS ({text}))", BOOLEAN)
        if len(columns) != 1 and kind == "ANY" and node["comparison_type"] == "COMPARE_EQUAL":
            return among.several(self, node, text, columns)
        if len(columns) != 1:
            raise Refused("a subquery of several columns as a value", where(node))
        if kind == "SCALAR":
            return E(f"({text})", columns[0][1])
        if kind == "ANY" and node["comparison_type"] in COMPARE:
            return among.one(self, node, text, columns[0][1])
        raise Refused(f"a comparison with {kind} (subquery)", where(node))

    def function(self, node: Node) -> E:
        return alike.written(self, node) or moment(node["function_name"]) or aggregates.write(self, node)

    def fields(self, node: Node) -> list[str]:
        """The names behind that of a column."""
        found = self.scope.resolve(node["column_names"])
        return found[2] if found else []

    def is_mixed(self, node: Node) -> bool:
        """Whether columns both of this query and of one around it stand in an expression."""
        found = filter(None, map(self.scope.resolve, paths(node)))
        return len({scope is self.scope for _, _, _, scope in found}) > 1

    def is_outer(self, node: Node) -> bool:
        """Whether a column of a query around this one stands in it."""
        found = filter(None, map(self.scope.resolve, paths(node)))
        return any(scope is not self.scope for _, _, _, scope in found)


def unforeseen(node: Node, error: Exception) -> str:
    """A construct over which the translation itself fails, with what a person can do."""
    name = node.get("function_name") or str(node.get("class", "")).lower().replace("_", " ")
    return f"this form of {name} (the translation fails: {type(error).__name__}: {error}; please report it)"


__all__ = ["E", "Expressions"]
