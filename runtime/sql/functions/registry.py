"""Looks a function up by its name and the families of its arguments' types, and writes it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from .. import texts
from ..casts import E
from ..model import Refused
from ..scope import where
from ..tree import Node, walk
from ..types import DOUBLE, INTEGER, spark_type

if TYPE_CHECKING:
    from ..expr import Expressions

Writer = Callable[["Expressions", list[Node], Node], E | None]

# signature letters: i integer, n number, f DOUBLE, d DECIMAL, s text, D DATE, T TIMESTAMP, Z TIMESTAMPTZ, M any of
# these three, t TIME, b BOOLEAN, l LIST, m MAP, r STRUCT, x anything; F a number made DOUBLE, I an integer made INT, S
# anything made text; * repeats the last one
RULES: dict[str, list[tuple[str, str]]] = {}
WRITERS: dict[str, Writer] = {}
AGGREGATES: dict[str, Callable[[Expressions, list[E], list[Node], Node], str]] = {}
VOLATILE: set[str] = set()
#: Where a name was registered first: the module of its family.
HOMES: dict[str, str] = {}
UNFOLDABLE = {
    "current_setting",
    "getvariable",
    "current_database",
    "current_schema",
    "current_schemas",
    "current_query",
    "version",
    "unnest",
    "unlist",
    "nextval",
    "currval",
    "error",
    "txid_current",
    "in_search_path",
    "pg_typeof",
    "getenv",
    "add_parquet_key",
    "write_log",
    "hash",
    # what is folded grows with each element
    "array_reduce",
    "list_reduce",
    "reduce",
}
FOLDABLE_MACROS = {
    "round_even",
    "roundbankers",
    "fdiv",
    "fmod",
    "list_append",
    "array_append",
    "list_prepend",
    "array_prepend",
    "nullif",
    "split_part",
    "date_add",
    "list_sum",
    "list_avg",
    "list_min",
    "list_max",
    "list_count",
    "json",
    "list_reverse",
    "array_reverse",
    "array_push_back",
    "md5_number",
}


def rules(family: str, table: dict[str, str | list[tuple[str, str]]]) -> None:
    """Adds functions: name -> [(signature, template)], or 'signature: template' for one."""
    for names, value in table.items():
        entries = [(s.strip(), t.strip()) for s, _, t in [value.partition(":")]] if isinstance(value, str) else value
        for name in names.split():
            RULES.setdefault(name, []).extend(entries)
            HOMES.setdefault(name, family)


def writer(*names: str) -> Callable[[Writer], Writer]:
    """Registers a function that is written by code; None from it means: try the rules."""

    def add(f: Writer) -> Writer:
        WRITERS.update(dict.fromkeys(names, f))
        at_home(names, f)
        return f

    return add


def aggregate_writer(*names: str) -> Callable[[Callable[..., str]], Callable[..., str]]:
    def add(f: Callable[..., str]) -> Callable[..., str]:
        AGGREGATES.update(dict.fromkeys(names, f))
        at_home(names, f)
        return f

    return add


def at_home(names: tuple[str, ...], f: Callable[..., Any]) -> None:
    for name in names:
        HOMES.setdefault(name, f.__module__)


def family(module: str) -> list[str]:
    """The names whose home is this module of the family's own name."""
    return sorted(name for name, home in HOMES.items() if home.endswith("." + module))


def function(w: Expressions, node: Node) -> E:
    """A function call; ORDER BY, DISTINCT and FILTER belong to aggregates only."""
    name = node["function_name"]
    if node.get("schema") or node.get("catalog"):
        raise Refused(f"{node['schema']}.{name}()", where(node))
    arguments = [a["expression"] for a in node["arguments"]]
    if name in AGGREGATES:
        return aggregate(w, name, arguments, node)
    if node.get("distinct") or node.get("filter") or node["order_bys"].get("orders"):
        raise Refused(f"{name}() with DISTINCT, FILTER or ORDER BY", where(node))
    if any(a["name"] for a in node["arguments"]) and name not in ("struct_pack", "struct_insert"):
        raise Refused(f"{name}() with named arguments", where(node))
    return write(w, name, arguments, node)


def write(w: Expressions, name: str, arguments: list[Node], node: Node) -> E:
    if name in WRITERS:
        made = WRITERS[name](w, arguments, node)
        if made is not None:
            return made
    if name not in RULES:
        raise Refused(f"{name}()" if name.replace("_", "").isalnum() else f"the operator {name}", where(node))
    found = [w.write(a) for a in arguments]
    for signature, template in RULES[name]:
        matched = match(w, signature, found, arguments)
        if matched is not None:
            if any(template.count(f"{{{i}}}") > 1 and is_volatile(a) for i, a in enumerate(arguments)):
                raise Refused(f"{name}() over a volatile function", where(node))
            return result(w, texts.fill(template.removeprefix("="), *matched), node, exact=template.startswith("="))
    raise Refused(f"{name}({', '.join(str(e.type) for e in found)})", where(node))


