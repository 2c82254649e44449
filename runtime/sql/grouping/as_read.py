"""The order of rows where a query names none: that in which Spark reads them, and over groups that of their keys."""

from __future__ import annotations

from typing import TYPE_CHECKING

from . import equality
from .orders import is_ordered

if TYPE_CHECKING:
    from runtime.sql.expressions.expr import Expressions

#: Spark's number of a row, greater than that of every row read before.
NUMBER = "monotonically_increasing_id()"


def number(w: Expressions) -> str:
    """That number; in a LATERAL query no row has one, since Spark takes there nothing that tells of its tasks."""
    return "true" if w.queries.beside and w.scope.parent else NUMBER


def order(w: Expressions) -> str:
    """The keys of that order."""
    if not w.scope.grouped:
        return number(w)
    with w.below():
        plain = [g for g in w.scope.groups if is_ordered(w.type(g)) and equality.stands(w, g)]
        keys = [w.write(group).text for group in plain]
    return ", ".join(keys) or "true"
