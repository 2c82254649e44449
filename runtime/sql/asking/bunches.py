"""Questions about several queries at once: one statement whose columns are the rows of each, as STRUCTs."""

from __future__ import annotations

import re
from collections.abc import Sequence

from . import types
from .tree import Node
from .types import Type

#: The stuff that the questions are made of.
FORM = "WITH q AS (SELECT 1) SELECT __0, * FROM (SELECT 1) AS __0, c AS __1"
Columns = list[tuple[str, Type]]
#: The columns of a statement, and by id() those of the queries in its WITH.
Described = tuple[Columns, dict[int, Columns]]


class Renamed(Exception):
    """A column may have a number at its end that a statement alone does not give it: it has another column's name."""


def plain_ctes(node: Node) -> list[Node]:
    """The entries of a WITH whose columns are those of their queries."""
    return [
        e
        for e in node["cte_map"]["map"]
        if not e["value"].get("aliases") and e["value"]["query_node"]["type"] != "RECURSIVE_CTE_NODE"
    ]


def side_by_side(base: Node, node: Node, entries: Sequence[Node]) -> Node:
    """A query with one STRUCT for the rows of the node, and one for those of each of these of its CTEs. `base`: FORM,
    parsed."""
    join, name = base["from_table"], base["select_list"][0]
    whole = {**join["left"], "subquery": {**join["left"]["subquery"], "node": {**node, "cte_map": {"map": []}}}}
    for at, entry in enumerate(entries, 1):
        whole = {**join, "left": whole, "right": _table(join["right"], entry["key"], f"__{at}")}
    return {
        **base,
        "select_list": [{**name, "column_names": [f"__{at}"]} for at in range(len(entries) + 1)],
        "from_table": whole,
        "cte_map": node["cte_map"],
    }


def together(base: Node, nodes: Sequence[Node]) -> Node:
    """A query with the columns of all these. Each stands in the WITH, where it sees nothing of the others."""
    (entry,), join, star = base["cte_map"]["map"], base["from_table"], base["select_list"][1]
    names = [f"__ondatra_{at}" for at in range(len(nodes))]
    whole, *others = [_table(join["right"], name, name) for name in names]
    for table in others:
        whole = {**join, "left": whole, "right": table}
    entries = [
        {
            "key": name,
            "value": {
                **entry["value"],
                "query_node": node,
                "aliases": [f"{name}_{at}" for at in range(len(node["select_list"]))],
            },
        }
        for name, node in zip(names, nodes, strict=True)
    ]
    return {**base, "select_list": [star], "from_table": whole, "cte_map": {"map": entries}}


def _table(like: Node, name: str, alias: str) -> Node:
    return {**like, "alias": alias, "table_name": name, "qualified_name": {"path": [name]}}


def described(entries: Sequence[Node], kinds: Sequence[str]) -> Described:
    """The answer to `side_by_side`, given the STRUCTs as DuckDB writes them. Renamed where it may not be the
    statement's own."""
    whole, *ctes = [list(zip(t.fields, t.args, strict=True)) for t in map(types.parse, kinds)]
    if is_renamed([name for name, _ in whole]):
        raise Renamed
    return whole, {id(e["value"]["query_node"]): found for e, found in zip(entries, ctes, strict=True)}


def is_renamed(names: Sequence[str]) -> bool:
    """Whether one may be another's name with a number, which the second of two equal ones gets in a subquery."""
    known = {name.lower() for name in names}
    return any(re.sub(r"_\d+$", "", name) in known for name in known if name[-1:].isdigit())
