"""CTEs that name others several times, each of which names others several times.

Spark puts a CTE in the place of each of its names, so that of ten that name the one before twice the first is there a
thousand times. One that is there often is computed once: Spark keeps the rows of what is not the same each time. It
plans all of them all the same, which ends somewhere.
"""

from __future__ import annotations

from collections import Counter

from runtime.sql.asking.tree import Node, first_offset, walk
from runtime.sql.expressions import held
from runtime.sql.model import Refused

#: Times that a CTE may be computed, and planned.
OFTEN, MOST = 7, 1_000
ONCE = f"SELECT * FROM ({{}}) AS __c WHERE {held.HERE}"


def repeated(query: Node) -> set[str]:
    """The CTEs of a query that are computed once. Refused for one that would be planned too often."""
    entries = query["cte_map"]["map"]
    if len(entries) < 2:
        return set()
    found = set()
    planned = named({**query, "cte_map": None})
    computed = Counter(planned)
    for entry in reversed(entries):
        name, body = entry["key"].lower(), entry["value"]["query_node"]
        if planned[name] > MOST:
            told = f"the CTE {name}, of which those after it make {planned[name]:,} (make it a model of its own),"
            raise Refused(told, first_offset(body), hint=False)
        if computed[name] > OFTEN:
            found.add(name)
            computed[name] = 1
        for other, count in named(body).items():
            if other != name:
                planned[other] += planned[name] * count
                computed[other] += computed[name] * count
    return found


def named(node: Node) -> Counter[str]:
    """How often each table is named."""
    tables = (part["qualified_name"]["path"] for part in walk(node) if part.get("type") == "BASE_TABLE")
    return Counter(path[0].lower() for path in tables if len(path) == 1)
