"""* and COLUMNS(): written out column by column, in DuckDB's order and under DuckDB's names."""

from __future__ import annotations

import copy
from typing import Any

from runtime.sql.asking.gate import conjunction, expression
from runtime.sql.asking.said import GateError
from runtime.sql.asking.scope import Scope, call, column, where
from runtime.sql.asking.tree import UNNESTING, Node, is_called, own, replaced
from runtime.sql.asking.types import Type
from runtime.sql.expressions.sameness import same_form
from runtime.sql.model import Refused

#: `* LIKE '…'` and the like pick columns by their names.
MATCHES = {"~~", "!~~", "~~*", "!~~*", "~~~", "regexp_full_match"}


def outermost(node: Node) -> list[Node]:
    """The stars of an expression; COLUMNS(lambda …) has one within."""
    found = [n for n in own(node) if n.get("class") == "STAR"]
    within = {id(n) for star in found for n in own(list(star.values()))}
    return [star for star in found if id(star) not in within]


def expand(items: list[Node], scope: Scope) -> list[Node]:
    """The select list without stars; every item of a star carries its output name as alias."""
    out: list[Node] = []
    for item in items:
        stars = outermost(item)
        if not stars:
            out += fields(item, scope)
        elif item["class"] == "STAR":
            out += plain(item, scope)
        elif is_called(item, MATCHES) and item["arguments"][0]["expression"]["class"] == "STAR":
            out += by_names(item, scope)
        elif any(n.get("type") == "OPERATOR_UNPACK" for n in own(item)):
            out.append(unpacked(item, scope))
        elif is_called(item, ("unnest",)) or not stars[0].get("columns"):
            raise Refused("* inside an expression", where(item), hint=False)
        else:
            out += applied(item, stars, scope)
    return out


def fields(item: Node, scope: Scope) -> list[Node]:
    """The columns that unnest() makes of a STRUCT; else the item itself."""
    if not is_called(item, UNNESTING):
        return [item]
    inner = item["arguments"][0]["expression"]
    if len(item["arguments"]) == 2:
        option, deep = item["arguments"][1]["expression"], scope.type(inner)
        item = {**item, "arguments": item["arguments"][:1]}
        if is_recursive(option):
            return flattened(*shallow(item, deep, lists_of(deep)), item)
        if option.get("alias") == "max_depth" and (text := (option.get("literal") or {}).get("text", "")).isdigit():
            if (levels := int(text) - lists_of(deep)) > 0:
                return flattened(*shallow(item, deep, lists_of(deep)), item, levels)
            return [{**shallow(item, deep, int(text))[0], "alias": item.get("alias", "")}]
    if len(item["arguments"]) != 1:
        return [item]
    kind = scope.type(inner)
    if kind.name != "STRUCT" or not all(kind.fields):
        return [item]
    return [{**call("struct_extract", inner, text_node(name)), "alias": name} for name in kind.fields]


def is_recursive(option: Node) -> bool:
    return option.get("alias") == "recursive" and (option.get("literal") or {}).get("text") == "true"


def lists_of(kind: Type) -> int:
    """How many lists there are in one another."""
    return 1 + lists_of(kind.element) if kind.name == "LIST" else 0


def shallow(unnest: Node, kind: Type, depth: int) -> tuple[Node, Type]:
    """unnest() of lists in lists as that of one list, so many of them in one."""
    inner = {**unnest["arguments"][0]["expression"], "alias": ""}
    for _ in range(min(depth, lists_of(kind)) - 1):
        inner, kind = call("flatten", inner), kind.element
    return {**unnest, "arguments": [{"name": "", "expression": inner}]}, kind


def flattened(unnest: Node, kind: Type, item: Node, levels: int = 0) -> list[Node]:
    """unnest(list of structs, recursive := true): the fields of the structs, and of those within; so many levels of
    them, or all."""
    whole = kind.element if kind.name == "LIST" else kind
    if whole.name == "LIST" or kind.name not in ("LIST", "STRUCT"):
        raise Refused(f"unnest({kind}, recursive := true)", where(item), hint=False)
    base = unnest if kind.name == "LIST" else unnest["arguments"][0]["expression"]
    return leaves(base, whole, item, levels) if whole.name == "STRUCT" else [{**unnest, "alias": item.get("alias", "")}]


def leaves(base: Node, kind: Type, item: Node, levels: int) -> list[Node]:
    out = []
    for name, of in zip(kind.fields, kind.args, strict=True):
        field = {**call("struct_extract", {**base, "alias": ""}, text_node(name)), "alias": name}
        if of.name == "LIST" and levels != 1:
            raise Refused("unnest(…, recursive := true) of lists within structs", where(item), hint=False)
        out += leaves(field, of, item, levels - 1) if of.name == "STRUCT" and levels != 1 else [field]
    return out


