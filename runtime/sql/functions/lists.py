"""Lists, structs, maps, lambdas and series."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..casts import E
from ..model import Refused
from ..scope import where
from ..texts import bound, string
from ..tree import Node
from ..types import BIGINT, BOOLEAN, DOUBLE, NULL, TIMESTAMP, VARCHAR, Type, name_quoted, spark_type
from .registry import rules, writer

if TYPE_CHECKING:
    from ..expr import Expressions

rules(
    __name__,
    {
        "length len array_length list_count_all": "l: size({0})",
        "cardinality": "m: size({0})",
        "flatten": "l: flatten(filter({0}, v -> v IS NOT NULL))",
        "list_unique array_unique": "l: size(array_distinct(filter({0}, v -> v IS NOT NULL)))",
        "list_count array_count": "l: size(filter({0}, v -> v IS NOT NULL))",
        "list_max array_max": "l: array_max({0})",
        "list_min array_min": "l: array_min({0})",
        "list_reverse array_reverse": "l: reverse({0})",
        "map_keys": "m: map_keys({0})",
        "map_values": "m: map_values({0})",
        "map_entries": "m: transform(map_entries({0}), e -> named_struct('key', e.key, 'value', e.value))",
    },
)
PLAIN = "ifdsDTZtb"


def list_of(e: E, node: Node) -> Type:
    if e.type.name != "LIST":
        raise Refused(f"{node.get('function_name', 'a list function')}({e.type})", where(node))
    return e.type.element


def element(w: Expressions, kind: Type, node: Node) -> str:
    return w.cast(w.write(node), kind, node).text


@writer("list_value", "list_pack")
def list_value(w: Expressions, arguments: list[Node], node: Node) -> E | None:
    kind = w.type(node)
    items = ", ".join(element(w, kind.element, a) for a in arguments)
    return E(f"array({items})" if arguments else f"CAST(array() AS {spark_type(kind)})", kind)


@writer("struct_pack", "row")
def struct_pack(w: Expressions, arguments: list[Node], node: Node) -> E | None:
    kind = w.type(node)
    names = [n or f"col{i}" for i, n in enumerate(kind.fields, 1)]
    if len({n.lower() for n in names}) != len(names):
        raise Refused("a STRUCT with two fields of one name", where(node))
    return E(
        "named_struct("
        + ", ".join(f"{string(n)}, {element(w, t, a)}" for n, t, a in zip(names, kind.args, arguments, strict=True))
        + ")",
        kind,
    )


@writer("struct_extract")
def struct_extract(w: Expressions, arguments: list[Node], node: Node) -> E | None:
    e, name = w.write(arguments[0]), w.constant(arguments[1], "the field of a STRUCT")
    if e.type.name == "JSON":
        return None
    if isinstance(name, int) and e.type.name == "STRUCT":
        return E(f"{e.text}.{name_quoted(e.type.fields[name - 1] or f'col{name}')}", e.type.args[name - 1])
    return E(*w.field(e, str(name), node))


@writer("array_extract", "list_extract", "list_element")
def extract(w: Expressions, arguments: list[Node], node: Node) -> E | None:
    e = w.write(arguments[0])
    if e.type.name == "STRUCT":
        return struct_extract(w, arguments, node)
    if e.type.name == "JSON":
        from .jsons import extracted

        return extracted(w, e, arguments[1], node, as_text=False)
    if e.type.name == "MAP":
        return E(f"try_element_at({e.text}, {element(w, e.type.args[0], arguments[1])})", e.type.args[1])
    at = w.write(arguments[1])
    if at.type.letter != "i":
        raise Refused(f"[{at.type}] of a {e.type}", where(node))
    if e.type.name == "VARCHAR":
        n = w.constant(arguments[1], "a position in text")
        return (
            E(
                f"substring({e.text}, {n}, 1)"
                if n > 0
                else f"CASE WHEN length({e.text}) < {-n} THEN '' ELSE substring({e.text}, {n}, 1) END",
                VARCHAR,
            )
            if n
            else None
        )
    kind = list_of(e, node)
    if w.is_constant(arguments[1]) and w.constant(arguments[1], ""):
        return E(f"try_element_at({e.text}, {at.text})", kind)
    return E(f"CASE WHEN {at.text} <> 0 THEN try_element_at({e.text}, CAST({at.text} AS INT)) END", kind)


@writer("array_slice", "list_slice")
def array_slice(w: Expressions, arguments: list[Node], node: Node) -> E | None:
    """[low:high] with positions from 1 on."""
    e = w.write(arguments[0])
    bounds = [
        w.constant(a, "a slice with a bound")
        if not (a["class"] == "FUNCTION" and a["function_name"] == "list_value" and not a["arguments"])
        else None
        for a in arguments[1:]
    ]
    low, high = (bounds[0] if isinstance(bounds[0], int) else 1), (bounds[1] if isinstance(bounds[1], int) else None)
    if len(bounds) > 2 or low < 1 or (high is not None and high < 0):
        raise Refused("a slice with a step or with positions from the end", where(node))
    if high is not None and high < low:
        high = low - 1
    if e.type.letter == "s":
        return E(f"substring({e.text}, {low}" + (f", {high - low + 1})" if high is not None else ")"), VARCHAR)
    list_of(e, node)
    return E(
        bound(
            e.text,
            "sl",
            f"slice(sl, {low}, {f'{high - low + 1}' if high is not None else f'greatest(size(sl) - {low - 1}, 0)'})",
        ),
        e.type,
    )


@writer("list_contains", "array_contains", "list_has", "array_has")
def has(w: Expressions, arguments: list[Node], node: Node) -> E | None:
    e = w.write(arguments[0])
    if e.type.name == "MAP":
        return E(f"map_contains_key({e.text}, {element(w, e.type.args[0], arguments[1])})", BOOLEAN)
    kind = list_of(e, node)
    if kind.letter not in PLAIN:
        raise Refused(f"list_contains({e.type})", where(node))
    item = element(w, kind, arguments[1])
    # an empty list has nothing, not even NULL; whether another one has NULL is not known
    found = (
        f"CASE WHEN size({e.text}) = 0 THEN false WHEN {item} IS NOT NULL THEN exists({e.text}, v -> v <=> {item}) END"
    )
    return E(f"CASE WHEN {e.text} IS NOT NULL THEN {found} END", BOOLEAN)


@writer("list_position", "list_indexof", "array_position", "array_indexof")
def list_position(w: Expressions, arguments: list[Node], node: Node) -> E | None:
    e = w.write(arguments[0])
    kind = list_of(e, node)
    if kind.letter not in PLAIN:
        raise Refused(f"list_position({e.type})", where(node))
    item = element(w, kind, arguments[1])
    first = f"array_min(transform({e.text}, (v, i) -> if(v <=> {item}, i + 1, NULL)))"
    return E(f"CAST({first} AS {spark_type(w.type(node))})", w.type(node))


@writer("list_concat", "list_cat", "array_concat", "array_cat")
def list_concat(w: Expressions, arguments: list[Node], node: Node) -> E | None:
    """NULL lists count as empty, even where all are."""
    kind = w.type(node)
    found = [element(w, kind, a) for a in arguments]
    return E("concat(" + ", ".join(f"coalesce({t}, CAST(array() AS {spark_type(kind)}))" for t in found) + ")", kind)


@writer("list_append", "array_append", "array_push_back", "list_prepend", "array_prepend", "array_push_front")
def list_append(w: Expressions, arguments: list[Node], node: Node) -> E | None:
    kind = w.type(node)
    front = "prepend" in node["function_name"] or "front" in node["function_name"]
    base, item = (arguments[1], arguments[0]) if "prepend" in node["function_name"] else (arguments[0], arguments[1])
    whole = f"coalesce({element(w, kind, base)}, CAST(array() AS {spark_type(kind)}))"
    single = f"array({element(w, kind.element, item)})"
    return E(f"concat({single}, {whole})" if front else f"concat({whole}, {single})", kind)


@writer("list_sort", "array_sort", "list_reverse_sort", "array_reverse_sort")
def list_sort(w: Expressions, arguments: list[Node], node: Node) -> E | None:
    e = w.write(arguments[0])
    kind = list_of(e, node)
    if kind.letter not in PLAIN or len(arguments) > 1 and "reverse" in node["function_name"]:
        raise Refused(f"{node['function_name']}({e.type})", where(node))
    words = [str(w.constant(a, "a sort order")).upper() for a in arguments[1:]]
    down = "reverse" in node["function_name"] or words[:1] == ["DESC"]
    nulls_first = words[1:2] == [
        "NULLS FIRST"
    ]  # DuckDB's default is NULLS LAST; reverse_sort keeps NULLs where they were
    if words and words[0] not in ("ASC", "DESC") or words[1:] not in ([], ["NULLS FIRST"], ["NULLS LAST"]):
        raise Refused("this sort order", where(node))
    from .aggregates import comparator

    order = comparator([("v", down, nulls_first)]).replace("l.v", "l").replace("r.v", "r")
    return E(f"array_sort({e.text}, (l, r) -> {order})", e.type)


@writer(
    "list_sum",
    "list_avg",
    "array_sum",
    "array_avg",
    "list_aggr",
    "list_aggregate",
    "array_aggr",
    "array_aggregate",
    "array_to_string",
)
def list_aggregate(w: Expressions, arguments: list[Node], node: Node) -> E | None:
    name, e, kind = node["function_name"], w.write(arguments[0]), w.type(node)
    inner = list_of(e, node)
    what = (
        str(w.constant(arguments[1], "the aggregate of list_aggregate()"))
        if "aggr" in name
        else "string_agg"
        if name == "array_to_string"
        else name[-3:]
    )
    kept = f"filter({e.text}, v -> v IS NOT NULL)"
    if what in ("string_agg", "listagg") and inner.letter == "s":
        place = 2 if "aggr" in name else 1
        separator = string(str(w.constant(arguments[place], "a separator"))) if len(arguments) > place else "','"
        joined = f"array_join({kept}, {separator})"
        return E(joined if name == "array_to_string" else f"CASE WHEN size({kept}) > 0 THEN {joined} END", VARCHAR)
    if what == "sum" and inner.letter in "if" and inner.name != "HUGEINT":
        zero = "CAST(NULL AS DECIMAL(38,0))" if inner.letter == "i" else "CAST(NULL AS DOUBLE)"
        step = "CAST(coalesce(s, 0) + v AS DECIMAL(38,0))" if inner.letter == "i" else "coalesce(s, 0D) + v"
        return E(f"CAST(aggregate({kept}, {zero}, (s, v) -> {step}) AS {spark_type(kind)})", kind)
    if what == "avg" and inner.letter in "if":
        return E(
            f"aggregate({kept}, named_struct('s', 0D, 'n', 0), (c, v) -> named_struct('s', c.s + v, 'n', c.n + 1), c "
            f"-> try_divide(c.s, CAST(c.n AS DOUBLE)))",
            DOUBLE,
        )
    if what in ("min", "max") and inner.letter in PLAIN:
        return E(f"array_{what}({e.text})", inner)
    if what == "count":
        return E(f"CAST(size({kept}) AS BIGINT)", BIGINT)
    raise Refused(f"{name}({e.type}, '{what}')", where(node))


@writer("list_transform", "list_apply", "array_transform", "array_apply", "apply")
def list_transform(w: Expressions, arguments: list[Node], node: Node) -> E | None:
    e = w.write(arguments[0])
    inner = list_of(e, node)
    head, body = w.lambda_(arguments[1], arguments[0], [inner, BIGINT])
    return E(f"transform({e.text}, {_one_based(head, body.text)})", Type("LIST", (body.type,)))


@writer("list_filter", "array_filter", "filter")
def list_filter(w: Expressions, arguments: list[Node], node: Node) -> E | None:
    e = w.write(arguments[0])
    head, body = w.lambda_(arguments[1], arguments[0], [list_of(e, node), BIGINT])
    return E(f"filter({e.text}, {_one_based(head, w.cast(body, BOOLEAN, node).text)})", e.type)


def _one_based(head: str, body: str) -> str:
    """DuckDB counts list positions from 1, Spark's lambdas from 0."""
    if not head.startswith("("):
        return head + body
    index = head[1 : head.index(")")].split(", ")[1]
    import re

    return head + re.sub(rf"\b{index}\b", f"CAST({index} + 1 AS BIGINT)", body)


