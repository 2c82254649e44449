"""Expressions of constants only: DuckDB computes them while the SQL is checked, within bounds."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from runtime.sql.asking.gate import Gate, expression
from runtime.sql.asking.said import GateError
from runtime.sql.asking.scope import children, where
from runtime.sql.asking.tree import Node
from runtime.sql.asking.types import VARCHAR, Type
from runtime.sql.model import Refused

from . import texts
from .casts import E
from .functions import UNFOLDABLE

if TYPE_CHECKING:
    from runtime.sql.expressions.expr import Expressions

#: Values that a constant may hold in Spark's text.
FEW = 1_000
_CASTS: dict[str, Node] = {}
#: What moves within years, and how Spark calls it.
_DAYS = {
    "DATE": "DATE",
    **dict.fromkeys(("TIMESTAMP", "TIMESTAMP_S", "TIMESTAMP_MS"), "TIMESTAMP_NTZ"),
    "TIMESTAMPTZ": "TIMESTAMP_LTZ",
}
_READ: dict[str, Callable[[str], Any]] = {
    "STRING": str,
    "INTEGER": int,
    "BOOLEAN": lambda t: t.lower() == "true",
    "NULL": lambda t: None,
}


def is_constant(g: Gate, node: Node, names: frozenset[str] = frozenset()) -> bool:
    kind = node["class"]
    if kind in ("SUBQUERY", "WINDOW", "STAR", "PARAMETER", "DEFAULT", "POSITIONAL_REFERENCE"):
        return False
    if kind == "COLUMN_REF":
        return node["column_names"][0].lower() in names
    if kind == "LAMBDA" and node.get("syntax_type") != "SINGLE_ARROW":
        return is_constant(g, node["expr"], names | set(lambda_params(node)))
    if kind == "FUNCTION" and (node["function_name"] not in g.scalars or node["function_name"] in UNFOLDABLE):
        return False
    return all(is_constant(g, c, names) for c in children(node) if c["class"] != "TYPE")


def folded(w: Expressions, node: Node) -> E | None:
    """The constant as Spark writes it; none for one that is too long for its text."""
    g, kind = w.scope.gate, w.type(node)
    try:
        if kind.name in _DAYS:
            text = computed(g, as_type(node, VARCHAR))
            return E(f"CAST({'NULL' if text is None else texts.moment(text, kind)} AS {_DAYS[kind.name]})", kind)
        value = computed(g, node)
    except GateError as error:
        raise Refused(f"this constant ({error.message.splitlines()[0]})", where(node), hint=False) from None

    return E(texts.literal(value, kind), kind) if elements(value) <= FEW else None


def elements(value: Any) -> int:
    """How many values a value holds."""
    if isinstance(value, dict):
        return sum(map(elements, [*value, *value.values()]))
    return sum(map(elements, value)) if isinstance(value, list | tuple) else 1


def interval(w: Expressions, node: Node) -> tuple[tuple[str, str], ...]:
    """The parts of a constant INTERVAL that are not 0, by unit."""
    months, days, micros = w.scope.gate.interval(node)
    if months is None:
        raise Refused("an INTERVAL that is NULL", where(node))
    return tuple((unit, str(int(n))) for unit, n in (("MONTH", months), ("DAY", days), ("MICROSECOND", micros)) if n)


def value(w: Expressions, node: Node, what: str) -> Any:
    """The Python value of an argument that must be constant."""
    if not is_constant(w.scope.gate, node):
        raise Refused(f"{what} that is not a constant", where(node))
    try:
        return computed(w.scope.gate, node)
    except GateError as error:
        raise Refused(f"{what}: {error.message}", where(node)) from None


def computed(g: Gate, node: Node) -> Any:
    """The Python value of a constant: DuckDB's answer, but for what is written out."""
    literal = node.get("literal") or {}
    return _READ[literal["kind"]](literal.get("text") or "") if literal.get("kind") in _READ else g.constant(node)


def lambda_params(node: Node) -> list[str]:
    lhs = node["lhs"]
    if lhs["class"] == "COLUMN_REF":
        return [lhs["column_names"][0].lower()]
    return [a["expression"]["column_names"][0].lower() for a in lhs["arguments"]]


def as_type(node: Node, kind: Type) -> Node:
    """A cast of the node, as DuckDB parses it."""
    if str(kind) not in _CASTS:
        _CASTS[str(kind)] = expression(f"CAST(1 AS {kind})")
    return {**_CASTS[str(kind)], "child": {**node, "alias": ""}}
