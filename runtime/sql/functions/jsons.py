"""JSON in and out, to DuckDB's exact text."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from ..casts import E, valid_json
from ..model import Refused
from ..scope import where
from ..texts import bound, json_doubles, json_piece, json_string, json_struct, json_values, string
from ..tree import Node
from ..types import BOOLEAN, JSON, VARCHAR
from .registry import writer

if TYPE_CHECKING:
    from ..expr import Expressions


def piece(w: Expressions, node: Node) -> str:
    """The JSON text of an expression, which is never NULL."""
    if node["class"] == "FUNCTION" and node["function_name"] == "struct_pack" and not w.is_constant(node):
        return json_struct([(a["name"], piece(w, a["expression"])) for a in node["arguments"]])
    if node["class"] == "FUNCTION" and node["function_name"] == "list_value" and not w.is_constant(node):
        kind = w.type(node).element
        items = [item_piece(w.cast(w.write(a["expression"]), kind, a["expression"])) for a in node["arguments"]]
        return "concat('[', " + ", ',', ".join(items) + ", ']')"
    return item_piece(w.write(node))


def item_piece(e: E) -> str:
    return json_piece(e.text, e.type, printed=e.printed)


@writer("json_object")
def json_object(w: Expressions, arguments: list[Node], node: Node) -> E | None:
    parts: list[str] = []
    for i in range(0, len(arguments), 2):
        head = "," if i else "{"
        if w.is_constant(arguments[i]):
            import json

            key = w.constant(arguments[i], "a key")
            if not isinstance(key, str):
                raise Refused("a key of json_object() that is not text", where(node))
            parts.append(string(head + json.dumps(key, ensure_ascii=False) + ":"))
        else:
            key_text = w.write(arguments[i])
            if key_text.type.letter != "s":
                raise Refused(f"a key of json_object() of type {key_text.type}", where(node))
            parts += [string(head), json_string(key_text.text), "':'"]
        parts.append(piece(w, arguments[i + 1]))
    return E("concat(" + ", ".join([*parts, string("}")]) + ")" if parts else string("{}"), JSON, printed=True)


@writer("json_array")
def json_array(w: Expressions, arguments: list[Node], node: Node) -> E | None:
    return E(
        "concat('[', " + ", ',', ".join(piece(w, a) for a in arguments) + ", ']')" if arguments else "'[]'",
        JSON,
        printed=True,
    )


@writer("to_json", "row_to_json", "array_to_json", "json_quote")
def to_json(w: Expressions, arguments: list[Node], node: Node) -> E | None:
    text = piece(w, arguments[0])
    if arguments[0]["class"] == "FUNCTION" and arguments[0]["function_name"] in ("struct_pack", "list_value"):
        return E(text, JSON, printed=True)
    if w.type(arguments[0]) == JSON:
        return E(f"CASE WHEN {w.write(arguments[0]).text} IS NOT NULL THEN {text} END", JSON, printed=True)
    return E(f"nullif({text}, 'null')", JSON, printed=True)


def path(w: Expressions, node: Node) -> str:
    """A constant path as $.a[0]."""
    value = w.constant(node, "a JSON path")
    if isinstance(value, int):
        text = f"$[{value}]"
    elif isinstance(value, str) and value.startswith("$"):
        text = value
    elif isinstance(value, str) and value.startswith("/"):
        raise Refused("a JSON pointer", where(node))
    else:
        text = f"$.{value}" if re.fullmatch(r"\w+", str(value)) else f"$['{value}']"
    if not re.fullmatch(r"\$(\.\w+|\[\d+\]|\['[^'\[\]*.?]+'\]|\.\"[^\"'\[\]*.?]+\")*", text):
        raise Refused(f"the JSON path {text}", where(node))
    return re.sub(r"\.\"([^\"]+)\"", r"['\1']", text)


def extracted(w: Expressions, e: E, at: Node, node: Node, as_text: bool) -> E:
    """The value at a path: as JSON, or as text without quotes."""
    if e.type.letter != "s":
        raise Refused(f"-> of a value of type {e.type}", where(node))
    steps = path(w, at)[1:]
    text = valid_json(e.text, False) if e.type.name == "VARCHAR" else e.text
    found = json_values(text, steps)
    if as_text:
        plain = (
            "CASE WHEN jh = 'null' THEN NULL WHEN startswith(jh, '\"') THEN get_json_object(concat('[', jh, ']'), "
            "'$[0]') ELSE @ END"
        )
        return E(bound(found, "jh", plain.replace("@", json_doubles("jh"))), VARCHAR)
    null = bound(
        text,
        "jv",
        f"CASE WHEN is_variant_null(try_variant_get(try_parse_json(jv), {string('$' + steps)}, 'variant')) THEN "
        f"'null' END",
    )
    return E(
        f"coalesce({json_doubles(found)}, {null})", JSON, printed=True
    )  # a JSON null is a value, a missing key is none


@writer("->", "json_extract")
def json_extract(w: Expressions, arguments: list[Node], node: Node) -> E | None:
    return extracted(w, w.write(arguments[0]), arguments[1], node, as_text=False)


@writer("->>", "json_extract_string", "json_extract_path_text")
def json_extract_string(w: Expressions, arguments: list[Node], node: Node) -> E | None:
    return extracted(w, w.write(arguments[0]), arguments[1], node, as_text=True)


@writer("json_array_length")
def json_array_length(w: Expressions, arguments: list[Node], node: Node) -> E | None:
    e = (
        w.write(arguments[0])
        if len(arguments) == 1
        else extracted(w, w.write(arguments[0]), arguments[1], node, as_text=False)
    )
    return (
        E(
            bound(
                e.text,
                "ja",
                "CASE WHEN ja IS NULL THEN NULL WHEN startswith(ltrim(ja), '[') THEN json_array_length(ja) ELSE 0 END",
            ),
            w.type(node),
        )
        if e.type.letter == "s"
        else None
    )


@writer("json_keys")
def json_keys(w: Expressions, arguments: list[Node], node: Node) -> E | None:
    if len(arguments) != 1:
        raise Refused("json_keys() with a path", where(node))
    e = w.write(arguments[0])
    return E(
        bound(
            e.text,
            "ja",
            "CASE WHEN ja IS NULL THEN NULL ELSE coalesce(json_object_keys(ja), CAST(array() AS ARRAY<STRING>)) END",
        ),
        w.type(node),
    )


@writer("json_type")
def json_type(w: Expressions, arguments: list[Node], node: Node) -> E | None:
    e = (
        w.write(arguments[0])
        if len(arguments) == 1
        else extracted(w, w.write(arguments[0]), arguments[1], node, as_text=False)
    )
    if e.type.letter != "s":
        raise Refused(f"json_type({e.type})", where(node))
    body = (
        "CASE WHEN jt IS NULL THEN NULL WHEN startswith(jt, '[') THEN 'ARRAY' WHEN startswith(jt, '\\u007b') THEN "
        "'OBJECT'"
        " WHEN startswith(jt, '\"') THEN 'VARCHAR'"
        " WHEN jt IN ('true', 'false') THEN 'BOOLEAN' WHEN jt = 'null' THEN 'NULL' WHEN jt RLIKE '^-[0-9]+$' THEN "
        "'BIGINT'"
        " WHEN jt RLIKE '^[0-9]+$' THEN 'UBIGINT'"
        " ELSE 'DOUBLE' END"
    )
    return E(bound(f"ltrim({e.text})", "jt", body), VARCHAR)


@writer("json_valid")
def json_valid(w: Expressions, arguments: list[Node], node: Node) -> E | None:
    e = w.write(arguments[0])
    return (
        E(bound(e.text, "jv", "CASE WHEN jv IS NULL THEN NULL ELSE try_parse_json(jv) IS NOT NULL END"), BOOLEAN)
        if e.type.letter == "s"
        else None
    )


@writer("json_exists")
def json_exists(w: Expressions, arguments: list[Node], node: Node) -> E | None:
    e = w.write(arguments[0])
    found = extracted(w, e, arguments[1], node, as_text=False)
    return E(f"CASE WHEN {e.text} IS NOT NULL THEN ({found.text}) IS NOT NULL END", BOOLEAN)


@writer("json")
def json_(w: Expressions, arguments: list[Node], node: Node) -> E | None:
    raise Refused("json() of a value that is not constant", where(node))


__all__ = ["valid_json"]