@writer("map")
def map_(w: Expressions, arguments: list[Node], node: Node) -> E | None:
    if not arguments:
        return E("map()", w.type(node))
    kind = w.type(node)
    keys, values = (w.cast(w.write(a), Type("LIST", (k,)), a).text for a, k in zip(arguments, kind.args, strict=True))
    return E(f"map_from_arrays({keys}, {values})", kind)


@writer("map_from_entries")
def map_from_entries(w: Expressions, arguments: list[Node], node: Node) -> E | None:
    e, kind = w.write(arguments[0]), w.type(node)
    inner = list_of(e, node)
    if inner.name != "STRUCT" or len(inner.args) != 2 or inner.args != kind.args:
        raise Refused(f"map_from_entries({e.type})", where(node))
    return E(f"map_from_entries({e.text})", kind)


@writer("element_at", "map_extract")
def element_at(w: Expressions, arguments: list[Node], node: Node) -> E | None:
    e, kind = w.write(arguments[0]), w.type(node)
    if e.type.name != "MAP":
        raise Refused(f"element_at({e.type})", where(node))
    key = element(w, e.type.args[0], arguments[1])
    body = (
        f"CASE WHEN map_contains_key(em, {key}) THEN array(em[{key}]) ELSE CAST(array() AS "
        f"{spark_type(Type('LIST', (e.type.args[1],)))}) END"
    )
    return E(bound(e.text, "em", f"CASE WHEN em IS NOT NULL THEN {body} END"), kind)


