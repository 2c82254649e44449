"""Spark SQL text of literals, and of the texts DuckDB makes of numbers, moments and JSON."""

from __future__ import annotations

import datetime as dt
import json
import math
import re
import uuid
from decimal import Decimal
from typing import Any

from .model import Refused
from .types import Type, name_quoted, spark_type

BRACE = {"{": "\\u007b", "}": "\\u007d"}


def string(text: str) -> str:
    """A Spark string literal. Braces are escapes so that templates may hold it."""
    out = text.replace("\\", "\\\\").replace("'", "\\'").replace("{", BRACE["{"]).replace("}", BRACE["}"])
    return "'" + out.replace("\0", "\\0") + "'"


def fill(template: str, *texts: str) -> str:
    """A template with {0}, {1}… replaced."""
    return re.sub(r"\{(\d)\}", lambda m: texts[int(m[1])], template)  # one digit: \x{10597} is a letter


def literal(value: Any, kind: Type) -> str:
    """A constant that DuckDB computed, as Spark text of the type that `kind` has in Spark."""
    spark = spark_type(kind)
    if value is None:
        return f"CAST(NULL AS {spark})"
    if kind.letter == "i":
        if kind.name == "INTEGER":
            return str(value) if value != -(2**31) else "CAST(-2147483648 AS INT)"
        if kind.name == "BIGINT" and value != -(2**63):
            return f"{value}L"
        return f"CAST({string(str(value))} AS {spark})"
    if kind.name == "DECIMAL":
        return f"CAST({string(format(value, 'f') if isinstance(value, Decimal) else str(value))} AS {spark})"
    if kind.name == "DOUBLE":
        if math.isnan(value) or math.isinf(value):
            return f"CAST({string(str(value))} AS DOUBLE)"
        return f"{value!r}D"
    if kind.name in ("VARCHAR", "JSON", "UUID", "ENUM"):
        return string(str(value) if isinstance(value, uuid.UUID | str) else json.dumps(value))
    if kind.name == "BOOLEAN":
        return "true" if value else "false"
    if kind.name in ("DATE", "TIMESTAMP", "TIME") and isinstance(value, dt.date | dt.time):
        return f"CAST('{value}' AS {spark})"
    if kind.name in ("DATE", "TIMESTAMP") and isinstance(value, str):
        return f"CAST({moment(value, kind)} AS {spark})"
    if kind.name == "BLOB":
        return f"X'{bytes(value).hex()}'"
    if kind.name == "LIST":
        items = ", ".join(literal(v, kind.element) for v in value)
        return f"array({items})" if value else f"CAST(array() AS {spark})"
    if kind.name == "STRUCT":
        values = list(value.values()) if isinstance(value, dict) else list(value)
        names = [n or f"col{i}" for i, n in enumerate(kind.fields, 1)]
        return (
            "named_struct("
            + ", ".join(f"{string(n)}, {literal(v, t)}" for n, v, t in zip(names, values, kind.args, strict=True))
            + ")"
        )
    if kind.name == "MAP":
        pairs = ", ".join(f"{literal(k, kind.args[0])}, {literal(v, kind.args[1])}" for k, v in value.items())
        return f"map({pairs})" if value else f"CAST(map() AS {spark})"
    raise Refused(f"a constant of type {kind}")


def moment(text: str, kind: Type) -> str:
    """A day or moment as Spark reads it, from DuckDB's text: Python has no years before 1 and after 9999."""
    if "infinity" in text:
        raise Refused(f"an infinite {kind} (write a day that is far enough, such as DATE '9999-12-31')", hint=False)
    if before := re.match(r"(\d+)(-\d\d-\d\d) \(BC\)(.*)", text):
        year = 1 - int(before[1])
        text = f"{'-' if year < 0 else ''}{-year:04}{before[2]}{before[3]}"
    return string(text + ":00" if kind.name == "TIMESTAMPTZ" else text)


def bound(text: str, variable: str, body: str) -> str:
    """`body` over a variable that holds `text`, which is evaluated once."""
    if re.fullmatch(r"[`\w]+(\.[`\w]+)*", text):
        return "(" + re.sub(rf"\b{variable}\b", lambda _: text, body) + ")"
    return f"element_at(transform(array({text}), {variable} -> {body}), 1)"


