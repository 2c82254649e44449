"""Aggregates, plain or with OVER: Spark's where it gives DuckDB's answer for every value, else DuckDB's over the list
of what Spark collected for a group.

In the text of one of Spark's {F} is the place of FILTER and OVER, {D} of DISTINCT.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext
from typing import TYPE_CHECKING, Any

from runtime.sql.asking import tree
from runtime.sql.asking.scope import call, column, where
from runtime.sql.asking.tree import Node
from runtime.sql.asking.types import BOOLEAN, DOUBLE, INTEGER, Type, UnknownType, declared, spark_type
from runtime.sql.model import Refused
from runtime.sql.scalar import collations, rowwise
from runtime.sql.scalar.casts import E
from runtime.sql.scalar.plain import comparable, holds_drawn

if TYPE_CHECKING:
    from runtime.sql.expressions.expr import Expressions

Writer = Callable[["Expressions", list[E], list[Node], Node], str | None]
SMALL = ("TINYINT", "SMALLINT", "INTEGER", "UTINYINT", "USMALLINT")
#: Spark's own; None from one of these: DuckDB's.
WRITERS: dict[str, Writer] = {}
#: Of a form that no other part of a model has.
REFUSED = {"combine_aggr"}
#: Of numbers, whose answer depends on the order of the rows in its last digits, here and there. (Those of two columns
#: are not Spark's: over one row, and over infinities, DuckDB says NaN where Spark says NULL, or the other way round.)
MOMENTS = (
    "stddev",
    "stddev_samp",
    "stddev_pop",
    "variance",
    "var_samp",
    "var_pop",
)
#: Whose answer is the same in any order of the rows.
ORDERLESS = {"sum", "count", "min", "max", "avg", "bool_and", "bool_or", "count_if"}


def writer(*names: str) -> Callable[[Writer], Writer]:
    def add(f: Writer) -> Writer:
        WRITERS.update(dict.fromkeys(names, f))
        return f

    return add


def write(w: Expressions, node: Node, over: str = "", *others: str) -> E:
    """An aggregate, over the rows of a group or, with `over`, of a window; `others` are further windows whose rows take
    part."""
    check(w, node, over)
    with nullcontext() if over else w.below():
        asked_anyway = bool(others) or not over and w.all_asked and not is_count_of_rows(node)
        made = None if asked_anyway else own(w, node, over)
        if made:
            return made
        rows, asked = _collected(w, arguments_of(node), node, (over, *others))
    with w.at(grouped=w.grouped) if over else nullcontext():
        return _answered(w, rows, asked, node)


def check(w: Expressions, node: Node, over: str) -> None:
    """Refuses what neither Spark nor DuckDB may compute."""
    name = node["function_name"]
    if node.get("export_state") or name in REFUSED or any(a["name"] for a in node["arguments"]):
        raise Refused(f"{name}()" + (" OVER" if over else ""), where(node))
    if name == "bitstring_agg" and len(node["arguments"]) < 3:
        raise Refused("bitstring_agg() without the least and the greatest value", where(node), hint=False)
    if not over and holds_drawn(node):  # which Spark finds when it plans
        raise Refused(f"{name}() over what chance makes (draw it in a query below)", where(node), hint=False)
    if w.is_mixed(node):
        told = f"{name}() over columns both of its own query and of the one around it"
        raise Refused(told, where(node), hint=False)


def settled(w: Expressions, parts: list[Any]) -> list[Any]:
    """The parts of a SELECT. Beside an aggregate that is DuckDB's its others are too: it has the rows anyway, for
    which Spark's own would be windows."""
    names = w.scope.gate.aggregates
    found = [(n["function_name"], ordered_by(n)) for n in tree.own(parts) if tree.is_called(n, names)]
    w.all_asked = any(name not in WRITERS or orders and name not in ORDERLESS for name, orders in found)
    return parts


def settle_having(w: Expressions, node: Node) -> None:
    """HAVING is DuckDB's then, so that no list comes back for Spark to leave out its group."""
    below = list(tree.own(node))
    beside = any(n.get("class") in ("SUBQUERY", "WINDOW") or n.get("type") == "GROUPING_FUNCTION" for n in below)
    if w.all_asked and not beside and w.scope.has_aggregate(node):
        w.plain[id(node)] = False


def is_count_of_rows(node: Node) -> bool:
    """Whether it is a plain count(*)."""
    return node["function_name"] in ("count", "count_star") and not node["arguments"] and not node.get("filter")


def arguments_of(node: Node) -> list[Node]:
    return [a["expression"] for a in node["arguments"]]


