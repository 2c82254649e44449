"""One SELECT, clause by clause, and how its clauses become Spark text."""

from __future__ import annotations

from dataclasses import dataclass, field

from runtime.sql.asking.tree import Node
from runtime.sql.asking.types import Type, name_quoted
from runtime.sql.grouping.as_read import NUMBER


@dataclass
class Select:
    """One SELECT while it is written."""

    names: list[str]
    texts: list[str]
    types: list[Type]
    source: str = ""
    projections: list[Node] = field(default_factory=list)
    aliases: dict[str, Node] = field(default_factory=dict)  # what they stand for
    where: str = ""
    group: str = ""
    having: str = ""
    qualify: str = ""
    distinct: bool = False
    selected: frozenset[str] | None = None  # of a DISTINCT the forms of what it selects, by which alone it is ordered
    distinct_on: list[str] = field(default_factory=list)
    order: list[tuple[int | str, str]] = field(default_factory=list)  # ordinal or text, direction
    limit: str = ""
    as_read: str = NUMBER  # by what rows are ordered where nothing else is said
    numbered: str = ""  # of a LIMIT that Spark has not, which of the rows __n of __all remain


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
    if not (s.qualify or s.distinct_on or hidden or s.numbered):
        word = "SELECT DISTINCT" if s.distinct else "SELECT"
        items = ", ".join(f"{t} AS {n}" for t, n in zip(s.texts, names, strict=True))
        return f"{word} {items}{source}{ordering(s)}{s.limit}"
    return wrapped(s, source, names)


def wrapped(s: Select, source: str, names: list[str]) -> str:
    """A query around what FROM to HAVING give, for each clause of the others that takes rows away."""
    inner = [f"c{i}" for i in range(len(names))]
    items = [f"{t} AS {n}" for t, n in zip(s.texts, inner, strict=True)]
    items += [f"{text} AS __o{i}" for i, (text, _) in enumerate(s.order) if isinstance(text, str)]
    keys = [(f"__o{i}" if isinstance(t, str) else inner[t - 1]) + f" {way}" for i, (t, way) in enumerate(s.order)]
    items += [f"{s.qualify} AS __keep"] if s.qualify else []
    items += [f"{text} AS __d{i}" for i, text in enumerate(s.distinct_on)]

    rows = f"SELECT {', '.join(items)}{source}"
    if s.qualify:
        rows = f"SELECT * FROM ({rows}) AS __q WHERE __keep"
    order = ", ".join(keys)
    if s.distinct_on:
        of = ", ".join(f"__d{i}" for i in range(len(s.distinct_on)))
        numbered = f"*, row_number() OVER (PARTITION BY {of} ORDER BY {order or s.as_read}) AS __first"
        rows = f"SELECT * FROM (SELECT {numbered} FROM ({rows}) AS __d) AS __f WHERE __first = 1"
    if s.distinct:
        of = ", ".join([*inner, *(f"__o{i}" for i, (text, _) in enumerate(s.order) if isinstance(text, str))])
        rows = f"SELECT DISTINCT {of} FROM ({rows}) AS __d"
    if s.numbered:
        counted = ", count(1) OVER () AS __all" if "__all" in s.numbered else ""
        numbered = f"*, row_number() OVER (ORDER BY {order or s.as_read}) AS __n{counted}"
        rows = f"SELECT * FROM (SELECT {numbered} FROM ({rows}) AS __p) AS __l WHERE {s.numbered}"
    picked = ", ".join(f"{c} AS {n}" for c, n in zip(inner, names, strict=True))
    return f"SELECT {picked} FROM ({rows}) AS __i{f' ORDER BY {order}' if order else ''}{s.limit}"


def ordering(s: Select) -> str:
    return " ORDER BY " + ", ".join(f"{t} {w}" for t, w in s.order) if s.order else ""
