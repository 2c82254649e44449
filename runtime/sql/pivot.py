"""PIVOT with named values as filtered aggregates; UNPIVOT as one row for each named column."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .gate import gate
from .model import Refused
from .scope import Scope, Source, column, parts, where
from .stars import expand
from .texts import string
from .tree import Node, walk
from .types import VARCHAR, name_quoted

if TYPE_CHECKING:
    from .source import Item, Sources


def pivot(sources: Sources, node: Node, scope: Scope) -> Item:
    if scope.parent is not None or scope.sources:
        raise Refused("PIVOT or UNPIVOT inside a join or a correlated subquery", where(node))
    inner = Scope(scope.gate, None, scope.ctes, scope.tables)
    text = sources.read(node["source"], inner)
    if node.get("unpivot_names"):
        return unpivot(sources, node, inner, text)
    if len(node["pivots"]) != 1 or len(node["pivots"][0]["pivot_expressions"]) != 1:
        raise Refused("PIVOT over several columns", where(node))
    key = node["pivots"][0]["pivot_expressions"][0]
    entries = node["pivots"][0]["entries"]
    if not entries or any(e["star_expr"]["class"] != "CONSTANT" for e in entries):
        raise Refused("PIVOT without constant values: write ON column IN ('a', 'b')", where(node), hint=False)
    return pivoted(sources, node, inner, text, key, entries)


def pivoted(sources: Sources, node: Node, inner: Scope, text: str, key: Node, entries: list[Node]) -> Item:
    described = inner.gate.describe(inner.gate.text({**inner.select([_star()]), "from_table": node}))
    groups = list(node.get("groups") or [])
    if not groups:
        used = {
            n["column_names"][-1].lower() for n in walk([key, node["aggregates"]]) if n.get("class") == "COLUMN_REF"
        }
        groups = [n for s in inner.sources for n, _ in s.columns if n.lower() not in used]
    inner.grouped = True
    inner.groups, inner.group_sets = [column(g) for g in groups], [list(range(len(groups)))]
    writer = sources.queries.expressions(inner)
    items = [writer.write(column(g)).text for g in groups]
    for entry in entries:
        test = {**_equal(), "left": key, "right": {**entry["star_expr"], "alias": ""}}
        for one in node["aggregates"]:
            if one["class"] != "FUNCTION" or one.get("filter"):
                raise Refused("PIVOT with this aggregate", where(one))
            call = {**one, "alias": "", "filter": test}
            inner.prime(parts(call), True)
            items.append(writer.write(call).text)
    if len(items) != len(described):
        raise Refused("this PIVOT", where(node))
    casts = [f"{t} AS {name_quoted(n)}" for t, (n, _) in zip(items, described, strict=True)]
    by = " GROUP BY " + ", ".join(items[: len(groups)]) if groups else ""
    return sources.named(
        f"(SELECT {', '.join(casts)} FROM {text}{by})", described, node, f"__s{sources.queries.number()}"
    )


def unpivot(sources: Sources, node: Node, inner: Scope, text: str) -> Item:
    if len(node["unpivot_names"]) != 1 or len(node["pivots"]) != 1:
        raise Refused("UNPIVOT of several columns at once", where(node))
    turned: list[Node] = []
    for entry in node["pivots"][0]["entries"]:
        if entry.get("alias"):
            raise Refused("UNPIVOT with renamed columns", where(node))
        turned += expand([entry["star_expr"]], inner)
    names = [t.get("alias") or t["column_names"][-1] for t in turned]
    low = {n.lower() for n in names}
    described = inner.gate.describe(inner.gate.text({**inner.select([_star()]), "from_table": node}))
    keep = [(n, s) for s in inner.sources for n, _ in s.columns if n.lower() not in low]
    writer = sources.queries.expressions(inner)
    kind = described[-1][1]
    if len(described) != len(keep) + 2 or described[-2][1] != VARCHAR:
        raise Refused("this UNPIVOT", where(node))
    declared = {n.lower(): n for s in inner.sources for n, _ in s.columns}
    rows = ", ".join(
        f"named_struct('n', {string(declared[n.lower()])}, 'v', {writer.cast(writer.write(t), kind, t).text})"
        for n, t in zip(names, turned, strict=True)
    )
    base = ", ".join(f"{name_quoted(s.alias)}.{name_quoted(n)} AS {name_quoted(n)}" for n, s in keep)
    wanted = ", ".join(
        [
            *(name_quoted(n) for n, _ in keep),
            f"__p.n AS {name_quoted(described[-2][0])}",
            f"__p.v AS {name_quoted(described[-1][0])}",
        ]
    )
    filled = "" if node.get("include_nulls") else " WHERE __p.v IS NOT NULL"
    query = (
        f"(SELECT {wanted} FROM (SELECT {base + ', ' if base else ''}explode(array({rows})) AS __p FROM "
        f"{text}){filled})"
    )
    return sources.named(query, described, node, f"__s{sources.queries.number()}")


def _star() -> Node:
    star: Node = gate().parse("SELECT * FROM a")["node"]["select_list"][0]
    return star


def _equal() -> Node:
    equal: Node = gate().parse("SELECT 1 = 1")["node"]["select_list"][0]
    return equal


__all__ = ["Source"]
