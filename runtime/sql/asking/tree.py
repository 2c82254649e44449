"""DuckDB's parse tree: dicts and lists as it serializes them, and where their parts stand in the text."""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Any

Node = dict[str, Any]
#: Functions that make a row of each element of a list.
UNNESTING = ("unnest", "unlist")
#: Functions in FROM that make rows of their arguments: those that count, and others.
SERIES = ("range", "generate_series")
OF_JSON = ("json_each", "json_tree")
MAKING = (*SERIES, "unnest", *OF_JSON)
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


def paths(node: Any) -> list[list[str]]:
    """The names of each column below, as they are written."""
    return [item["column_names"] for item in walk(node) if item.get("class") == "COLUMN_REF"]


def is_called(node: Node, names: Collection[str]) -> bool:
    """Whether it is a call of one of these functions."""
    return node.get("class") == "FUNCTION" and node["function_name"] in names


def replaced(value: Any, by: Callable[[Node], Node | None], without: str = "") -> Any:
    """The tree with what `by` makes of its dicts, the outer ones first: of those for which that is None, what is below
    is looked at, but for what stands under the key `without`. What stays as it is remains the same object."""
    if type(value) is list:
        items = [replaced(item, by, without) for item in value]
        return items if any(new is not old for new, old in zip(items, value, strict=True)) else value
    if type(value) is not dict:
        return value
    found = by(value)
    return below(value, by, without) if found is None else found


def below(node: Node, by: Callable[[Node], Node | None], without: str = "") -> Node:
    """The same of all that is below a node."""
    changed = {
        key: new
        for key, value in node.items()
        if type(value) in (dict, list) and key != without and (new := replaced(value, by, without)) is not value
    }
    return {**node, **changed} if changed else node


def methods_called(node: Node) -> Node:
    """`x.f(…)` as `f(x, …)`: DuckDB parses what stands before the point as a schema."""

    def called(one: Node) -> Node | None:
        if one.get("class") != "FUNCTION" or not one.get("schema"):
            return None
        of = {**_COLUMN, "query_location": one["query_location"], "column_names": one["qualified_name"]["path"][:-1]}
        one = below(one, called)
        return {
            **one,
            "schema": "",
            "catalog": "",
            "qualified_name": {"path": [one["function_name"]]},
            "arguments": [{"name": "", "expression": of}, *one["arguments"]],
        }

    made: Node = replaced(node, called)
    return made


_COLUMN: Node = {"class": "COLUMN_REF", "type": "COLUMN_REF", "alias": "", "query_location_length": 0}
