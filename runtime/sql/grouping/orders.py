"""ORDER BY: positions, keys, and the orders of set operations."""

from __future__ import annotations

from typing import TYPE_CHECKING

from runtime.sql.asking.scope import where
from runtime.sql.asking.tree import Node
from runtime.sql.asking.types import HUGEINT, Type
from runtime.sql.model import Refused
from runtime.sql.scalar.casts import E

if TYPE_CHECKING:
    from runtime.sql.expressions.expr import Expressions

#: Of an INTERVAL, in microseconds, as DuckDB compares them.
LENGTH = (
    "(date_part('year', {0}) * 12 + date_part('month', {0}))::HUGEINT * 2592000000000 "
    "+ date_part('day', {0})::HUGEINT * 86400000000 + date_part('hour', {0})::HUGEINT * 3600000000 "
    "+ date_part('minute', {0}) * 60000000 + date_part('microsecond', {0})"
)


def position(node: Node) -> int | None:
    """The number in ORDER BY 2, GROUP BY 1 or #1."""
    if node["class"] == "CONSTANT" and node["literal"]["kind"] == "INTEGER":
        return int(node["literal"]["text"])
    if node["class"] == "POSITIONAL_REFERENCE":
        return int(node["index"])
    return None


def length(w: Expressions, e: E, node: Node) -> E:
    """What DuckDB compares intervals by."""
    return w.over(f"({LENGTH})", [e], HUGEINT, node)


def direction(order: Node) -> str:
    """DuckDB's defaults: ascending, NULLs last either way."""
    down = order["type"] == "DESCENDING"
    return f"{'DESC' if down else 'ASC'} NULLS {'FIRST' if order['null_order'] == 'NULLS FIRST' else 'LAST'}"


def is_ordered(kind: Type) -> bool:
    """Whether Spark puts values of the type in DuckDB's order."""
    return kind.letter in "idfsDTZtb0" or kind.name in ("BLOB", "UUID")


def ordered(w: Expressions, e: E, order: Node, node: Node) -> tuple[str, str]:
    """Key and direction of one ORDER BY. Within lists and structs NULL comes last in DuckDB: it makes the key of
    those, and of what Spark holds as something else."""
    if is_ordered(e.type):
        return e.text, direction(order)
    way = direction(order)
    if e.type.name == "INTERVAL":
        return length(w, e, node).text, way
    if "INTERVAL" in str(e.type):
        raise Refused(f"ORDER BY a value of type {e.type}", where(node))
    key = f"create_sort_key({{0}}, '{way}', '', 'ASC NULLS LAST')"  # a BLOB, because a text goes with it
    return w.over(key, [e], Type("BLOB"), node).text, "ASC NULLS LAST"