# Java's text of a double is not always the shortest that reads back; 16 and 17 digits are tried shorter first
_SHORT = (
    "CASE WHEN abs(dv) < 1e-307D THEN element_at(filter(transform(sequence(0, 16), "
    "dvk -> format_string(concat('%.', dvk, 'e'), dv)), dvt -> CAST(dvt AS DOUBLE) = dv), 1)"
    " WHEN length(regexp_replace(substring_index(CAST(dv AS STRING), 'E', 1), '[-.]', '')) < 16 THEN CAST(dv AS STRING)"
    " WHEN CAST(format_string('%.14e', dv) AS DOUBLE) = dv THEN format_string('%.14e', dv)"
    " WHEN CAST(format_string('%.15e', dv) AS DOUBLE) = dv THEN format_string('%.15e', dv) ELSE CAST(dv AS STRING) END"
)
_PLAIN = (
    f"regexp_replace(regexp_replace(CASE WHEN abs(dv) < 1 THEN CAST(CAST({_SHORT} AS DECIMAL(38,30)) AS STRING)"
    f" ELSE CAST(CAST({_SHORT} AS DECIMAL(38,17)) AS STRING) END, '0+$', ''), '[.]$', '.0')"
)
_MANTISSA = f"regexp_replace(upper({_SHORT}), '[.]?0*E[+]?', 'E')"
_QUICK = (
    "WHEN abs(dv) >= 0.001D AND abs(dv) < 10000000D AND length(CAST(dv AS STRING)) < 16 THEN CAST(dv AS STRING)"
    " WHEN dv = 0 THEN CAST(dv AS STRING)"
)
_SPECIAL = (
    "WHEN dv IS NULL THEN {null} WHEN isnan(dv) THEN {nan} WHEN dv = double('infinity') THEN {inf} WHEN dv = "
    "double('-infinity') THEN {ninf}"
)


def double_text(text: str) -> str:
    """DuckDB's CAST(double AS VARCHAR): 1e+20, 1e-05, 100000000.0."""
    special = _SPECIAL.format(null="CAST(NULL AS STRING)", nan="'nan'", inf="'inf'", ninf="'-inf'")
    exponent = (
        f"regexp_replace(regexp_replace(regexp_replace({_MANTISSA}, 'E(?!-)', 'e+'), 'E-', 'e-'), "
        f"'e([+-])([0-9])$', 'e$10$2')"
    )
    return bound(
        text,
        "dv",
        f"CASE {special} {_QUICK} WHEN abs(dv) >= 1e-4D AND abs(dv) < 1e16D THEN {_PLAIN} ELSE {exponent} END",
    )


def double_json(text: str) -> str:
    """DuckDB's JSON text of a double: 100000000.0, 0.00001, 1e21; never NULL."""
    special = _SPECIAL.format(null="'null'", nan="'null'", inf="'null'", ninf="'null'")
    exponent = f"replace(replace({_MANTISSA}, 'E', 'e'), 'e+', 'e')"
    return bound(
        text,
        "dv",
        f"CASE {special} {_QUICK} WHEN abs(dv) >= 1e-6D AND abs(dv) < 1e21D THEN {_PLAIN} ELSE {exponent} END",
    )


def json_string(text: str) -> str:
    """JSON text of a string; of NULL it is null."""
    return f"regexp_replace(to_json(array({text})), '^\\\\[|\\\\]$', '')"


