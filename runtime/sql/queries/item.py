"""One item of FROM: its Spark text, and the names that it brings."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from runtime.sql.asking.scope import Columns, Source, where
from runtime.sql.asking.tree import Node
from runtime.sql.asking.types import name_quoted
from runtime.sql.model import Refused
from runtime.sql.scalar.casts import E


@dataclass
class Item:
    text: str
    sources: list[Source]


def named(text: str, columns: Columns, node: Node, default: str, schema: str = "") -> Item:
    """An item under the alias that the SQL gives it, its columns renamed if the alias says so."""
    alias = node.get("alias") or default
    text += f" AS {name_quoted(alias)}"
    if aliases := node.get("column_name_alias") or []:
        columns = relabelled(columns, aliases)
        text += f"({', '.join(name_quoted(n) for n, _ in columns)})"
    if len({n.lower() for n, _ in columns}) != len(columns):
        raise Refused("two columns of one name in a subquery", where(node), hint=False)
    return Item(text, [Source(alias, columns, schema)])


def relabelled(columns: Columns, names: Sequence[str]) -> Columns:
    """The columns under these names, the last ones under their own if there are fewer."""
    return [(n, t) for n, (_, t) in zip(names, columns, strict=False)] + columns[len(names) :]


def exploded(rows: E, source: str = "") -> str:
    """A list of structs, which has columns of `source`, as a query of their fields."""
    fields = ", ".join(f"r.{name_quoted(n)} AS {name_quoted(n)}" for n in rows.type.element.fields)
    return f"SELECT {fields} FROM (SELECT explode({rows.text}) AS r{f' FROM {source}' if source else ''})"


# ---- several of them as one query


def renamed(sources: Sequence[Source], within: str, letter: str) -> list[Source]:
    """The sources as columns `l0`, `l1`… of one query."""
    out, count = [], 0
    for source in sources:
        spark = {name: f"{letter}{count + at}" for at, (name, _) in enumerate(source.columns)}
        count += len(spark)
        out.append(Source(source.alias, source.columns, source.schema, source.hidden, within, spark))
    return out


def names(sources: Sequence[Source]) -> list[str]:
    return [name for source in sources for name in source.spark.values()]


def picked(before: Sequence[Source], after: Sequence[Source]) -> str:
    """The columns under their new names."""
    return ", ".join(
        f"{one.text(name)} AS {new.spark[name]}"
        for one, new in zip(before, after, strict=True)
        for name, _ in one.columns
    )


def placed(text: str, within: str, before: Sequence[Source], after: Sequence[Source], kept: list[Source]) -> Item:
    """The query, named `within`, in which all these now are under their new names; `kept` are seen from outside."""
    for source, new in zip(before, after, strict=True):
        source.within, source.spark = within, new.spark
    return Item(f"({text}) AS {within}", kept)
