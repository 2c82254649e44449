"""Names of the select list in its other expressions."""

from __future__ import annotations

import copy
from collections.abc import Mapping

from runtime.sql.asking.scope import Scope
from runtime.sql.asking.tree import Node, replaced


def substitute(node: Node, aliases: Mapping[str, Node], scope: Scope, aliases_first: bool = False) -> Node:
    """The expression with the select list's aliases replaced by what they stand for; columns win unless told
    otherwise."""

    def one(node: Node) -> Node | None:
        if node.get("class") == "COLUMN_REF" and len(node["column_names"]) == 1:
            name = node["column_names"][0].lower()
            meant = name in aliases and (aliases_first or not scope.owns(name))
            return {**copy.deepcopy(aliases[name]), "alias": node.get("alias", "")} if meant else node
        own = node.get("class") == "LAMBDA" and node.get("syntax_type") != "SINGLE_ARROW"
        return node if own or node.get("class") == "SUBQUERY" else None

    made: Node = replaced(node, one) if aliases else node
    return made
