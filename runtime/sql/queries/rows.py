"""The name of a table as a value: `to_json(o) FROM orders o` is a STRUCT of the row."""

from __future__ import annotations

from functools import partial

from runtime.sql.asking.scope import Scope, call, column
from runtime.sql.asking.tree import Node, below, replaced
from runtime.sql.scalar.constants import lambda_params


def written_out(node: Node, scope: Scope, aliases: frozenset[str] = frozenset()) -> Node:
    """The node with a STRUCT in the place of each name of a table; `aliases` are names that mean something else."""

    def one(node: Node, inner: frozenset[str]) -> Node | None:
        if node.get("class") == "COLUMN_REF":
            names = node["column_names"]
            found = None if names[0].lower() in inner else row(names, scope)
            return None if found is None else {**found, "alias": node.get("alias") or names[-1]}
        if node.get("class") == "LAMBDA" and node.get("syntax_type") != "SINGLE_ARROW":
            return below(node, partial(one, inner=inner | set(lambda_params(node))), without="subquery")
        return None

    made: Node = replaced(node, partial(one, inner=aliases), without="subquery")
    return made


def row(names: list[str], scope: Scope) -> Node | None:
    """The columns of the table of that name as a STRUCT; None if it is a column, or no table."""
    if len(names) != 1 or scope.resolve(names) is not None:
        return None
    at: Scope | None = scope
    while at:
        for source in at.sources:
            if source.alias.lower() == names[0].lower() and source.single:
                return column(source.alias, source.single)
            if source.alias.lower() == names[0].lower() and not source.lent:
                packed = call("struct_pack", *(column(source.alias, name) for name, _ in source.columns))
                for argument, (name, _) in zip(packed["arguments"], source.columns, strict=True):
                    argument["name"] = name
                return packed
        at = at.parent
    return None
