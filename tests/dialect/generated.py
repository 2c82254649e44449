"""Expressions made of DuckDB's own list of functions: each scalar function, operator, cast and aggregate over columns
with the values at the edges of their types."""

from __future__ import annotations

import random
import re
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

import duckdb

from runtime.sql.asking.types import UnknownType, carried, parse, spark_type
from runtime.sql.scalar.functions import REFUSED, VOLATILE

#: A function, and expressions of which one is to be tried.
Choice = tuple[str, list[str]]
#: So many arguments are drawn for a form of a function until DuckDB takes them.
DRAWS = 6

#: Values of each type; every column has each of its own in some row, and NULL in others.
EDGES: dict[str, Sequence[str]] = {
    "BOOLEAN": ["true", "false"],
    "TINYINT": ["0", "-128", "127", "5"],
    "SMALLINT": ["0", "-32768", "32767", "7"],
    "INTEGER": ["0", "-2147483648", "2147483647", "3", "-1"],
    "BIGINT": ["0", "-9223372036854775808", "9223372036854775807", "2", "-3"],
    "HUGEINT": ["0", "-" + "9" * 37, "9" * 37, "4"],
    "UTINYINT": ["0", "255", "9"],
    "USMALLINT": ["0", "65535", "9"],
    "UINTEGER": ["0", "4294967295", "9"],
    "UBIGINT": ["0", "18446744073709551615", "9"],
    "FLOAT": ["0", "'-0.0'", "1.5", "'nan'", "'inf'", "'-inf'", "3.4e38"],
    "DOUBLE": ["0", "'-0.0'", "0.1", "-2.5", "1e300", "5e-324", "'nan'", "'inf'", "'-inf'", "2.675"],
    "DECIMAL(18,3)": ["0", "-0.005", "999999999999999.999", "2.500", "1.005"],
    "DECIMAL(38,9)": ["0", "-0.5", "12345678901234567890.123456789", "2.5"],
    "VARCHAR": [
        "''",
        "'abc'",
        "' 42 '",
        "'ÄÖ ß İ'",
        "'ΟΔΟΣ'",
        "'😀 a\u0301'",
        "'%Y-%m'",
        "'2024-02-29'",
        "'1e5'",
        "'{\"a\": [1, 2]}'",
        "'a*'",
        "'x,y'",
        "'day'",
        "chr(9) || 'z'",
    ],
    "BLOB": ["''", "'\\x00\\xFF'", "'abc'"],
    "DATE": [
        "'1970-01-01'",
        "'0001-01-01'",
        "'1582-10-10'",
        "'9999-12-31'",
        "'12345-06-07'",
        "'2024-02-29'",
        "'infinity'",
    ],
    "TIME": ["'00:00:00'", "'23:59:59.999999'", "'12:34:56'"],
    "TIMESTAMP": [
        "'1970-01-01'",
        "'1969-12-31 23:59:58.5'",
        "'1582-10-10 01:02:03'",
        "'2024-10-27 02:30:00'",
        "'9999-12-31 23:59:59.999999'",
        "'0001-01-01'",
        "'infinity'",
    ],
    "TIMESTAMP WITH TIME ZONE": [
        "'2024-10-27 00:30:00+00'",
        "'1969-12-31 23:59:59.999999+00'",
        "'1500-01-01 00:00+00'",
    ],
    "UUID": ["'00000000-0000-0000-0000-000000000000'", "'ffffffff-ffff-4fff-bfff-ffffffffffff'"],
    "JSON": ['\'{"a": [1, 2.50, null], "b": {"c": "é"}}\'', "'[]'", "'null'", "'\"x\"'", "'1e3'"],
    "VARCHAR[]": ["[]", "['a', NULL, 'b']", "['']"],
    "INTEGER[]": ["[]", "[3, NULL, 1]", "[2, 2]"],
    "DOUBLE[]": ["[]", "['nan'::DOUBLE, 1.5]", "[1, 2]"],
    "STRUCT(a INTEGER, b VARCHAR)": ["{'a': 1, 'b': 'x'}", "{'a': NULL, 'b': ''}"],
    "MAP(VARCHAR, INTEGER)": ["MAP {}", "MAP {'k': 1, 'z': NULL}"],
}
ROWS = 14
#: What a parameter of a function may be given, where its type is none of the above.
STANDS = {
    "ANY": ["INTEGER", "VARCHAR", "DOUBLE", "TIMESTAMP", "INTEGER[]", "DECIMAL(18,3)"],
    "T": ["INTEGER", "VARCHAR"],
    "T[]": ["INTEGER[]", "VARCHAR[]"],
    "ANY[]": ["INTEGER[]", "VARCHAR[]"],
    "DECIMAL": ["DECIMAL(18,3)", "DECIMAL(38,9)"],
    "LIST": ["INTEGER[]"],
    "MAP": ["MAP(VARCHAR, INTEGER)"],
    "STRUCT": ["STRUCT(a INTEGER, b VARCHAR)"],
    "MAP(K, V)": ["MAP(VARCHAR, INTEGER)"],
    "K": ["VARCHAR"],
    "V": ["INTEGER"],
    "FLOAT[]": ["DOUBLE[]"],
    "BIGINT[]": ["INTEGER[]"],
}
#: Arguments that have to be constant, or are best small.
CONSTANT = {"BIGINT": "2", "INTEGER": "2", "INTERVAL": "INTERVAL 1 DAY", "UBIGINT": "2"}
#: Functions that make as much as a number says: no edge of a number is for them.
LARGE = {
    *("array_resize", "bar", "bitstring", "equi_width_bins", "factorial", "generate_series", "list_resize", "lpad"),
    *("range", "repeat", "rpad", "to_base", "set_bit", "format", "printf"),
}
OPERATORS = ("+", "-", "*", "/", "//", "%", "**", "&", "|", "<<", ">>", "||", "^@", "~", "~~", "~~*", "@>", "&&", "^")
COMPARED = ("=", "<>", "<", "<=", "IS DISTINCT FROM")


