"""Windows that Spark has not: DuckDB computes them over the list of a partition's rows, and picks the row's own.

`lake/Windows.java` knows this form, and has the rows themselves go to DuckDB, a partition after the other: Spark would
give the whole list to each of its rows.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from runtime.sql.asking.gate import expression
from runtime.sql.asking.scope import where
from runtime.sql.asking.tree import Node, below
from runtime.sql.asking.types import BIGINT, Type
from runtime.sql.model import Refused
from runtime.sql.scalar.casts import E

from . import aggregates, equality
from .as_read import NUMBER

if TYPE_CHECKING:
    from runtime.sql.expressions.expr import Expressions

#: A window over the rows of a list, of which each has its number first, and the value of one of them.
OF_ONE = "(SELECT v FROM (SELECT u.a0 AS n, {} AS v FROM (SELECT unnest({{0}}) AS u)) WHERE n = {{1}})"


def write(w: Expressions, node: Node) -> E:
    """A window function over all rows of its partition."""
    if w.is_mixed(node):
        raise Refused("a window over columns both of its own query and of the one around it", where(node), hint=False)
    by = ", ".join(equality.key(w, part, "PARTITION BY") for part in node["partitions"])
    keys = f"{f'PARTITION BY {by} ' if by else ''}ORDER BY {NUMBER}"
    fields: list[E] = [E(NUMBER, BIGINT)]
    taken = aggregates.taker(w, fields, "u")

    # its keys stand in it too: DuckDB may be given the rows of several partitions
    asked = below(node, lambda item: taken(item) if "class" in item else None)
    text = w.scope.gate.spelt(asked if node["orders"] else in_order(asked))
    rows = (
        f"collect_list({aggregates.row(fields)}) OVER ({keys} ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING)"
    )
    own = E(f"max({NUMBER}) OVER ({keys} ROWS BETWEEN CURRENT ROW AND CURRENT ROW)", BIGINT)
    with w.at(w.of_partitions(by), grouped=w.grouped):
        return w.over(OF_ONE.format(text), [E(rows, aggregates.listed(fields)), own], kind(w, node), node)


def in_order(node: Node) -> Node:
    """A window that names no order, in that of the rows' numbers: DuckDB's may be another one each time."""
    ends = {node["start"], node["end"]}
    if ends == {"UNBOUNDED_PRECEDING", "CURRENT_ROW_RANGE"}:
        node = {**node, "end": "UNBOUNDED_FOLLOWING"}
    elif any(not end.endswith("_ROWS") and not end.startswith("UNBOUNDED") for end in ends):
        return node
    if node.get("exclude_clause", "NO_OTHER") not in ("NO_OTHER", "CURRENT_ROW"):
        return node
    return {**node, "orders": expression("sum(1) OVER (ORDER BY u.a0)")["orders"]}


def kind(w: Expressions, node: Node) -> Type:
    if w.scope.grouped:
        raise Refused("this window over groups (write them in a subquery)", where(node), hint=False)
    return w.type(node)
