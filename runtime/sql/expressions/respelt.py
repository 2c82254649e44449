"""Functions that are another expression of DuckDB's: macros around unnest(), and those of the moment and of chance,
whose inputs are Spark's."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cache
from typing import Any

from runtime.sql.asking.gate import expression
from runtime.sql.asking.scope import call
from runtime.sql.asking.tree import Node, below, replaced

_MILLIS = "lpad(lower(to_hex(epoch_ms(now()))), 12, '0')"
#: By name and number of arguments: DuckDB's text with _0, _1… for these.
SPELT = {
    ("age", 1): "age(current_date, _0)",
    ("ago", 1): "now() - CAST(_0 AS INTERVAL)",
    ("current_localtime", 0): "CAST(localtimestamp AS TIME)",
    ("current_time", 0): "CAST(now() AS TIME WITH TIME ZONE)",
    ("generate_subscripts", 2): "unnest(generate_series(1, array_length(_0, _1)))",
    ("get_current_time", 0): "CAST(now() AS TIME WITH TIME ZONE)",
    ("json_group_structure", 1): "json_structure(json_group_array(_0))->0",
    ("localtime", 0): "CAST(localtimestamp AS TIME)",
    ("pg_typeof", 1): "lower(typeof(_0))",
    ("regexp_split_to_table", 2): "unnest(string_split_regex(_0, _1))",
    ("uuidv7", 0): f"CAST(left({_MILLIS}, 8) || '-' || right({_MILLIS}, 4) || '-7' "
    "|| substr(CAST(uuid() AS VARCHAR), 16) AS UUID)",
}
#: Names that stand without parentheses, where no column has them.
NAMES = {
    "current_catalog",
    "current_role",
    "current_schema",
    "current_time",
    "current_user",
    "localtime",
    "session_user",
    "user",
}
_GIVEN = re.compile(r"_(\d)")


def is_spelt(node: Node) -> bool:
    return node.get("class") == "FUNCTION" and (node["function_name"], len(node["arguments"])) in SPELT


def respelt(node: Node) -> Node:
    """The tree with these functions written out."""

    def one(node: Node) -> Node | None:
        if not is_spelt(node):
            return None
        found = _spelt(node["function_name"], len(node["arguments"]))
        given = [argument["expression"] for argument in below(node, one)["arguments"]]
        return {**_filled(found, given, node), "alias": node["alias"]}

    made: Node = replaced(node, one)
    return made


def named(name: str) -> Node | None:
    """What a name without parentheses stands for where it is no column."""
    if name.lower() not in NAMES:
        return None
    return {**respelt(call(name.lower())), "alias": ""}


@cache
def _spelt(name: str, arguments: int) -> Node:
    return expression(SPELT[name, arguments])


def _filled(value: Any, given: Sequence[Node], at: Node) -> Any:
    if type(value) is list:
        return [_filled(item, given, at) for item in value]
    if type(value) is not dict:
        return value
    if value.get("class") == "COLUMN_REF" and (found := _GIVEN.fullmatch(value["column_names"][0])):
        return given[int(found[1])]
    made = {key: _filled(item, given, at) for key, item in value.items()}
    if "query_location" in made:
        made |= {key: at[key] for key in ("query_location", "query_location_length")}
    return made
