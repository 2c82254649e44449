"""DISTINCT, ORDER BY and LIMIT of a SELECT."""

from __future__ import annotations

from typing import TYPE_CHECKING

from runtime.sql.asking.scope import parts, where
from runtime.sql.asking.tree import Node, first_offset
from runtime.sql.expressions.sameness import is_made_of, same
from runtime.sql.grouping import equality
from runtime.sql.grouping.orders import direction, is_ordered, ordered, position
from runtime.sql.model import Refused
from runtime.sql.scalar import collations, constants
from runtime.sql.scalar.casts import E

from .aliases import substitute
from .clauses import Select

if TYPE_CHECKING:
    from runtime.sql.expressions.expr import Expressions


def write(w: Expressions, node: Node, out: Select) -> None:
    for modifier in node["modifiers"]:
        if modifier["type"] == "DISTINCT_MODIFIER":
            distinct(w, modifier.get("distinct_on_targets") or [], out)
        elif modifier["type"] == "ORDER_MODIFIER":
            for one in modifier["orders"]:
                out.order += order(w, one, out)
        elif modifier["type"] != "LIMIT_MODIFIER":
            raise Refused(modifier["type"].replace("_", " "), first_offset(node))
        elif modifier["limit_type"] == "PERCENTAGE":
            share = float(w.constant(modifier["limit"], "LIMIT n%"))
            offset = int(w.constant(modifier["offset"], "OFFSET with LIMIT n%")) if modifier.get("offset") else 0
            out.numbered = f"__n > {offset} AND __n - {offset} <= CAST(__all * {share!r}D / 100D AS BIGINT)"
        else:
            given = {key: modifier[key] for key in ("limit", "offset") if modifier.get(key)}
            limits = {key: limit(w, number, key) for key, number in given.items() if not is_null(w, number)}
            if w.scope.parent and w.scope.is_correlated(node):  # Spark loses its order
                last = [f"__n - {limits.get('offset', 0)} <= {limits['limit']}"] if "limit" in limits else []
                out.numbered = " AND ".join([f"__n > {limits.get('offset', 0)}", *last])
            else:
                out.limit = "".join(f" {key.upper()} {number}" for key, number in limits.items())


def distinct(w: Expressions, targets: list[Node], out: Select) -> None:
    out.distinct = not targets
    for kind, item in zip(out.types, out.projections, strict=True) if out.distinct else ():
        equality.check_distinct(kind, item)
    for target in targets:
        at = position(target)
        item = out.projections[at - 1] if at else substitute(target, out.aliases, w.scope)
        out.distinct_on.append(equality.key(w, item, "DISTINCT ON"))


def order(w: Expressions, by: Node, out: Select) -> list[tuple[int | str, str]]:
    """The keys of one expression: columns of the result by their number, or texts."""
    way, item = direction(by), by["expression"]
    if item["class"] == "STAR":
        each = [{"class": "POSITIONAL_REFERENCE", "index": at} for at in range(1, len(out.names) + 1)]
        return [key for one in each for key in order(w, {**by, "expression": one}, out)]
    at: int | None = position(item)
    if at is None and item["class"] == "COLUMN_REF" and len(item["column_names"]) == 1:
        low = [n.lower() for n in out.names]
        name = item["column_names"][0].lower()
        at = low.index(name) + 1 if name in low else None
    if at is None:
        item = substitute(item, out.aliases, w.scope, aliases_first=True)
        at = next((i for i, p in enumerate(out.projections, 1) if same(p, item)), None)
    if at is not None and collations.is_collated(out.projections[at - 1], out.types[at - 1]):
        item = {**out.projections[at - 1], "alias": ""}
    elif at is not None:
        if is_ordered(out.types[at - 1]):
            return [(at, way)]
        return [ordered(w, E(out.texts[at - 1], out.types[at - 1]), by, out.projections[at - 1])]
    if out.selected is not None and not is_made_of(item, out.selected, w.form):
        raise Refused("DISTINCT with ORDER BY what is not selected", where(item), hint=False)
    item = collations.key(item, w.type(item))
    if item["class"] == "CONSTANT":
        return []
    w.scope.prime(parts(item), w.scope.grouped)
    return [ordered(w, w.write(item), by, item)]


def is_null(w: Expressions, number: Node) -> bool:
    """LIMIT NULL and LIMIT ALL."""
    return w.is_constant(number) and constants.computed(w.scope.gate, number) is None


def limit(w: Expressions, number: Node, word: str) -> str:
    text = w.write(number).text.rstrip("L")
    if not text.isdigit():
        raise Refused(f"{word.upper()} with an expression", where(number), hint=False)
    return text
