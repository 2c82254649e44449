"""DuckDB's parse tree: dicts and lists as it serializes them, and where their parts stand in the text."""

from __future__ import annotations

from typing import Any

Node = dict[str, Any]
NOWHERE = 18446744073709551615
#: FROM nothing.
EMPTY: Node = {"type": "EMPTY", "alias": "", "sample": None, "query_location": NOWHERE, "query_location_length": 0}


def quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def line_of(sql: str, offset: int | None) -> int:
    """The line of a byte offset."""
    if offset is None or offset >= NOWHERE:
        return 1
    return sql.encode()[:offset].count(b"\n") + 1


def first_offset(node: Any) -> int | None:
    """The smallest place in the text that a node or its parts name."""
    found = [n["query_location"] for n in walk(node) if n.get("query_location", NOWHERE) < NOWHERE]
    return min(found, default=None)


def walk(node: Any, without: str = "") -> Any:
    """Every dict below a node, itself first; not what stands under the key `without`."""
    left = [node]
    while left:
        item = left.pop()
        if type(item) is dict:
            yield item
            below = [child for key, child in item.items() if type(child) in (dict, list) and key != without]
            left.extend(reversed(below))
        elif type(item) is list:
            left.extend(reversed(item))


def own(node: Any) -> Any:
    """As `walk`, without what stands in subqueries: their stars and aggregates are theirs."""
    return walk(node, without="subquery")


def methods_called(node: Any) -> Any:
    """`x.f(…)` as `f(x, …)`: DuckDB parses what stands before the point as a schema."""
    if type(node) is list:
        return [methods_called(item) for item in node]
    if type(node) is not dict:
        return node
    node = {key: methods_called(value) for key, value in node.items()}
    if node.get("class") == "FUNCTION" and node.get("schema"):
        of = {**_COLUMN, "query_location": node["query_location"], "column_names": node["qualified_name"]["path"][:-1]}
        node["schema"], node["catalog"] = "", ""
        node["qualified_name"] = {"path": [node["function_name"]]}
        node["arguments"] = [{"name": "", "expression": of}, *node["arguments"]]
    return node


_COLUMN: Node = {"class": "COLUMN_REF", "type": "COLUMN_REF", "alias": "", "query_location_length": 0}
