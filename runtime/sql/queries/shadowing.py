"""A CTE of a name that a query around it has given already: it gets one of its own, and what reads it an alias."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from runtime.sql.asking.tree import Node, first_offset, replaced, walk
from runtime.sql.model import Refused


def apart(node: Node, taken: Collection[str]) -> Node:
    """The query with other names for those of its CTEs whose names are taken."""
    entries = node["cte_map"]["map"]
    for at, name in enumerate([entry["key"].lower() for entry in entries]):
        if name not in taken:
            continue
        if any(name in _names(part) for part in walk(node) if part is not node):
            raise Refused(f"a third CTE named {name} within two of this name", first_offset(node), hint=False)
        new = f"{name}__{at}"
        while new in taken:
            new += "_"
        recursive = entries[at]["value"]["query_node"]["type"] == "RECURSIVE_CTE_NODE"
        own = put(entries[at], name, new) if recursive else entries[at]
        later = [put(entry, name, new) for entry in entries[at + 1 :]]
        rest = {key: value if key == "cte_map" else put(value, name, new) for key, value in node.items()}
        entries = [*entries[:at], {**own, "key": new}, *later]
        node = {**rest, "cte_map": {**node["cte_map"], "map": entries}}
    return node


def put(value: Any, name: str, new: str) -> Any:
    """The tree with the name of the table replaced, under which its columns go on being known."""

    def one(node: Node) -> Node | None:
        if node.get("type") != "BASE_TABLE" or [n.lower() for n in node["qualified_name"]["path"]] != [name]:
            return None
        alias = node["alias"] or node["table_name"]
        return {**node, "alias": alias, "table_name": new, "qualified_name": {"path": [new]}}

    return replaced(value, one)


def _names(node: Node) -> set[str]:
    return {entry["key"].lower() for entry in (node.get("cte_map") or {}).get("map", [])}
