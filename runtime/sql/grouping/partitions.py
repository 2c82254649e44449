"""Windows that Spark has not: DuckDB computes them over the list of a partition's rows, and picks the row's own."""

from __future__ import annotations

from typing import TYPE_CHECKING

from runtime.sql.asking.scope import where
from runtime.sql.asking.tree import Node, below
from runtime.sql.asking.types import BIGINT, Type
from runtime.sql.model import Refused
from runtime.sql.scalar.casts import E

from . import aggregates, equality
from .as_read import NUMBER

if TYPE_CHECKING:
    from runtime.sql.expressions.expr import Expressions


def write(w: Expressions, node: Node) -> E:
    """A window function over all rows of its partition, each with its number."""
    if w.is_mixed(node):
        raise Refused("a window over columns both of its own query and of the one around it", where(node), hint=False)
    by = ", ".join(equality.key(w, part, "PARTITION BY") for part in node["partitions"])
    keys = f"PARTITION BY {by}" if by else ""
    fields: list[E] = [E(NUMBER, BIGINT)]
    taken = aggregates.taker(w, fields)

    asked = below({**node, "partitions": []}, lambda item: taken(item) if "class" in item else None)
    text = w.scope.gate.spelt(asked)
    rows = E(f"collect_list({aggregates.row(fields)}) OVER ({keys})", aggregates.listed(fields))
    own = f"max({NUMBER}) OVER ({keys} ORDER BY {NUMBER} ROWS BETWEEN CURRENT ROW AND CURRENT ROW)"
    numbered = f"SELECT u.a0 AS n, {text} AS v FROM (SELECT unnest({{0}}) AS u)"
    with w.at(grouped=w.grouped):
        return w.over(f"(SELECT v FROM ({numbered}) WHERE n = {{1}})", [rows, E(own, BIGINT)], kind(w, node), node)


def kind(w: Expressions, node: Node) -> Type:
    if w.scope.grouped:
        raise Refused("this window over groups (write them in a subquery)", where(node), hint=False)
    return w.type(node)
