"""One SELECT, clause by clause, and how its clauses become Spark text."""

from __future__ import annotations

from dataclasses import dataclass, field

from .model import Refused
from .scope import where
from .tree import Node
from .types import Type, name_quoted


@dataclass
class Select:
    """One SELECT while it is written."""

    names: list[str]
    texts: list[str]
    types: list[Type]
    source: str = ""
    where: str = ""
    group: str = ""
    having: str = ""
    qualify: str = ""
    distinct: bool = False
    distinct_on: list[str] = field(default_factory=list)
    order: list[tuple[int | str, str]] = field(default_factory=list)  # ordinal or text, direction
    limit: str = ""
    percent: float | None = None


def assembled(s: Select) -> str:
    """The text of one SELECT; ORDER BY keys that are not projected, QUALIFY and DISTINCT ON need a query around it."""
    source = (
        (f" FROM {s.source}" if s.source else "")
        + (f" WHERE {s.where}" if s.where else "")
        + (f" GROUP BY {s.group}" if s.group else "")
        + (f" HAVING {s.having}" if s.having else "")
    )
    names = [name_quoted(n) for n in s.names]
    hidden = [(t, w) for t, w in s.order if isinstance(t, str)]
    if not (s.qualify or s.distinct_on or hidden or s.percent is not None):
        word = "SELECT DISTINCT" if s.distinct else "SELECT"
        items = ", ".join(f"{t} AS {n}" for t, n in zip(s.texts, names, strict=True))
        return f"{word} {items}{source}{ordering(s)}{s.limit}"
    if s.distinct:
        told = "DISTINCT with QUALIFY, LIMIT n% or ORDER BY a column that is not selected"
        raise Refused(told, None, hint=False)
    inner = [f"c{i}" for i in range(len(names))]
    hidden_items = [f"{t} AS {n}" for t, n in zip(s.texts, inner, strict=True)]
    keys, condition = [], ""
    for i, (text, way) in enumerate(s.order):
        if isinstance(text, str):
            hidden_items.append(f"{text} AS __o{i}")
        keys.append(f"__o{i} {way}" if isinstance(text, str) else f"{inner[text - 1]} {way}")
    if s.qualify:
        hidden_items.append(f"{s.qualify} AS __keep")
        condition = " WHERE __keep"
    if s.distinct_on:
        if s.qualify or s.group:
            raise Refused("DISTINCT ON with QUALIFY or GROUP BY", None, hint=False)
        by = ", ".join(f"{s.texts[t - 1] if isinstance(t, int) else t} {w}" for t, w in s.order) or ", ".join(
            s.distinct_on
        )
        hidden_items.append(f"row_number() OVER (PARTITION BY {', '.join(s.distinct_on)} ORDER BY {by}) = 1 AS __keep")
        condition = " WHERE __keep"
    if s.percent is not None:
        hidden_items += part(s)
        condition = f" WHERE __n <= CAST(__all * {s.percent!r}D / 100D AS BIGINT)"
    order = " ORDER BY " + ", ".join(keys) if keys else ""
    picked = ", ".join(f"{c} AS {n}" for c, n in zip(inner, names, strict=True))
    return f"SELECT {picked} FROM (SELECT {', '.join(hidden_items)}{source}) AS __i{condition}{order}{s.limit}"


def part(s: Select) -> list[str]:
    """What LIMIT n% needs of each row: its number and how many there are."""
    if not s.order or s.qualify or s.distinct_on:
        raise Refused("LIMIT n% without ORDER BY, or with QUALIFY or DISTINCT ON", None, hint=False)
    by = ", ".join(f"{s.texts[t - 1] if isinstance(t, int) else t} {w}" for t, w in s.order)
    return [f"row_number() OVER (ORDER BY {by}) AS __n", "count(1) OVER () AS __all"]


def ordering(s: Select) -> str:
    return " ORDER BY " + ", ".join(f"{t} {w}" for t, w in s.order) if s.order else ""


def direction(order: Node) -> str:
    """DuckDB's defaults: ascending, NULLs last either way."""
    down = order["type"] == "DESCENDING"
    return f"{'DESC' if down else 'ASC'} NULLS {'FIRST' if order['null_order'] == 'NULLS FIRST' else 'LAST'}"


def sortable(kind: Type, node: Node) -> None:
    if kind.letter in "?mv":
        raise Refused(f"ORDER BY a value of type {kind}", where(node))
