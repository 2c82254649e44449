"""Aggregates. In a text {F} is the place of FILTER and OVER, {D} of DISTINCT, {O} says that ORDER BY is taken care
of."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..casts import E
from ..clauses import direction, sortable
from ..model import Refused
from ..scope import where
from ..texts import json_piece, json_string, string
from ..tree import Node
from ..types import BOOLEAN, DOUBLE, VARCHAR, Type, spark_type
from .registry import aggregate_writer

if TYPE_CHECKING:
    from ..expr import Expressions

SMALL = ("TINYINT", "SMALLINT", "INTEGER", "UTINYINT", "USMALLINT")


def orders_of(node: Node) -> list[Node]:
    return (node.get("order_bys") or {}).get("orders") or []


def refuse(node: Node, found: list[E]) -> Refused:
    return Refused(f"{node['function_name']}({', '.join(str(e.type) for e in found)})", where(node))


@aggregate_writer("count_star")
def count_star(w: Expressions, found: list[E], nodes: list[Node], node: Node) -> str:
    return "count(1){F}"


@aggregate_writer("count")
def count(w: Expressions, found: list[E], nodes: list[Node], node: Node) -> str:
    if not found:
        return "count(1){F}"
    if len(found) != 1 or found[0].type.letter in "?mv":
        raise refuse(node, found)
    return f"count({{D}}{found[0].text}){{F}}"


@aggregate_writer("sum")
def total(w: Expressions, found: list[E], nodes: list[Node], node: Node) -> str:
    e = found[0]
    if e.type.name in SMALL or e.type.name in ("DOUBLE", "DECIMAL", "HUGEINT"):
        return f"sum({{D}}{e.text}){{F}}"
    if e.type.letter == "i":  # DuckDB sums into 128 bits
        return f"sum({{D}}CAST({e.text} AS DECIMAL(20,0))){{F}}"
    if e.type == BOOLEAN:
        return f"sum(CAST({e.text} AS INT)){{F}}"
    raise refuse(node, found)


@aggregate_writer("avg", "mean")
def average(w: Expressions, found: list[E], nodes: list[Node], node: Node) -> str:
    e = found[0]
    if e.type == DOUBLE:
        return f"avg({{D}}{e.text}){{F}}"
    if e.type.letter == "i":
        summed = e.text if e.type.name in SMALL else f"CAST({e.text} AS DECIMAL(20,0))"
        return f"try_divide(CAST(sum({{D}}{summed}){{F}} AS DOUBLE), CAST(count({{D}}{e.text}){{F}} AS DOUBLE))"
    if e.type.name == "DECIMAL":
        unscaled = f"CAST(replace(CAST(sum({{D}}{e.text}){{F}} AS STRING), '.', '') AS DOUBLE)"
        return f"try_divide({unscaled}, CAST(count({{D}}{e.text}){{F}} AS DOUBLE) * 1e{e.type.scale}D)"
    raise refuse(node, found)


@aggregate_writer("min", "max")
def extreme(w: Expressions, found: list[E], nodes: list[Node], node: Node) -> str:
    name = node["function_name"]
    if found[0].type.letter not in "ifdsDTZtb":
        raise refuse(node, found)
    if len(found) == 1:
        return f"{name}({found[0].text}){{F}}"
    size = w.constant(nodes[1], f"{name}() with a count")
    picked = (
        f"slice(sort_array(collect_list({found[0].text}){{F}}, {'false' if name == 'max' else 'true'}), 1, {int(size)})"
    )
    return f"nullif({picked}, array())"


@aggregate_writer("any_value", "arbitrary")
def any_value(w: Expressions, found: list[E], nodes: list[Node], node: Node) -> str:
    return f"any_value({found[0].text}, true){{F}}"


@aggregate_writer("bool_and", "bool_or")
def booleans(w: Expressions, found: list[E], nodes: list[Node], node: Node) -> str:
    return f"{node['function_name']}({w.cast(found[0], BOOLEAN, nodes[0]).text}){{F}}"


@aggregate_writer("count_if", "countif")
def count_if(w: Expressions, found: list[E], nodes: list[Node], node: Node) -> str:
    return f"count_if({w.cast(found[0], BOOLEAN, nodes[0]).text}){{F}}"


@aggregate_writer("bit_and", "bit_or", "bit_xor")
def bits(w: Expressions, found: list[E], nodes: list[Node], node: Node) -> str:
    if found[0].type.letter != "i" or found[0].type.name == "HUGEINT":
        raise refuse(node, found)
    return f"{node['function_name']}({found[0].text}){{F}}"


@aggregate_writer(
    "stddev",
    "stddev_samp",
    "stddev_pop",
    "variance",
    "var_samp",
    "var_pop",
    "corr",
    "covar_pop",
    "covar_samp",
    "regr_slope",
    "regr_intercept",
    "regr_r2",
)
def moments(w: Expressions, found: list[E], nodes: list[Node], node: Node) -> str:
    name = {"stddev": "stddev_samp", "variance": "var_samp"}.get(node["function_name"], node["function_name"])
    return f"{name}({{D}}{', '.join(w.cast(e, DOUBLE, n).text for e, n in zip(found, nodes, strict=True))}){{F}}"


@aggregate_writer("arg_max", "max_by", "argmax", "arg_min", "min_by", "argmin")
def by(w: Expressions, found: list[E], nodes: list[Node], node: Node) -> str:
    """Rows whose value or key is NULL do not take part."""
    name = "max_by" if "max" in node["function_name"] else "min_by"
    value, key = found[:2]
    if key.type.letter not in "ifdsDTZtb" or value.type.letter == "?":
        raise refuse(node, found)
    guarded = f"CASE WHEN {value.text} IS NOT NULL THEN {key.text} END"
    if len(found) == 3:
        size = int(w.constant(nodes[2], f"{name}() with a count"))
        kind = w.type(node)
        keep = (
            f"CASE WHEN {value.text} IS NOT NULL AND {key.text} IS NOT NULL THEN named_struct('k', {key.text}, "
            f"'v', {value.text}) END"
        )
        order = ("l.k < r.k", "l.k > r.k") if name == "max_by" else ("l.k > r.k", "l.k < r.k")
        listed = (
            f"array_sort(collect_list({keep}){{F}}, (l, r) -> CASE WHEN {order[0]} THEN 1 WHEN {order[1]} THEN "
            f"-1 ELSE 0 END)"
        )
        return f"nullif(transform(slice({listed}, 1, {size}), s -> s.v), CAST(array() AS {spark_type(kind)}))"
    return f"{name}({value.text}, {guarded}){{F}}"


def ordered(w: Expressions, node: Node, text: str, drop_nulls: bool, distinct_key: bool = False) -> str:
    """An array of all values of an aggregate, NULLs kept unless told otherwise, in the order that ORDER BY asks for."""
    orders = orders_of(node)
    distinct = bool(node.get("distinct"))
    if not orders and not distinct:
        return f"collect_list({text}){'{F}' if drop_nulls else '{N}'}{{O}}"
    fields, comparisons = [f"'v', {text}"], []
    for i, order in enumerate(orders):
        key = w.write(order["expression"])
        sortable(key.type, order["expression"])
        way = direction(order)
        if distinct and key.text != text:
            raise Refused(f"{node['function_name']}(DISTINCT … ORDER BY another value)", where(node))
        fields.append(f"'k{i}', {key.text}")
        comparisons.append((f"k{i}", way.startswith("DESC"), way.endswith("FIRST")))
    struct = f"named_struct({', '.join(fields)})"
    kept = f"CASE WHEN {text} IS NOT NULL THEN {struct} END" if drop_nulls else struct
    listed = f"collect_list({'DISTINCT ' if distinct else ''}{kept}){{F}}"
    if comparisons:
        listed = f"array_sort({listed}, (l, r) -> {comparator(comparisons)})"
    return f"transform({listed}, s -> s.v){{O}}"


def comparator(keys: list[tuple[str, bool, bool]]) -> str:
    out = "0"
    for name, down, nulls_first in reversed(keys):
        left, right, first = f"l.{name}", f"r.{name}", -1 if nulls_first else 1
        out = (
            f"CASE WHEN {left} IS NULL AND {right} IS NULL THEN {out} WHEN {left} IS NULL THEN {first} WHEN {right} "
            f"IS NULL THEN {-first} "
            f"WHEN {left} < {right} THEN {1 if down else -1} WHEN {left} > {right} THEN {-1 if down else 1} ELSE "
            f"{out} END"
        )
    return out


@aggregate_writer("list", "array_agg")
def listed(w: Expressions, found: list[E], nodes: list[Node], node: Node) -> str:
    return (
        f"nullif({ordered(w, node, found[0].text, False)}, CAST(array() AS "
        f"{spark_type(Type('LIST', (found[0].type,)))}))"
        if found[0].type.letter not in "m"
        else _mapped(w, node, found[0].text)
    )


def _mapped(w: Expressions, node: Node, text: str) -> str:
    return f"transform(array({ordered(w, node, text, False)}), a -> CASE WHEN size(a) > 0 THEN a END)[0]"


@aggregate_writer("string_agg", "listagg", "group_concat")
def string_agg(w: Expressions, found: list[E], nodes: list[Node], node: Node) -> str:
    separator = w.constant(nodes[1], "the separator of string_agg()") if len(nodes) > 1 else ","
    if separator is None:
        raise Refused("string_agg() with the separator NULL", where(node))
    text = w.cast(found[0], VARCHAR, nodes[0]).text
    return f"CASE WHEN count({text}){{F}} > 0 THEN array_join({ordered(w, node, text, True)}, {string(separator)}) END"


@aggregate_writer("first", "last")
def first(w: Expressions, found: list[E], nodes: list[Node], node: Node) -> str:
    if not (orders_of(node)):
        raise Refused(f"{node['function_name']}() without ORDER BY", where(node), hint=False)
    return f"try_element_at({ordered(w, node, found[0].text, False)}, {1 if node['function_name'] == 'first' else -1})"


@aggregate_writer("quantile_cont", "median")
def quantile(w: Expressions, found: list[E], nodes: list[Node], node: Node) -> str:
    """Interpolated as DuckDB does it: low + (high - low) * rest."""
    orders = orders_of(node)
    if node["function_name"] == "median":
        value, at = nodes[0], 0.5
    elif orders:
        value, at = orders[0]["expression"], w.constant(nodes[0], "a quantile")
        if orders[0]["type"] == "DESCENDING":
            raise Refused("percentile_cont() … ORDER BY … DESC", where(node))
    else:
        value, at = nodes[0], w.constant(nodes[1], "a quantile")
    e = w.write(value)
    if e.type.letter not in "if" or e.type.name in ("HUGEINT", "FLOAT"):
        raise Refused(f"{node['function_name']}({e.type}) (cast to DOUBLE)", where(node), hint=False)

    def one(q: float) -> str:
        place = f"((size(a) - 1) * {float(q)!r}D)"
        low, high = f"a[CAST(floor({place}) AS INT)]", f"a[CAST(ceil({place}) AS INT)]"
        return f"{low} + ({high} - {low}) * ({place} - floor({place}))"

    body = "array(" + ", ".join(one(q) for q in at) + ")" if isinstance(at, list) else one(at)
    return (
        f"transform(array(array_sort(collect_list(CAST({e.text} AS DOUBLE)){{F}})), a -> CASE WHEN size(a) > 0 "
        f"THEN {body} END)[0]{{O}}"
    )


@aggregate_writer("product")
def product(w: Expressions, found: list[E], nodes: list[Node], node: Node) -> str:
    text = f"collect_list({w.cast(found[0], DOUBLE, nodes[0]).text}){{F}}"
    return f"transform(array({text}), a -> CASE WHEN size(a) > 0 THEN aggregate(a, 1D, (p, x) -> p * x) END)[0]"


@aggregate_writer("histogram")
def histogram(w: Expressions, found: list[E], nodes: list[Node], node: Node) -> str:
    if len(found) != 1 or found[0].type.letter not in "isDTb":
        raise refuse(node, found)
    counted = (
        "transform(array_sort(array_distinct(a)), v -> struct(v, CAST(size(filter(a, x -> x = v)) AS DECIMAL(20,0))))"
    )
    return (
        f"transform(array(collect_list({found[0].text}){{F}}), a -> CASE WHEN size(a) > 0 THEN "
        f"map_from_entries({counted}) END)[0]"
    )


@aggregate_writer("json_group_array")
def json_group_array(w: Expressions, found: list[E], nodes: list[Node], node: Node) -> str:
    return (
        f"nullif(concat('[', "
        f"array_join(collect_list({json_piece(found[0].text, found[0].type, printed=found[0].printed)}){{F}}, "
        f"','), ']'), '[]')"
    )


@aggregate_writer("json_group_object")
def json_group_object(w: Expressions, found: list[E], nodes: list[Node], node: Node) -> str:
    if found[0].type.letter not in "sib":
        raise refuse(node, found)
    entry = (
        f"concat({json_string(w.cast(found[0], VARCHAR, nodes[0]).text)}, ':', "
        f"{json_piece(found[1].text, found[1].type, printed=found[1].printed)})"
    )
    return f"nullif(concat('\\u007b', array_join(collect_list({entry}){{F}}, ','), '\\u007d'), '\\u007b\\u007d')"
