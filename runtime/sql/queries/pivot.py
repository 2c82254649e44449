"""PIVOT with named values as filtered aggregates; UNPIVOT as one row for each named column."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING

from runtime.sql.asking.gate import conjunction, expression
from runtime.sql.asking.scope import Columns, Scope, column, parts, where
from runtime.sql.asking.tree import Node, is_called, paths, replaced
from runtime.sql.asking.types import VARCHAR, name_quoted
from runtime.sql.grouping import equality
from runtime.sql.model import Refused
from runtime.sql.scalar.constants import as_type
from runtime.sql.scalar.texts import string

from .item import Item, named
from .stars import expand

if TYPE_CHECKING:
    from runtime.sql.expressions.expr import Expressions

    from .source import Sources

#: Types whose values are equal where their texts are.
SPELT = {"VARCHAR", "BOOLEAN", "TINYINT", "SMALLINT", "INTEGER", "BIGINT", "DATE"}


def pivot(sources: Sources, node: Node, scope: Scope) -> Item:
    inner = scope.inner(None)
    text = sources.read(node["source"], inner)
    if node.get("unpivot_names"):
        return unpivot(sources, node, inner, text)
    if any(len(p["pivot_expressions"]) != 1 for p in node["pivots"]):
        raise Refused("PIVOT over several columns at once", where(node))
    entries = [p["entries"] for p in node["pivots"]]
    if not all(entries) or any(e["star_expr"]["class"] != "CONSTANT" for some in entries for e in some):
        raise Refused("PIVOT without constant values: write ON column IN ('a', 'b')", where(node), hint=False)
    return pivoted(sources, node, inner, text)


def pivoted(sources: Sources, node: Node, inner: Scope, text: str) -> Item:
    keys = [p["pivot_expressions"][0] for p in node["pivots"]]
    choices = list(itertools.product(*(p["entries"] for p in node["pivots"])))
    described = all_of(inner, node)
    groups = list(node.get("groups") or [])
    if not groups:
        used = {names[-1].lower() for names in paths([keys, node["aggregates"]])}
        groups = [n for s in inner.sources for n, _ in s.columns if n.lower() not in used]
    inner.grouped = True
    inner.groups, inner.group_sets = [column(g) for g in groups], [list(range(len(groups)))]
    writer = sources.queries.expressions(inner)
    items = [writer.write(column(g)).text for g in groups]
    for entries in choices:
        tests = [
            _chosen(writer, key, {**entry["star_expr"], "alias": ""}) for key, entry in zip(keys, entries, strict=True)
        ]
        test = conjunction(tests)
        for one in node["aggregates"]:
            call = {**filtered(one, test, inner), "alias": ""}
            inner.prime(parts(call), True)
            items.append(writer.write(call).text)
    if len(items) != len(described) or len(keys) > 1 and not is_in_order(node, choices, described[len(groups) :]):
        raise Refused("this PIVOT", where(node))
    casts = [f"{t} AS {name_quoted(n)}" for t, (n, _) in zip(items, described, strict=True)]
    with writer.below():
        by = [equality.key(writer, column(g), "GROUP BY") for g in groups]
    grouped = f" GROUP BY {', '.join(by)}" if by else ""
    return named(f"(SELECT {', '.join(casts)} FROM {text}{grouped})", described, node, f"__s{sources.queries.number()}")


def all_of(inner: Scope, node: Node) -> Columns:
    """The columns of a PIVOT or UNPIVOT."""
    return inner.gate.describe(inner.gate.text({**inner.select([expression("*")]), "from_table": node}))


def _chosen(w: Expressions, key: Node, value: Node) -> Node:
    """Whether a row is of a column: DuckDB compares the texts of both."""
    if w.type(key) != w.type(value) or w.type(key).name not in SPELT:
        key, value = as_type(key, VARCHAR), as_type(value, VARCHAR)
    return {**expression("1 IS NOT DISTINCT FROM 1"), "left": key, "right": value}


def filtered(node: Node, test: Node, inner: Scope) -> Node:
    """The expression with the aggregate in it over the rows of a test."""

    def one(node: Node) -> Node | None:
        if not is_called(node, inner.gate.aggregates):
            return None
        own = node.get("filter")
        return {**node, "filter": conjunction([own, test]) if own else test}

    made: Node = replaced(node, one)
    return made


def is_in_order(node: Node, choices: list[tuple[Node, ...]], described: Columns) -> bool:
    """Whether DuckDB's columns over several keys are those of the choices, one by one."""
    if any(entry.get("alias") for entries in choices for entry in entries):
        return False
    names = ["_".join(str(e["star_expr"]["literal"].get("text")) for e in entries) for entries in choices]
    each = len(node["aggregates"])
    return all(name.startswith(names[at // each]) for at, (name, _) in enumerate(described))


def unpivot(sources: Sources, node: Node, inner: Scope, text: str) -> Item:
    """A row for each entry of ON: its name, and its value or values."""
    if len(node["pivots"]) != 1:
        raise Refused("UNPIVOT of several columns at once", where(node))
    entries = [e for entry in node["pivots"][0]["entries"] for e in turned(entry, inner)]
    used = {names[-1].lower() for names in paths([items for _, items in entries])}
    described = all_of(inner, node)
    keep = [(n, s) for s in inner.sources for n, _ in s.columns if n.lower() not in used]
    label, *values = described[len(keep) :]
    if label[1] != VARCHAR or any(len(items) != len(values) for _, items in entries):
        raise Refused("this UNPIVOT", where(node))
    writer = sources.queries.expressions(inner)
    rows = ", ".join(
        f"named_struct('n', {string(name)}, "
        + ", ".join(
            f"'v{i}', {writer.cast(writer.write(item), kind, item).text}"
            for i, (item, (_, kind)) in enumerate(zip(items, values, strict=True))
        )
        + ")"
        for name, items in entries
    )
    base = "".join(f"{s.text(n)} AS {name_quoted(n)}, " for n, s in keep)
    shown = [(f"__p.v{i}", name) for i, (name, _) in enumerate(values)]
    wanted = [name_quoted(n) for n, _ in keep] + [
        f"{text} AS {name_quoted(name)}" for text, name in [("__p.n", label[0]), *shown]
    ]
    filled = " AND ".join(f"{text} IS NOT NULL" for text, _ in shown)
    query = (
        f"(SELECT {', '.join(wanted)} FROM (SELECT {base}explode(array({rows})) AS __p FROM {text})"
        + ("" if node.get("include_nulls") else f" WHERE {filled}")
        + ")"
    )
    return named(query, described, node, f"__s{sources.queries.number()}")


def turned(entry: Node, inner: Scope) -> list[tuple[str, list[Node]]]:
    """The names and columns of an entry: one column, several together, or a * of them."""
    item = {**entry["star_expr"], "alias": ""}
    if is_called(item, ("row",)):
        items = [a["expression"] for a in item["arguments"]]
        return [(entry.get("alias") or "_".join(declared(i, inner) for i in items), items)]
    found = expand([item], inner)
    if entry.get("alias") and len(found) != 1:
        raise Refused("UNPIVOT with renamed columns", where(item))
    return [(entry.get("alias") or declared(one, inner), [{**one, "alias": ""}]) for one in found]


def declared(item: Node, inner: Scope) -> str:
    """The name of the column in an entry, as its table spells it."""
    names = [names[-1].lower() for names in paths(item)]
    own = [n for s in inner.sources for n, _ in s.columns if names == [n.lower()]]
    if len(own) != 1:
        raise Refused("UNPIVOT of what is no column", where(item))
    return own[0]
