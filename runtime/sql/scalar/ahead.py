"""Many constants, of a list of values: computed by few questions before each is written."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from runtime.sql.asking.tree import Node
from runtime.sql.asking.types import VARCHAR, Type

from .constants import as_type

if TYPE_CHECKING:
    from runtime.sql.expressions.expr import Expressions

#: Literals whose value is their text.
READ = ("STRING", "INTEGER", "BOOLEAN", "NULL")
#: Whose types are asked for by one question.
BUNCH = 500
#: Fewer are asked for one by one.
FEW = 3


def fold(w: Expressions, nodes: Sequence[Node], kind: Type) -> None:
    """As values of a type, see `constants.folded`."""
    if len(nodes) < FEW:
        return
    found = []
    for at in range(0, len(nodes), BUNCH):
        w.scope.prime(list(nodes[at : at + BUNCH]), False)
    for node in filter(w.is_constant, nodes):
        own = w.type(node)
        found.append(as_type(node, VARCHAR) if own.letter in "DTZ" else node)
        if own != kind:
            made = as_type(node, kind)
            found.append(as_type(made, VARCHAR) if kind.letter in "DTZ" else made)
    w.scope.gate.compute_ahead([n for n in found if (n.get("literal") or {}).get("kind") not in READ])