def own(w: Expressions, node: Node, over: str) -> E | None:
    """Spark's aggregate; None where that is not the same."""
    name, arguments = node["function_name"], arguments_of(node)
    if name not in WRITERS or ordered_by(node) and name not in ORDERLESS or any(map(collations.holds, arguments)):
        return None
    condition = node.get("filter") or node.get("filter_expr")
    if over and node.get("distinct") or not all(is_declared(w.type(a)) for a in arguments):
        return None
    if over and condition and name not in ORDERLESS | {"count_star", "countif", "mean"}:
        return None
    found, tail = [w.write(a) for a in arguments], over
    if condition and over:  # windows have no FILTER, and none of these takes NULL into account
        test = w.condition(condition)
        found = [E(f"CASE WHEN {test} THEN {e.text} END", e.type) for e in found or [E("1", INTEGER)]]
        name = "count" if name == "count_star" else name
    elif condition:
        tail = f" FILTER (WHERE {w.condition(condition)})"
    text = WRITERS[name](w, found, arguments, node)
    distinct = "DISTINCT " if node.get("distinct") else ""
    if text is None or distinct and "{D}" not in text and name not in ("min", "max"):
        return None
    text, kind = text.replace("{F}", tail).replace("{D}", distinct), w.type(node)
    return E(f"CAST({text} AS {spark_type(kind)})" if kind.letter in "ifdDTZt" else text, kind)


def is_declared(kind: Type) -> bool:
    try:
        return bool(declared(kind))
    except UnknownType:
        return False


@writer("count_star")
def count_star(w: Expressions, found: list[E], nodes: list[Node], node: Node) -> str | None:
    return "count(1){F}"


@writer("count")
def count(w: Expressions, found: list[E], nodes: list[Node], node: Node) -> str | None:
    if not found:
        return "count(1){F}"
    nested = node.get("distinct") and found[0].type.letter not in "idsDTZtb" and found[0].type != DOUBLE
    return None if len(found) != 1 or nested else f"count({{D}}{found[0].text}){{F}}"


@writer("sum")
def total(w: Expressions, found: list[E], nodes: list[Node], node: Node) -> str | None:
    e = found[0]
    if e.type.name in SMALL or e.type.name in ("DOUBLE", "DECIMAL", "HUGEINT"):
        return f"sum({{D}}{e.text}){{F}}"
    if e.type.letter == "i":  # DuckDB sums into 128 bits
        return f"sum({{D}}CAST({e.text} AS DECIMAL(20,0))){{F}}"
    return f"sum(CAST({e.text} AS INT)){{F}}" if e.type == BOOLEAN and not node.get("distinct") else None


@writer("avg", "mean")
def average(w: Expressions, found: list[E], nodes: list[Node], node: Node) -> str | None:
    e = found[0]
    if e.type == DOUBLE:
        return f"avg({{D}}{e.text}){{F}}"
    if e.type.letter == "i" and e.type.name != "HUGEINT":
        summed = e.text if e.type.name in SMALL else f"CAST({e.text} AS DECIMAL(20,0))"
        return f"try_divide(CAST(sum({{D}}{summed}){{F}} AS DOUBLE), CAST(count({{D}}{e.text}){{F}} AS DOUBLE))"
    if e.type.name == "DECIMAL" and is_sum_over_count(w, node):
        return f"try_divide(CAST(sum({e.text}){{F}} AS DOUBLE), CAST(count({e.text}){{F}} AS DOUBLE))"
    if e.type.name == "DECIMAL":
        unscaled = f"CAST(replace(CAST(sum({{D}}{e.text}){{F}} AS STRING), '.', '') AS DOUBLE)"
        return f"try_divide({unscaled}, CAST(count({{D}}{e.text}){{F}} AS DOUBLE) * 1e{e.type.scale}D)"
    return None


def is_sum_over_count(w: Expressions, node: Node) -> bool:
    """Whether DuckDB divides sum by count: of all rows of a query that stands alone. In groups and windows it divides
    the digits of the sum, which gives another last digit here and there."""
    scope = w.scope
    whole = node["class"] == "FUNCTION" and not scope.groups and not scope.constant_groups
    if not whole or node.get("distinct") or node.get("filter") or ordered_by(node):
        return False
    return not scope.parent or scope.query is not None and not scope.parent.is_correlated(scope.query)


def ordered_by(node: Node) -> list[Node]:
    """The ORDER BY within an aggregate."""
    return (node.get("order_bys") or {}).get("orders") or node.get("arg_orders") or []


@writer("min", "max")
def extreme(w: Expressions, found: list[E], nodes: list[Node], node: Node) -> str | None:
    kind = found[0].type
    plain = len(found) == 1 and (kind.letter in "idDTZtb" or kind == DOUBLE or kind.name == "VARCHAR")
    return f"{node['function_name']}({found[0].text}){{F}}" if plain else None


@writer("bool_and", "bool_or")
def booleans(w: Expressions, found: list[E], nodes: list[Node], node: Node) -> str | None:
    return f"{node['function_name']}({found[0].text}){{F}}" if found[0].type == BOOLEAN else None


@writer("count_if", "countif")
def count_if(w: Expressions, found: list[E], nodes: list[Node], node: Node) -> str | None:
    """A sum: NULL where no value is known."""
    distinct = found[0].type != BOOLEAN or node.get("distinct")
    return None if distinct else f"sum(CAST({found[0].text} AS INT)){{F}}"


