"""POSITIONAL JOIN: the rows of two sides by their number."""

from __future__ import annotations

from typing import TYPE_CHECKING

from runtime.sql.asking.types import name_quoted
from runtime.sql.grouping.as_read import NUMBER

from .item import Item, names, picked, placed, renamed

if TYPE_CHECKING:
    from .source import Sources


def joined(of: Sources, left: Item, right: Item) -> Item:
    """The shorter side is filled with NULL."""
    number = of.queries.number()
    sides = [renamed(item.sources, f"__{letter}{number}", letter) for item, letter in ((left, "l"), (right, "r"))]
    tables = [
        f"(SELECT {picked(item.sources, after)}, row_number() OVER (ORDER BY {NUMBER}) AS __n FROM "
        f"{item.text}) AS {name_quoted(after[0].relation)}"
        for item, after in zip((left, right), sides, strict=True)
    ]
    (one, *_), (other, *_) = sides
    out = ", ".join(n for side in sides for n in names(side))
    on = f"{one.relation}.__n = {other.relation}.__n"
    text = f"SELECT {out} FROM {tables[0]} FULL JOIN {tables[1]} ON {on}"
    sources = left.sources + right.sources
    return placed(text, f"__p{number}", sources, sides[0] + sides[1], sources)
