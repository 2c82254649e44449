"""CTEs that name others several times, each of which names others several times.

Spark puts a CTE in the place of each of its names, so that ten of them that name the one before twice are read a
thousand times. One that would be there often is computed once instead: Spark keeps the rows of what is not the same
each time.
"""

from __future__ import annotations

from collections import Counter

from runtime.sql.asking.tree import Node, walk

#: Times that a CTE may be computed.
OFTEN = 7
ONCE = "SELECT * FROM ({}) AS __c WHERE spark_partition_id() >= 0"


def repeated(query: Node) -> set[str]:
    """The CTEs of a query that are computed once."""
    entries = query["cte_map"]["map"]
    if len(entries) < 2:
        return set()
    found = set()
    times = named({**query, "cte_map": None})
    for entry in reversed(entries):
        name, often = entry["key"].lower(), times[entry["key"].lower()]
        if often > OFTEN:
            found.add(name)
            often = 1
        for other, count in named(entry["value"]["query_node"]).items():
            times[other] += often * count if other != name else 0
    return found


def named(node: Node) -> Counter[str]:
    """How often each table is named."""
    tables = (part["qualified_name"]["path"] for part in walk(node) if part.get("type") == "BASE_TABLE")
    return Counter(path[0].lower() for path in tables if len(path) == 1)