@writer("bit_and", "bit_or", "bit_xor")
def bits(w: Expressions, found: list[E], nodes: list[Node], node: Node) -> str | None:
    counted = found[0].type.name in ("TINYINT", "SMALLINT", "INTEGER", "BIGINT")
    return f"{node['function_name']}({found[0].text}){{F}}" if counted else None


@writer("any_value", "arbitrary")
def any_value(w: Expressions, found: list[E], nodes: list[Node], node: Node) -> str | None:
    return None if node.get("distinct") else f"any_value({found[0].text}, true){{F}}"


@writer(*MOMENTS)
def moments(w: Expressions, found: list[E], nodes: list[Node], node: Node) -> str | None:
    own = {"stddev": "stddev_samp", "variance": "var_samp"}
    name = str(own.get(node["function_name"], node["function_name"]))
    text = f"({{D}}{', '.join(w.cast(e, DOUBLE, n).text for e, n in zip(found, nodes, strict=True))}){{F}}"
    if name in ("stddev_pop", "var_pop"):  # 0 for an infinity too
        return f"CASE WHEN count{text} = 1 THEN 0D ELSE {name}{text} END"
    return name + text


@writer("arg_max", "max_by", "argmax", "arg_min", "min_by", "argmin")
def by(w: Expressions, found: list[E], nodes: list[Node], node: Node) -> str | None:
    """Rows whose value or key is NULL do not take part."""
    if len(found) != 2 or node.get("distinct") or not comparable(found[1].type, found[1].type):
        return None
    value, key = found
    name = "max_by" if "max" in node["function_name"] else "min_by"
    return f"{name}({value.text}, CASE WHEN {value.text} IS NOT NULL THEN {key.text} END){{F}}"


# ---- DuckDB's, over what Spark collected


def _collected(w: Expressions, arguments: list[Node], node: Node, windows: tuple[str, ...]) -> tuple[E, Node]:
    """The rows of a group as a list of structs, and the aggregate over them, `__u`."""
    fields: list[E] = []
    taken = taker(w, fields, "__u")
    asked = {**node, "class": "FUNCTION", "type": "FUNCTION", "alias": "", "filter": None}
    asked["arguments"] = [{"name": "", "expression": taken(a)} for a in arguments]
    orders = [{**o, "expression": taken(o["expression"])} for o in ordered_by(node)]
    asked["order_bys"] = {"type": "ORDER_MODIFIER", "orders": orders}
    condition = node.get("filter") or node.get("filter_expr")
    over = any(windows)
    test = f" FILTER (WHERE {w.condition(condition)})" if condition and not over else ""
    packed = row(fields)
    if condition and over:
        packed = f"CASE WHEN {w.condition(condition)} THEN {packed} END"
    lists = [f"collect_list({packed}){test}{window}" for window in windows]
    return E(lists[0] if len(lists) == 1 else f"concat({', '.join(lists)})", listed(fields)), asked


def taker(w: Expressions, fields: list[E], row: str) -> Callable[[Node], Node]:
    """What makes of an expression the field of a collected row that holds it."""

    def field(item: Node) -> Node:
        e = w.write(item)
        if e not in fields:
            fields.append(e)
        return column(row, f"a{fields.index(e)}")

    def taken(item: Node) -> Node:
        if w.is_constant(item):
            return item
        if not is_declared(w.type(item)) or collations.holds(item):  # no value of Spark's: computed over the rows
            return rowwise.replaced(w, item, field)
        return field(item)

    return taken


def row(fields: list[E]) -> str:
    names = ", ".join(f"'a{i}', {e.text}" for i, e in enumerate(fields)) or "'a', 1"
    return f"named_struct({names})"


def listed(fields: list[E]) -> Type:
    """The type of a list of such rows."""
    kinds = tuple(e.type for e in fields) or (Type("INTEGER"),)
    return Type("LIST", (Type("STRUCT", kinds, tuple(f"a{i}" for i in range(len(fields))) or ("a",)),))


def _answered(w: Expressions, rows: E, asked: Node, node: Node) -> E:
    keys = ("distinct", "export_state", "is_operator", "schema", "catalog", "query_location", "query_location_length")
    plain = {**call(node["function_name"]), **{k: asked[k] for k in (*keys, "arguments", "order_bys") if k in asked}}
    text = spelt(w, plain, node)
    try:  # in these words `group_task` knows it
        return w.over(f"(SELECT {text} FROM (SELECT unnest({{0}}) AS __u))", [rows], w.type(node), node)
    except UnknownType as error:
        raise Refused(f"{node['function_name']}() of a value of type {error}", where(node)) from None


def spelt(w: Expressions, plain: Node, node: Node) -> str:
    """The aggregate in DuckDB's words. An average of all rows is what DuckDB makes of it, which it would not within the
    groups of a task."""
    of = [w.type(a).letter for a in arguments_of(node)]
    if node["function_name"] not in ("avg", "mean") or of not in (["i"], ["d"]) or not is_sum_over_count(w, node):
        return w.scope.gate.spelt(plain)
    total, count = (w.scope.gate.spelt(call(name, *arguments_of(plain))) for name in ("sum", "count"))
    return f"CAST({total} AS DOUBLE) / CAST({count} AS DOUBLE)"
