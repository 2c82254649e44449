"""The name of a table as a value: `to_json(o) FROM orders o` is a STRUCT of the row."""

from __future__ import annotations

from typing import Any

from runtime.sql.asking.scope import Scope, call, column
from runtime.sql.asking.tree import Node
from runtime.sql.scalar.constants import lambda_params


def written_out(node: Node, scope: Scope, aliases: frozenset[str] = frozenset()) -> Node:
    """The node with a STRUCT in the place of each name of a table; `aliases` are names that mean something else."""

    def one(value: Any, inner: frozenset[str]) -> Any:
        if type(value) is list:
            made = [one(v, inner) for v in value]
            return made if any(m is not v for m, v in zip(made, value, strict=True)) else value
        if type(value) is not dict:
            return value
        if value.get("class") == "COLUMN_REF":
            names = value["column_names"]
            found = None if names[0].lower() in inner else row(names, scope)
            return value if found is None else {**found, "alias": value.get("alias") or names[-1]}
        if value.get("class") == "SUBQUERY":
            return {**value, "child": one(value.get("child"), inner)}
        if value.get("class") == "LAMBDA" and value.get("syntax_type") != "SINGLE_ARROW":
            inner = inner | set(lambda_params(value))
        changed = {k: new for k, v in value.items() if k != "type_expr" and (new := one(v, inner)) is not v}
        return {**value, **changed} if changed else value

    found: Node = one(node, aliases)
    return found


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