def text_node(text: str) -> Node:
    return expression("'" + text.replace("'", "''") + "'")


def plain(star: Node, scope: Scope) -> list[Node]:
    if star.get("columns") and star.get("expr"):
        return by_names(star, scope)
    if star.get("unpacked") or star.get("expr"):
        raise Refused("this form of *", where(star), hint=False)
    excluded = {(e if isinstance(e, str) else e["column"]).lower() for e in star.get("exclude_list") or []}
    excluded |= {e["column"].lower() for e in star.get("qualified_exclude_list") or []}
    replaced = {r["key"].lower(): r["value"] for r in star.get("replace_list") or []}
    renamed = {
        (r["key"] if isinstance(r["key"], str) else r["key"]["column"]).lower(): r["value"]
        for r in star.get("rename_list") or []
    }
    out = []
    for names, label, _ in all_columns(scope, star.get("relation_name") or ""):
        low = label.lower()
        if low in excluded:
            continue
        item = copy.deepcopy(replaced[low]) if low in replaced else column(*names)
        out.append({**item, "alias": renamed.get(low, label)})
    if not out and star.get("relation_name"):
        return struct_star(star, scope)
    return out


def struct_star(star: Node, scope: Scope) -> list[Node]:
    """`attrs.*` of a STRUCT column."""
    found = scope.resolve([star["relation_name"]])
    if (
        found is None
        or found[1].name != "STRUCT"
        or star.get("exclude_list")
        or star.get("replace_list")
        or star.get("rename_list")
    ):
        raise Refused(f"{star['relation_name']}.*", where(star), hint=False)
    return [{**column(star["relation_name"], name), "alias": name} for name in found[1].fields]


def all_columns(scope: Scope, relation: str = "") -> list[tuple[list[str], str, Type]]:
    """Every column that * means: how to refer to it, its name, its type."""
    out, merged = [], set()
    for source in scope.sources:
        if source.lent or relation and source.alias.lower() != relation.lower():
            continue
        for name, kind in source.columns:
            low = name.lower()
            if not relation and low in scope.merged:
                if low not in merged:
                    merged.add(low)
                    out.append(([name], name, kind))
            elif relation or low not in source.hidden:
                out.append((scope.path(source, name), name, kind))
    return out


def by_names(item: Node, scope: Scope) -> list[Node]:
    """The columns that DuckDB picks for COLUMNS('…'), COLUMNS(lambda …), COLUMNS([…]) or * LIKE '…'."""
    try:
        names = [n for n, _ in scope.probe([{**item, "alias": ""}])]
    except GateError:
        raise Refused("this form of COLUMNS()", where(item), hint=False) from None
    known: dict[str, list[str]] = {}
    for path, label, _ in all_columns(scope):
        if label in known:
            raise Refused(f"COLUMNS() where two tables have a column {label}", where(item), hint=False)
        known[label] = path
    if any(n not in known for n in names):
        raise Refused("this form of COLUMNS()", where(item), hint=False)
    return [{**column(*known[n]), "alias": n} for n in names]


def applied(item: Node, stars: list[Node], scope: Scope) -> list[Node]:
    """min(COLUMNS(*)): the expression once for each column."""
    if len({same_form(s) for s in stars}) != 1:
        raise Refused("several COLUMNS() of other columns in one expression", where(item), hint=False)
    out = []
    star = {**stars[0], "alias": ""}
    for pick in plain(star, scope):

        def one(node: Node, pick: Node = pick) -> Node | None:
            return {**pick, "alias": ""} if node.get("class") == "STAR" else None

        out.append({**replaced(item, one, without="subquery"), "alias": item.get("alias") or pick["alias"]})
    return out


def unpacked(item: Node, scope: Scope) -> Node:
    """coalesce(*COLUMNS(…)): the columns as arguments."""

    def put(value: Any) -> Any:
        if type(value) is list:
            return [made for one in value for made in spread(one)]
        if type(value) is dict:
            return {k: v if k in ("type_expr", "subquery") else put(v) for k, v in value.items()}
        return value

    def spread(one: Any) -> list[Any]:
        inner = one.get("expression", one) if type(one) is dict else {}
        if inner.get("type") != "OPERATOR_UNPACK":
            return [put(one)]
        picks = [{**pick, "alias": ""} for pick in plain({**inner["children"][0], "alias": ""}, scope)]
        return [{**one, "expression": pick} if "expression" in one else pick for pick in picks]

    made: Node = put(item)
    if any(n.get("class") == "STAR" for n in own(made)):
        raise Refused("this form of *COLUMNS()", where(item), hint=False)
    return made


def every(node: Node, scope: Scope) -> Node:
    """A condition with COLUMNS(): that it holds for each of them."""
    stars = outermost(node)
    if not stars:
        return node
    parts = [{**part, "alias": ""} for part in applied(node, stars, scope)]
    return conjunction(parts)