def json_piece(text: str, kind: Type, depth: int = 0, printed: bool = False) -> str:
    """DuckDB's JSON text of a value; never NULL. `printed` says that JSON inside it needs no printing anew."""
    name, item = kind.name, f"j{depth}"
    if name == "JSON":
        return f"coalesce({text if printed else reprinted(text)}, 'null')"
    if name == "NULL":
        return "'null'"
    if name in ("VARCHAR", "UUID", "ENUM"):
        return json_string(text)
    if kind.letter == "i" or name == "BOOLEAN":
        return f"coalesce(CAST({text} AS STRING), 'null')"
    if name == "DOUBLE":
        return double_json(text)
    if name == "DECIMAL":
        return (
            double_json(decimal_double(text, kind))
            if kind.precision <= 15
            else f"coalesce(CAST({text} AS STRING), 'null')"
        )
    if name in ("DATE", "TIME") or kind.letter == "T":
        return f"coalesce(concat('\"', CAST({text} AS STRING), '\"'), 'null')"
    if name == "TIMESTAMPTZ":
        return f"coalesce(concat('\"', CAST({text} AS STRING), '+00\"'), 'null')"
    if name == "LIST":
        return (
            f"coalesce(concat('[', array_join(transform({text}, {item} -> "
            f"{json_piece(item, kind.element, depth + 1, printed)}), ','), ']'), 'null')"
        )
    if name == "MAP":
        key = (
            json_string(f"{item}.key") if kind.args[0].name == "VARCHAR" else json_string(f"CAST({item}.key AS STRING)")
        )
        if kind.args[0].letter not in "sib":
            raise Refused(f"JSON of a {kind}")
        entry = f"concat({key}, ':', {json_piece(item + '.value', kind.args[1], depth + 1, printed)})"
        entries = f"array_join(transform(map_entries({text}), {item} -> {entry}), ',')"
        return f"coalesce(concat('{BRACE['{']}', {entries}, '{BRACE['}']}'), 'null')"
    if name == "STRUCT" and all(kind.fields):
        body = json_struct(
            [
                (n, json_piece(f"{item}.{name_quoted(n)}", t, depth + 1, printed))
                for n, t in zip(kind.fields, kind.args, strict=True)
            ]
        )
        return bound(text, item, f"CASE WHEN {item} IS NULL THEN 'null' ELSE {body} END")
    raise Refused(f"JSON of a {kind}")


def json_struct(pairs: list[tuple[str, str]]) -> str:
    """A JSON object from constant names and pieces."""
    if not pairs:
        return string("{}")
    out = []
    for i, (name, piece) in enumerate(pairs):
        out += [string(("," if i else "{") + json.dumps(name, ensure_ascii=False) + ":"), piece]
    return "concat(" + ", ".join([*out, string("}")]) + ")"


_JSON_TOKEN = string('"[^"\\\\]*+(?:\\\\.[^"\\\\]*+)*+"|-?[0-9][0-9.]*(?:E-?[0-9]+)?|[^"0-9-]+|-')
_JSON_DOUBLE = string("^-?[0-9]+([.][0-9]+(E-?[0-9]+)?|E-?[0-9]+)$")
_JSON_LONG = string("[0-9]E-?[0-9]|[0-9.]{17}")


def json_values(text: str, path: str = "") -> str:
    """The JSON text at a path, as Spark prints it. Spark gives one match without quotes and two as an array with them:
    so two are made, and half is taken."""
    twice = f"get_json_object(concat('[', jv, ',', jv, ']'), {string('$[*]' + path)})"
    return bound(
        bound(text, "jv", f"CASE WHEN jv IS NOT NULL THEN {twice} END"),
        "jr",
        "substring(jr, 2, CAST((length(jr) - 3) / 2 AS INT))",
    )


def json_doubles(text: str) -> str:
    """JSON text with its doubles as DuckDB prints them: long ones and those with an exponent differ."""
    number = double_json("CAST(jt AS DOUBLE)").replace("dv", "jd")
    tokens = (
        f"transform(regexp_extract_all(jp, {_JSON_TOKEN}, 0), jt -> CASE WHEN jt RLIKE {_JSON_DOUBLE} THEN "
        f"{number} ELSE jt END)"
    )
    return bound(text, "jp", f"CASE WHEN jp RLIKE {_JSON_LONG} THEN array_join({tokens}, '') ELSE jp END")


def reprinted(text: str) -> str:
    """JSON text as DuckDB prints it when it puts it into other JSON: without blanks, 1e3 as 1000.0."""
    return json_doubles(json_values(text))


def decimal_double(text: str, kind: Type) -> str:
    """DuckDB divides the unscaled number by a power of ten, which is not always the nearest double."""
    if kind.precision <= 15:
        return f"CAST({text} AS DOUBLE)"
    return f"(CAST(replace(CAST({text} AS STRING), '.', '') AS DOUBLE) / 1e{kind.scale}D)"
