"""POSITIONAL JOIN: the rows of two sides by their number."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .as_read import NUMBER, is_known
from .matching import names, picked, renamed
from .model import Refused
from .scope import Scope, where
from .tree import Node
from .types import name_quoted

if TYPE_CHECKING:
    from .source import Item, Sources


def joined(of: Sources, node: Node, left: Item, right: Item, scope: Scope) -> Item:
    """The shorter side is filled with NULL."""
    if not all(is_known(node[side], scope.ctes) for side in ("left", "right")):
        raise Refused("POSITIONAL JOIN of joins or groups, whose rows have no order,", where(node), hint=False)
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
    text = f"(SELECT {out} FROM {tables[0]} FULL JOIN {tables[1]} ON {on}) AS __p{number}"
    sources = left.sources + right.sources
    for source, new in zip(sources, sides[0] + sides[1], strict=True):
        source.within, source.spark = f"__p{number}", new.spark
    return of.made(text, sources)
