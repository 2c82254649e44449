"""A payload as a tree of fields, with what changed since it was last delivered."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ondatra_web.views.shown import cut, object_of
from runtime.records import exact, query

#: What lies deeper, or is one of more, stands as JSON.
DEEPEST, MOST_CHILDREN = 6, 100


@dataclass(frozen=True)
class Node:
    """One field, with its value as JSON text or, where it holds others, with these."""

    name: str
    text: str
    old: str | None = None  # None: did not change
    gone: bool = False  # only the old state has it
    children: tuple[Node, ...] = ()
    holds: str = ""  # `3 fields`, `2 items`


def tree(record: Mapping[str, Any]) -> tuple[list[Node], int]:
    """The fields of a record, and how many of them changed."""
    payload, before = object_of(record.get("record_payload")), object_of(record.get("previous_payload"))
    old = {name: value for name, value, _ in query.difference(record)}

    nodes = [
        Node(exact.readable(name), _text(value), _text(old[name])) if name in old and before else _node(name, value, 1)
        for name, value in payload.items()
    ]
    nodes += [
        Node(exact.readable(name), "", _text(value), gone=True) for name, value in before.items() if name not in payload
    ]
    return nodes, len(old)


def _node(name: str, value: Any, depth: int) -> Node:
    inner = _inner(value)
    if not inner or depth >= DEEPEST or len(inner) > MOST_CHILDREN:
        return Node(exact.readable(name), _text(value))
    word = "field" if isinstance(value, dict) else "item"
    children = tuple(_node(n, v, depth + 1) for n, v in inner)
    return Node(exact.readable(name), "", children=children, holds=f"{len(inner)} {word}{'s' * (len(inner) != 1)}")


def _inner(value: Any) -> list[tuple[str, Any]]:
    if isinstance(value, dict):
        return list(value.items())
    return [(str(n), v) for n, v in enumerate(value)] if isinstance(value, list) else []


def _text(value: Any) -> str:
    try:
        return cut(exact.dumps(value))
    except ValueError as error:
        return str(error)
