"""Names of the select list in its other expressions."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from typing import Any

from runtime.sql.asking.scope import Scope
from runtime.sql.asking.tree import Node


def substitute(node: Node, aliases: Mapping[str, Node], scope: Scope, aliases_first: bool = False) -> Node:
    """The expression with the select list's aliases replaced by what they stand for; columns win unless told
    otherwise."""
    if not aliases:
        return node
    if node.get("class") == "COLUMN_REF":
        name = node["column_names"][0].lower()
        if name in aliases and len(node["column_names"]) == 1 and (aliases_first or not scope.owns(name)):
            return {**copy.deepcopy(aliases[name]), "alias": node.get("alias", "")}
        return node
    if node.get("class") == "SUBQUERY" or node.get("class") == "LAMBDA" and node.get("syntax_type") != "SINGLE_ARROW":
        return node
    changed: Node = {}
    for key, value in node.items():
        if type(value) is dict and key != "type_expr":
            new: Any = substitute(value, aliases, scope, aliases_first)
            if new is not value:
                changed[key] = new
        elif type(value) is list and value:
            new = [substitute(v, aliases, scope, aliases_first) if type(v) is dict else v for v in value]
            if any(n is not v for n, v in zip(new, value, strict=True)):
                changed[key] = new
    return {**node, **changed} if changed else node
