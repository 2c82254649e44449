"""DuckDB's parse tree: dicts and lists as it serializes them, and where their parts stand in the text."""

from __future__ import annotations

from typing import Any

Node = dict[str, Any]
NOWHERE = 18446744073709551615


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


def walk(node: Any) -> Any:
    """Every dict below a node, itself first."""
    left = [node]
    while left:
        item = left.pop()
        if type(item) is dict:
            yield item
            left.extend([child for child in reversed(item.values()) if type(child) is dict or type(child) is list])
        elif type(item) is list:
            left.extend(reversed(item))
