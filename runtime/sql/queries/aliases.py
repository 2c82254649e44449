"""Names of the select list in its other expressions."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from functools import partial

from runtime.sql.asking.scope import Scope
from runtime.sql.asking.tree import Node, below, paths, replaced
from runtime.sql.scalar.constants import lambda_params


def substitute(node: Node, aliases: Mapping[str, Node], scope: Scope, aliases_first: bool = False) -> Node:
    """The expression with the select list's aliases replaced by what they stand for; columns win unless told
    otherwise."""

    def one(node: Node, inner: frozenset[str] = frozenset()) -> Node | None:
        if node.get("class") == "COLUMN_REF" and len(node["column_names"]) == 1:
            name = node["column_names"][0].lower()
            meant = name in aliases and name not in inner and (aliases_first or not scope.owns(name))
            if not meant or inner & {path[0].lower() for path in paths(aliases[name])}:
                return node
            return {**copy.deepcopy(aliases[name]), "alias": node.get("alias", "")}
        if node.get("class") == "SUBQUERY":  # what is compared with its rows stands beside it
            return {**node, "child": replaced(node["child"], partial(one, inner=inner))}
        if node.get("class") == "LAMBDA" and node.get("syntax_type") != "SINGLE_ARROW":
            return {**node, "expr": replaced(node["expr"], partial(one, inner=inner | set(lambda_params(node))))}
        return below(node, partial(one, inner=inner))

    made: Node = replaced(node, one) if aliases else node
    return made