def series(w: Expressions, name: str, arguments: list[Node], node: Node) -> tuple[str, Type]:
    """range() ends before its end, generate_series() with it."""
    found = [w.write(a) for a in arguments]
    if all(e.type.letter == "i" for e in found):
        if len(found) == 1:
            found = [E("0", found[0].type), found[0]]
        step = w.constant(arguments[2], f"{name}() with a step") if len(arguments) > 2 else 1
        if not step:
            raise Refused(f"{name}() with the step 0", where(node))
        start, end = (f"CAST({e.text} AS BIGINT)" for e in found[:2])
        end = f"({end} - {1 if step > 0 else -1})" if name == "range" else end
        test = ">=" if step > 0 else "<="
        return (
            f"CASE WHEN {end} {test} {start} THEN sequence({start}, {end}, {step}L) WHEN {end} IS NOT NULL AND "
            f"{start} IS NOT NULL THEN CAST(array() AS ARRAY<BIGINT>) END",
            BIGINT,
        )
    if (
        len(found) == 3
        and found[0].type.letter in "DT"
        and found[1].type.letter in "DT"
        and len(found[2].interval) == 1
        and name == "generate_series"
    ):
        unit, count = found[2].interval[0]
        if not count.isdigit():
            raise Refused(f"{name}() with a step that is not a constant", where(node))
        number = int(count)
        step = f"INTERVAL '{number}' {unit}" if unit != "MICROSECOND" else f"INTERVAL '{number / 1e6:.6f}' SECOND"
        if number <= 0 or unit == "MONTH":
            raise Refused(f"{name}() with months or backwards", where(node))
        start, end = (w.cast(e, TIMESTAMP, node).text for e in found[:2])
        return (
            f"CASE WHEN {end} >= {start} THEN sequence({start}, {end}, {step}) WHEN {end} IS NOT NULL AND {start} IS "
            f"NOT NULL THEN CAST(array() AS ARRAY<TIMESTAMP_NTZ>) END",
            TIMESTAMP,
        )
    raise Refused(f"{name}({', '.join(str(e.type) for e in found)})", where(node))


@writer("range", "generate_series")
def series_list(w: Expressions, arguments: list[Node], node: Node) -> E | None:
    text, kind = series(w, node["function_name"], arguments, node)
    return E(text, Type("LIST", (kind,)))


__all__ = ["NULL"]
