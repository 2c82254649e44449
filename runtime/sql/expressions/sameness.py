"""Expressions by their forms: whether two are the same, wherever they stand."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection
from typing import Any

from runtime.sql.asking.gate import gate
from runtime.sql.asking.scope import children
from runtime.sql.asking.tree import Node, is_called
from runtime.sql.scalar.functions import VOLATILE


def same(a: Node, b: Node) -> bool:
    """Whether two expressions are the same text, wherever they stand."""
    return same_form(a) == same_form(b)


def is_made_of(node: Node, forms: Collection[str], form: Callable[[Node], str]) -> bool:
    """Whether an expression consists of what has these forms, of fields of it, and of constants."""
    if node["class"] == "COLUMN_REF":
        names = node["column_names"]
        return any(form({**node, "column_names": names[:at]}) in forms for at in range(1, len(names) + 1))
    if form(node) in forms:
        return True
    own = node["class"] in ("SUBQUERY", "WINDOW", "POSITIONAL_REFERENCE")
    own = own or is_called(node, VOLATILE | gate().aggregates)
    return not own and all(is_made_of(n, forms, form) for n in children(node))


def same_form(node: Node) -> str:
    """A text that is equal for the same expressions: the case of names does not count, that of constants does."""
    return json.dumps(_plain(node), sort_keys=True)


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        kept = {k: v for k, v in value.items() if k not in ("query_location", "query_location_length", "alias")}
        return {key: item if key == "literal" else _plain(item) for key, item in kept.items()}
    if isinstance(value, list):
        return [_plain(item) for item in value]
    return value.lower() if isinstance(value, str) else value
