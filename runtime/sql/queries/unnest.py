"""unnest() in a select list."""

from __future__ import annotations

from typing import TYPE_CHECKING

from runtime.sql.asking.gate import gate
from runtime.sql.asking.scope import call, column, parts, where
from runtime.sql.asking.tree import UNNESTING, Node, is_called, own
from runtime.sql.asking.types import spark_type
from runtime.sql.expressions.sameness import same, same_form
from runtime.sql.model import Refused
from runtime.sql.scalar.casts import E

if TYPE_CHECKING:
    from runtime.sql.expressions.expr import Expressions


def unnested(w: Expressions, projections: list[Node], qualify: Node | None, source: str, *, lateral: bool) -> str:
    """FROM with the unnest()s of a select list: several go in step, as DuckDB's do, the shorter ones filled with NULL.
    `lateral`: the SELECT is a LATERAL subquery, in which Spark unnests a list of the query around it, alone."""
    found = [n for p in projections for n in parts(p) if is_called(n, UNNESTING)]
    if not found:
        return source
    if any(n.get("class") == "WINDOW" for n in own([projections, qualify])):  # DuckDB's windows do not see these rows
        told = "unnest() beside a window function (write one of the two in a query around the other)"
        raise Refused(told, where(found[0]), hint=False)
    if any(len(n["arguments"]) != 1 for n in found):
        raise Refused("unnest() with options", where(found[0]), hint=False)
    if w.scope.grouped:
        keys = [n for g in w.scope.groups for n in parts(g)]
        if not all(any(same(n, key) for key in keys) for n in found):
            told = "unnest() of what was grouped, within an expression (write it in a query around this one)"
            raise Refused(told, where(found[0]), hint=False)
        found = [key for key in keys if any(same(n, key) for n in found)]

    with w.at(grouped=False):
        inner = [w.write(n["arguments"][0]["expression"]) for n in found]
    for e in inner:
        if e.type.name != "LIST":
            raise Refused(f"unnest({e.type})", where(found[0]), hint=False)

    around = next((n for n in found if w.is_outer(n)), None)
    if around is not None:
        if not lateral or source or len(projections) > 1 or projections[0] is not around:
            told = "unnest() of a column of the query around it (write FROM t, unnest(t.list) AS u(x))"
            raise Refused(told, where(around), hint=False)
        w.unnested[id(around)] = E(f"explode({inner[0].text})", inner[0].type.element)
        return source

    if len(found) == 1:
        w.unnested[same_form(found[0])] = E("__x.__v", inner[0].type.element)
        arrays = inner[0].text
    else:
        for i, (n, e) in enumerate(zip(found, inner, strict=True)):
            w.unnested[same_form(n)] = E(f"__x.__v.`{i}`", e.type.element)
        arrays = zipped(inner)
    return f"{source or '(SELECT 1) AS __one'} LATERAL VIEW explode({arrays}) __x AS __v"


def is_apart(select: Node) -> bool:
    """Whether lists are unnested that aggregates make, or beside windows, which in DuckDB do not see the rows that come
    of it."""
    items = select["select_list"]
    inner = [a for item in items for a in (item["arguments"] if is_unnest(item) else [item])]
    apart = not any(n.get("class") == "STAR" or is_unnest(n) for n in own(inner))
    listed = [item for item in items if is_unnest(item)]
    windows = any(n.get("class") == "WINDOW" for n in own([items, select.get("qualify")]))
    summed = any(n.get("function_name") in gate().aggregates for n in own([item["arguments"] for item in listed]))
    return apart and bool(listed) and (windows or summed)


def is_unnest(node: Node) -> bool:
    return is_called(node, ("unnest",)) and len(node["arguments"]) == 1


def parted(select: Node, names: list[str]) -> Node:
    """A SELECT whose windows and aggregates stand in a query of their own, and what it unnests in the one around."""
    inner, outer = [], []
    for at, (item, name) in enumerate(zip(select["select_list"], names, strict=True)):
        listed = is_unnest(item)
        label = (not listed and item.get("alias")) or f"__c{at}"
        one = column(label)
        inner.append({**(item["arguments"][0]["expression"] if listed else item), "alias": label})
        outer.append({**(call("unnest", one) if listed else one), "alias": name})
    around: Node = gate().parse("SELECT 1 FROM (SELECT 1) AS __w")["node"]
    table = around["from_table"]
    rows = {**select, "select_list": inner, "modifiers": [], "cte_map": {"map": []}}
    whole = {**table, "subquery": {**table["subquery"], "node": rows}}
    return {**around, "select_list": outer, "from_table": whole, "modifiers": select["modifiers"]}


def zipped(lists: list[E]) -> str:
    """Several lists as one of structs `0`, `1`…, as long as the longest."""
    kinds = [spark_type(e.type) for e in lists]
    texts = ", ".join(f"coalesce({e.text}, CAST(array() AS {kind}))" for e, kind in zip(lists, kinds, strict=True))
    fields = ",".join(f"`{i}`:{spark_type(e.type.element)}" for i, e in enumerate(lists))
    return f"CAST(arrays_zip({texts}) AS ARRAY<STRUCT<{fields}>>)"
