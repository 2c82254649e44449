"""unnest() in a select list."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .casts import E
from .model import Refused
from .scope import parts, where
from .tree import Node

if TYPE_CHECKING:
    from .expr import Expressions


def unnested(w: Expressions, projections: list[Node], source: str, *, lateral: bool) -> str:
    """FROM with the unnest()s of a select list: several go in step, as DuckDB's do, the shorter ones filled with NULL.
    `lateral`: the SELECT is a LATERAL subquery, in which Spark unnests a list of the query around it, alone."""
    found = [
        n
        for p in projections
        for n in parts(p)
        if n["class"] == "FUNCTION" and n["function_name"] in ("unnest", "unlist")
    ]
    if not found:
        return source
    if w.scope.grouped or any(len(n["arguments"]) != 1 for n in found):
        raise Refused("unnest() with options or with GROUP BY", where(found[0]), hint=False)

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
        w.unnested[id(found[0])] = E("__x.__v", inner[0].type.element)
        arrays = inner[0].text
    else:
        for i, (n, e) in enumerate(zip(found, inner, strict=True)):
            w.unnested[id(n)] = E(f"__x.__v.`{i}`", e.type.element)
        arrays = zipped(inner)
    return f"{source or '(SELECT 1) AS __one'} LATERAL VIEW explode({arrays}) __x AS __v"


def zipped(lists: list[E]) -> str:
    """Several lists as one of structs `0`, `1`…, as long as the longest."""
    size = "greatest(" + ", ".join(f"coalesce(size({e.text}), 0)" for e in lists) + ")"
    fields = ", ".join(f"'{i}', try_element_at({e.text}, zi)" for i, e in enumerate(lists))
    return (
        f"transform(CASE WHEN {size} > 0 THEN sequence(1, {size}) ELSE CAST(array() AS ARRAY<INT>) END, zi -> "
        f"named_struct({fields}))"
    )
