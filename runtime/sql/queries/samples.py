"""USING SAMPLE and TABLESAMPLE: rows drawn by chance, others in each run."""

from __future__ import annotations

from typing import TYPE_CHECKING

from runtime.sql.asking.scope import where
from runtime.sql.asking.tree import Node
from runtime.sql.model import Refused

from .item import Item, names, picked, placed, renamed

if TYPE_CHECKING:
    from .source import Sources


def drawn(of: Sources, node: Node, item: Item) -> Item:
    """A part of these rows, or so many of them. `node`: the SELECT, or the item of FROM, that has the sample."""
    sample = node["sample"]
    if sample["repeatable"]:
        raise Refused("a sample by a seed, which draws other rows in Spark,", where(node), hint=False)
    size, number = sample["sample_size"]["value"], of.queries.number()
    after = renamed(item.sources, f"__s{number}", "s")
    rows = f"SELECT {picked(item.sources, after)} FROM {item.text}"
    if sample["is_percentage"]:
        text = f"SELECT * FROM ({rows}) AS __a WHERE rand() < {float(size) / 100!r}D"
    else:
        text = (
            f"SELECT {', '.join(names(after))} FROM (SELECT *, rand() AS __r FROM ({rows})) ORDER BY __r LIMIT {size}"
        )
    return placed(text, f"__s{number}", item.sources, after, item.sources)