def result(w: Expressions, text: str, node: Node, exact: bool = False) -> E:
    """The text under the type DuckDB gives the node; numbers and moments are cast to it unless they have it."""
    kind = w.type(node)
    return E(text if exact or kind.letter not in "ifdDTZt" else f"CAST({text} AS {spark_type(kind)})", kind)


def is_volatile(node: Node) -> bool:
    return any(n.get("class") == "FUNCTION" and n.get("function_name") in VOLATILE for n in walk(node))


def match(w: Expressions, signature: str, found: list[E], nodes: list[Node]) -> list[str] | None:
    """The arguments' texts if they fit the signature."""
    letters = list(signature)
    if letters and letters[-1] == "*":
        letters = letters[:-1] + letters[-2:-1] * max(len(found) - len(letters) + 1, 0)
    if len(letters) != len(found):
        return None
    out = []
    for letter, e, node in zip(letters, found, nodes, strict=True):
        text = argument(w, letter, e, node)
        if text is None:
            return None
        out.append(text)
    return out


def argument(w: Expressions, letter: str, e: E, node: Node) -> str | None:
    own = e.type.letter
    if own == "?" or own == "v":
        return None
    if letter == "x":
        return e.text
    if letter == "F":
        return w.cast(e, DOUBLE, node).text if own in "ifd" else f"CAST({e.text} AS DOUBLE)" if own == "0" else None
    if letter == "I":
        return e.text if e.type == INTEGER else f"CAST({e.text} AS INT)" if own in "i0" else None
    if own == "0":
        return f"CAST(NULL AS {_NULLS.get(letter, 'STRING')})"
    groups = {"n": "ifd", "M": "DTZ", "s": "s", "i": "i"}
    return e.text if own in groups.get(letter, letter) else None


_NULLS = {
    "s": "STRING",
    "i": "INT",
    "n": "DOUBLE",
    "f": "DOUBLE",
    "D": "DATE",
    "T": "TIMESTAMP_NTZ",
    "Z": "TIMESTAMP_LTZ",
    "M": "TIMESTAMP_NTZ",
    "b": "BOOLEAN",
    "d": "DECIMAL(18,3)",
    "l": "ARRAY<STRING>",
}


def aggregate(w: Expressions, name: str, arguments: list[Node], node: Node, over: str = "") -> E:
    """An aggregate, plain or with OVER. In its text {F} stands for FILTER and OVER, {N} for these with RESPECT NULLS,
    {D} for DISTINCT."""
    if name not in AGGREGATES:
        raise Refused(f"{name}()" + (" OVER" if over else ""), where(node))
    if node.get("export_state"):
        raise Refused("EXPORT_STATE", where(node))
    found = [w.write(a) for a in arguments]
    text = AGGREGATES[name](w, found, arguments, node)
    condition = node.get("filter") or node.get("filter_expr")
    tail = f" FILTER (WHERE {w.condition(condition)})" if condition else ""
    if node.get("distinct") and "{D}" not in text and "{O}" not in text and name not in ("min", "max"):
        raise Refused(f"{name}(DISTINCT …)", where(node))
    ordered = (node.get("order_bys") or {}).get("orders")
    if ordered and "{O}" not in text and not ORDER_FREE.get(name):
        raise Refused(f"{name}(… ORDER BY …)", where(node))
    distinct = "DISTINCT " if node.get("distinct") else ""
    text = (
        text.replace("{F}", tail + over)
        .replace("{N}", f"{tail} RESPECT NULLS{over}")
        .replace("{D}", distinct)
        .replace("{O}", "")
    )
    made = result(w, text, node)
    keeps = (
        name in ("list", "array_agg", "first", "last", "any_value", "arg_max", "max_by", "arg_min", "min_by")
        and found[0].printed
    )
    return replace(made, printed=True) if keeps or name in ("json_group_array", "json_group_object") else made


ORDER_FREE = dict.fromkeys(("sum", "count", "min", "max", "avg", "bool_and", "bool_or", "count_if"), True)


def tried(w: Expressions, inner: Node, node: Node) -> E:
    """TRY(expression): only over what Spark has a forgiving form of."""
    kind = w.type(node)
    if inner["class"] == "CAST":
        return w.cast(w.write(inner["child"]), kind, inner, try_=True)
    if inner["class"] == "FUNCTION" and inner["function_name"] in ("//", "%"):
        a, b = (w.write(x["expression"]) for x in inner["arguments"])
        if a.type.letter == b.type.letter == "i":
            return E(
                f"CAST({'try_mod' if inner['function_name'] == '%' else 'try_divide'}({a.text}, {b.text}) AS "
                f"{spark_type(kind)})"
                if inner["function_name"] == "%"
                else f"CAST(if({b.text} = 0, NULL, {a.text} div {b.text}) AS {spark_type(kind)})",
                kind,
            )
    raise Refused("TRY() of this expression", where(node), hint=False)


__all__ = ["AGGREGATES", "RULES", "WRITERS", "Any", "aggregate", "function", "rules", "write"]
