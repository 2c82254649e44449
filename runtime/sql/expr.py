"""Expressions: DuckDB's parse tree in, Spark text with DuckDB's type out."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from . import casts, constants, windows
from .casts import E, common
from .constants import as_type, lambda_params
from .functions import lists, registry
from .model import Refused, SqlProblems
from .said import GateError
from .scope import Lambda, Scope, where
from .texts import string
from .tree import Node, walk
from .types import BOOLEAN, INTEGER, JSON, NULL, VARCHAR, Type, UnknownType, name_quoted, parse

if TYPE_CHECKING:
    from .query import Queries

COMPARE = {
    "COMPARE_EQUAL": "=",
    "COMPARE_NOTEQUAL": "<>",
    "COMPARE_LESSTHAN": "<",
    "COMPARE_GREATERTHAN": ">",
    "COMPARE_LESSTHANOREQUALTO": "<=",
    "COMPARE_GREATERTHANOREQUALTO": ">=",
    "COMPARE_NOT_DISTINCT_FROM": "<=>",
    "COMPARE_DISTINCT_FROM": "<=>",
}
VOLATILE_NAMES = {"current_date", "current_time", "current_timestamp", "localtime", "localtimestamp", "today"}


class Expressions:
    """Writes the expressions of one scope."""

    def __init__(self, queries: Queries, scope: Scope) -> None:
        self.queries = queries
        self.scope = scope
        self.unnested: dict[int, E] = {}
        self.plain_in: set[int] = set()
        self._writers: dict[str, Callable[[Node], E]] = {
            "CONSTANT": self.constant_node,
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
            "LAMBDA": self.arrow,
        }

    def write(self, node: Node) -> E:
        try:
            if id(node) in self.unnested:
                return self.unnested[id(node)]
            if node["class"] not in ("CONSTANT", "COLUMN_REF") and self.is_constant(node):
                return self.folded(node)
            if node["class"] not in self._writers:
                raise Refused(node["class"].replace("_", " ").lower(), where(node))
            return self._writers[node["class"]](node)
        except UnknownType as error:
            raise Refused(f"a value of type {error}", where(node)) from None
        except Refused as refusal:
            if refusal.where is None:
                refusal.where = where(node)
            raise
        except (GateError, SqlProblems, RecursionError):
            raise
        except Exception as error:  # an unforeseen form: told at its line like any other that is not translated
            raise Refused(unforeseen(node, error), where(node)) from error

    def type(self, node: Node) -> Type:
        return self.scope.type(node)

    def cast(self, e: E, to: Type, node: Node, try_: bool = False) -> E:
        try:
            return casts.cast(e, to, try_, None)
        except Refused as refusal:
            if refusal.where is None:
                refusal.where = where(node)  # found only now: it is a walk through all parts
            raise
        except UnknownType as error:
            raise Refused(f"a value of type {error}", where(node)) from None

    def condition(self, node: Node) -> str:
        """A node that must be true or false."""
        return self.cast(self.write(node), BOOLEAN, node).text

    # ---- constants: DuckDB itself computes them

    def is_constant(self, node: Node) -> bool:
        return constants.is_constant(self.scope.gate, node)

    def folded(self, node: Node) -> E:
        return constants.folded(self, node)

    def constant(self, node: Node, what: str) -> Any:
        """The Python value of an argument that must be constant."""
        return constants.value(self, node, what)

    def constant_node(self, node: Node) -> E:
        literal = node["literal"]
        kind, text = literal["kind"], literal.get("text")
        if kind == "NULL":
            return E("NULL", NULL)
        if kind == "STRING":
            return E(string(text or ""), VARCHAR)
        if kind == "BOOLEAN":
            return E(str(text).lower(), BOOLEAN)
        if kind == "INTEGER" and str(text).isdigit() and int(text) < 2**31:
            return E(str(text), INTEGER)
        return self.folded(node)

    # ---- columns and operators

    def column(self, node: Node) -> E:
        names = node["column_names"]
        found = self.scope.resolve(names)
        if found is None:
            if len(names) == 1 and names[0].lower() in VOLATILE_NAMES:
                return registry.write(self, names[0].lower(), [], node)
            raise Refused(f"the name {'.'.join(names)}", where(node))
        text, kind, rest, _ = found
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
        return E(f"{name_quoted(source.alias)}.{name_quoted(name)}", kind)

    def field(self, e: E, name: str, node: Node) -> tuple[str, Type]:
        if e.type.name == "STRUCT":
            for field, kind in zip(e.type.fields, e.type.args, strict=True):
                if field.lower() == name.lower():
                    return f"{e.text}.{name_quoted(field)}", kind
        raise Refused(f".{name} of a value of type {e.type}", where(node))

    def both(self, left: Node, right: Node, node: Node) -> tuple[E, E]:
        """Two sides of a comparison in their common type; a constant text takes the other side's type."""
        a, b = self.write(left), self.write(right)
        if a.type == b.type:
            return a, b
        for one, other, source in ((a, b, left), (b, a, right)):
            if (
                one.type.name == "VARCHAR"
                and source["class"] == "CONSTANT"
                and other.type.name not in ("VARCHAR", "JSON", "NULL", "STRUCT", "LIST", "MAP")
            ):
                spelt = self.folded(as_type(source, other.type)) if other.type.name != "NULL" else one
                return (spelt, other) if one is a else (other, spelt)
        if {a.type.name, b.type.name} == {"JSON", "VARCHAR"}:
            return E(a.text, VARCHAR), E(b.text, VARCHAR)
        kind = common(a.type, b.type)
        if kind is None:
            raise Refused(f"a comparison of {a.type} with {b.type} (cast one of them)", where(node), hint=False)
        if kind.letter in "id" and a.type.is_numeric and b.type.is_numeric:
            return a, b
        return self.cast(a, kind, left), self.cast(b, kind, right)

    def comparison(self, node: Node) -> E:
        a, b = self.both(node["left"], node["right"], node)
        return E(self.compared(node["type"], a, b, node), BOOLEAN)

    def compared(self, operator: str, a: E, b: E, node: Node) -> str:
        if operator not in COMPARE:
            raise Refused(operator, where(node))
        letter = a.type.letter
        if letter in "?mv" or letter in "lr" and COMPARE[operator] not in ("=", "<>", "<=>"):
            raise Refused(f"{COMPARE[operator]} between values of type {a.type}", where(node))
        text = f"({a.text} {COMPARE[operator]} {b.text})"
        return f"(NOT {text})" if operator == "COMPARE_DISTINCT_FROM" else text

    def conjunction(self, node: Node) -> E:
        word = " AND " if node["type"] == "CONJUNCTION_AND" else " OR "
        return E("(" + word.join(self.condition(c) for c in node["children"]) + ")", BOOLEAN)

    def between(self, node: Node) -> E:
        low, high = self.both(node["input"], node["lower"], node), self.both(node["input"], node["upper"], node)
        return E(
            f"({self.compared('COMPARE_GREATERTHANOREQUALTO', *low, node)} AND "
            f"{self.compared('COMPARE_LESSTHANOREQUALTO', *high, node)})",
            BOOLEAN,
        )

    def case(self, node: Node) -> E:
        kind = self.type(node)
        out = ["CASE"]
        for check in node["case_checks"]:
            then = self.cast(self.write(check["then_expr"]), kind, check["then_expr"]).text
            out.append(f"WHEN {self.condition(check['when_expr'])} THEN {then}")
        out.append(f"ELSE {self.cast(self.write(node['else_expr']), kind, node['else_expr']).text} END")
        return E(" ".join(out), kind)

    def cast_node(self, node: Node) -> E:
        inner = self.write(node["child"])
        return self.cast(inner, self.type(node), node, bool(node.get("try_cast")))

    def operator(self, node: Node) -> E:
        kind, items = node["type"], node["children"]
        if kind == "OPERATOR_NOT":
            return E(f"(NOT {self.condition(items[0])})", BOOLEAN)
        if kind in ("OPERATOR_IS_NULL", "OPERATOR_IS_NOT_NULL"):
            return E(f"({self.write(items[0]).text} IS {'NOT ' if 'NOT' in kind else ''}NULL)", BOOLEAN)
        if kind == "OPERATOR_COALESCE":
            to = self.type(node)
            found = [self.cast(self.write(c), to, c) for c in items]
            return E("coalesce(" + ", ".join(e.text for e in found) + ")", to, printed=all(e.printed for e in found))
        if kind in ("COMPARE_IN", "COMPARE_NOT_IN"):
            return self.within(node, items, kind)
        if kind == "OPERATOR_TRY":
            return registry.tried(self, items[0], node)
        if kind == "GROUPING_FUNCTION" and len(items) == 1:
            return E(f"CAST(grouping({self.write(items[0]).text}) AS BIGINT)", self.type(node))
        names = {
            "ARRAY_EXTRACT": "array_extract",
            "ARRAY_SLICE": "array_slice",
            "STRUCT_EXTRACT": "struct_extract",
            "ARRAY_CONSTRUCTOR": "list_value",
            "OPERATOR_NULLIF": "nullif",
        }
        if kind in names:
            return registry.write(self, names[kind], items, node)
        raise Refused(kind.replace("OPERATOR_", "").replace("_", " "), where(node))

    def within(self, node: Node, items: list[Node], kind: str) -> E:
        texts_, head = [], ""
        for item in items[1:]:
            a, b = self.both(items[0], item, node)
            if a.type.letter in "?mvlr":
                raise Refused(f"IN over values of type {a.type}", where(node))
            head = head or a.text
            if a.text != head:
                raise Refused("IN over values of several types", where(node), hint=False)
            texts_.append(b.text)
        return E(f"({head} {'NOT IN' if kind == 'COMPARE_NOT_IN' else 'IN'} ({', '.join(texts_)}))", BOOLEAN)

    def subquery(self, node: Node) -> E:
        kind, inner = node["subquery_type"], node["subquery"]["node"]
        text, columns = self.queries.write(inner, self.scope)
        if kind in ("EXISTS", "NOT_EXISTS"):
            return E(f"({'NOT ' if kind == 'NOT_EXISTS' else ''}EXISTS ({text}))", BOOLEAN)
        if len(columns) != 1:
            raise Refused("a subquery of several columns as a value", where(node))
        if kind == "SCALAR":
            return E(f"({text})", columns[0][1])
        if kind == "ANY" and node["comparison_type"] == "COMPARE_EQUAL":
            if id(node) not in self.plain_in:
                raise Refused(
                    "IN (SELECT …) elsewhere than in WHERE joined by AND or OR (Spark makes its NULL false)",
                    where(node),
                    hint=False,
                )
            left = self.write(node["child"])
            if left.type != columns[0][1] and (left.type.letter, columns[0][1].letter) != ("i", "i"):
                raise Refused(f"{left.type} IN (SELECT {columns[0][1]})", where(node), hint=False)
            return E(f"({left.text} IN ({text}))", BOOLEAN)
        raise Refused(f"a comparison with {kind} (subquery)", where(node))

    def arrow(self, node: Node) -> E:
        """`a -> b` outside a list function: JSON extraction."""
        return registry.write(self, "->", [node["lhs"], node["expr"]], node)

    def function(self, node: Node) -> E:
        return registry.function(self, node)

    # ---- lambdas, unnest and series

    def lambda_(self, node: Node, over: Node, kinds: list[Type]) -> tuple[str, E]:
        """Spark's lambda for DuckDB's: the text `(a, b) -> body` and the body."""
        if node["class"] != "LAMBDA":
            raise Refused("a list function without a lambda", where(node))
        params = lambda_params(node)
        if len(params) > len(kinds):
            raise Refused("a lambda with so many parameters", where(node))
        spark = [f"l{len(self.scope.lambdas)}_{p}" for p in range(len(params))]
        self.scope.lambdas.append(Lambda(over, params, kinds[: len(params)], spark))
        try:
            body = self.write(node["expr"])
        finally:
            self.scope.lambdas.pop()
        return (spark[0] if len(spark) == 1 else "(" + ", ".join(spark) + ")") + " -> ", body

    def is_outer(self, node: Node) -> bool:
        """Whether a column of a query around this one stands in it."""
        names = [n["column_names"] for n in walk(node) if n.get("class") == "COLUMN_REF"]
        return any((found := self.scope.resolve(n)) is not None and found[3] is not self.scope for n in names)

    def projection(self, node: Node) -> E:
        return self.write(node)

    def series(self, name: str, arguments: list[Node], node: Node) -> tuple[str, Type]:
        """range() and generate_series() as an array."""
        return lists.series(self, name, arguments, node)


def unforeseen(node: Node, error: Exception) -> str:
    """A construct over which the translation itself fails, with what a person can do."""
    name = node.get("function_name") or str(node.get("class", "")).lower().replace("_", " ")
    return f"this form of {name} (the translation fails: {type(error).__name__}: {error}; please report it)"


__all__ = ["E", "Expressions", "JSON", "lambda_params", "parse", "string", "walk"]