def name_of(kind: str) -> str:
    return "c_" + "".join(c if c.isalnum() else "_" for c in kind.lower().replace("[]", "_list")).strip("_")


def table(con: duckdb.DuckDBPyConnection, seed: int) -> None:
    """The table `edges` with a column for each type; the groups `k` have NULLs and many values."""
    draw = random.Random(seed)
    con.execute(
        "CREATE OR REPLACE TABLE edges (id INTEGER, k VARCHAR, "
        + ", ".join(f"{name_of(kind)} {kind}" for kind in EDGES)
        + ")"
    )
    columns = {kind: [*values, "NULL"] + draw.choices([*values, "NULL"], k=ROWS) for kind, values in EDGES.items()}
    for row in range(ROWS + 1):
        cells = ", ".join(f"CAST({columns[kind][row]} AS {kind})" for kind in EDGES)
        con.execute(f"INSERT INTO edges VALUES ({row}, {'NULL' if row == 5 else repr('ab'[row % 2])}, {cells})")


def given(kind: str, draw: random.Random, at: int) -> str | None:
    """An argument of that type: a column, or now and then a constant."""
    found = STANDS.get(kind, [kind])
    one = draw.choice(found)
    if at and kind in CONSTANT and draw.random() < 0.7:
        return CONSTANT[kind]
    return name_of(one) if one in EDGES else CONSTANT.get(one)


def is_own(name: str) -> bool:
    """Whether a function is one that a model may ask for."""
    return is_named(name) and name not in REFUSED | VOLATILE


def is_named(name: str) -> bool:
    """Whether it is a function that a person calls, and no operator or inner part of DuckDB."""
    inner = ("__", "icu_", "collate_", "json_copy_", "error", "variant_bytes", "variant_comp", "variant_norm")
    part = name.endswith(("_byte_comparable", "_to_parquet_variant"))
    return name[0].isalpha() and " " not in name and not part and not name.startswith(inner)


def scalars(con: duckdb.DuckDBPyConnection, seed: int) -> Iterator[Choice]:
    """Calls of each form of each scalar function, the first of which DuckDB answers counts."""
    draw = random.Random(seed)
    rows = con.execute(
        "SELECT DISTINCT function_name, parameter_types, varargs FROM duckdb_functions() WHERE function_type IN "
        "('scalar') AND schema_name = 'main' ORDER BY ALL"
    ).fetchall()
    for name, kinds, varargs in rows:
        if not is_own(name) or name in LARGE:
            continue
        calls = []
        for _ in range(DRAWS):
            arguments = [given(kind, draw, at) for at, kind in enumerate([*kinds, *([varargs] if varargs else [])])]
            if None not in arguments:
                calls.append(f"{name}({', '.join(a for a in arguments if a)})")
        yield name, [*calls, *(f"TRY({one})" for one in calls)]


def examples(file: str) -> Iterator[Choice]:
    """Those that no list of types tells how to call, written down."""
    for line in (Path(__file__).parent / file).read_text(encoding="utf-8").splitlines():
        yield re.sub(r"^TRY\(", "", line).partition("(")[0], [line]


def operators(seed: int) -> Iterator[Choice]:
    draw = random.Random(seed)
    kinds = list(EDGES)
    for sign in OPERATORS:
        for a in kinds:
            yield sign, [f"{name_of(a)} {sign} {name_of(draw.choice([a, *kinds]))}"]
    for sign in COMPARED:
        for a in kinds:
            yield sign, [f"{name_of(a)} {sign} {name_of(a)}"]
            yield sign, [f"{name_of(a)} {sign} {name_of(draw.choice(kinds))}"]
    for a in kinds:
        yield "", [f"CASE WHEN c_boolean THEN {name_of(a)} END"]
        yield "", [f"coalesce({name_of(a)}, {name_of(a)})"]
        yield "", [f"{name_of(a)} IS NULL"]
        yield "", [f"[{name_of(a)}]"]


def casts() -> Iterator[Choice]:
    for a in EDGES:
        for b in EDGES:
            yield "", [f"TRY_CAST({name_of(a)} AS {b})"]
        yield "", [f"CAST({name_of(a)} AS VARCHAR)"]
        yield "to_json", [f"to_json({name_of(a)})"]


def aggregates(con: duckdb.DuckDBPyConnection, seed: int) -> Iterator[Choice]:
    draw = random.Random(seed)
    rows = con.execute(
        "SELECT DISTINCT function_name, parameter_types FROM duckdb_functions() WHERE function_type = 'aggregate' "
        "AND schema_name = 'main' ORDER BY ALL"
    ).fetchall()
    for name, kinds in rows:
        arguments = [given(kind, draw, 0) for kind in kinds]
        if None in arguments:
            continue
        inner = ", ".join(a for a in arguments if a)
        yield name, [f"{name}({inner} ORDER BY id)" if arguments else f"{name}()"]
        if len(arguments) == 1:
            yield name, [f"{name}({inner} ORDER BY id) FILTER (WHERE id % 3 <> 0)"]
            if name not in UNORDERED:
                yield name, [f"{name}(DISTINCT {inner})"]


#: Over DISTINCT values their answer depends on an order that nobody gave.
UNORDERED = {
    *("any_value", "arbitrary", "array_agg", "first", "group_concat", "last", "list", "listagg", "mode", "string_agg"),
}


def answers(con: duckdb.DuckDBPyConnection, choices: Iterable[Choice], by: str) -> dict[str, tuple[str, str]]:
    """The functions and DuckDB's types of the expressions, `by` being the rest of the query; those that it does not
    bind, that fail, or whose values no type of Spark's holds, are left out."""
    out: dict[str, tuple[str, str]] = {}
    for name, expressions in choices:
        for expression in (form for one in expressions for form in (one, f"CAST({one} AS VARCHAR)")):
            try:
                kind = con.execute(f"DESCRIBE SELECT {expression} AS x {by}").fetchall()[0][1]
                if not is_column(kind):
                    continue
                held = carried(parse(kind))
                rows = f"FROM (SELECT {expression} AS x {by})"
                con.execute(f"SELECT count(CAST(x AS {held}) IS NULL) {rows}").fetchall()
                if (
                    kind.startswith(("DATE", "TIMESTAMP"))
                    and con.execute(f"SELECT x {rows} WHERE NOT isfinite(x)").fetchall()
                ):  # which ends a run: their text is looked at
                    continue
            except (duckdb.Error, ValueError, OverflowError):
                continue
            out[expression] = name, kind
            break
    return out


def is_column(kind: str) -> bool:
    """Whether a model may have a column of that type; else the text of a value is looked at."""
    try:
        return bool(spark_type(parse(kind))) and "INTERVAL" not in kind and "TUPLE" not in kind
    except UnknownType:
        return False


def compared(kind: str) -> str:
    """The type in which two answers are compared: JSON as the text that it is."""
    return "VARCHAR" if kind == "JSON" else kind
