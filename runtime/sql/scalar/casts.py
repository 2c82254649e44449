"""Casts that lose nothing, and comparisons, which Spark makes itself; every other one is DuckDB's."""

from __future__ import annotations

from dataclasses import dataclass

from runtime.sql.asking.types import DIGITS, Type, as_decimal, spark_type


@dataclass(frozen=True)
class E:
    """An expression as Spark text with its DuckDB type."""

    text: str
    type: Type


#: Whether a day or a moment, {0}, is one of the two that DuckDB calls infinite, by the letter of its type.
INFINITE = {"D": "unix_date({0}) IN (2147483647, -2147483647)"} | dict.fromkeys(
    "TZ", "unix_micros(CAST({0} AS TIMESTAMP_LTZ)) IN (9223372036854775807, -9223372036854775807)"
)
#: Whole numbers that Spark counts with.
COUNTED = {"TINYINT", "SMALLINT", "INTEGER", "BIGINT"}
#: DuckDB's comparisons that Spark has.
COMPARE = {
    "COMPARE_EQUAL": "=",
    "COMPARE_NOTEQUAL": "<>",
    "COMPARE_LESSTHAN": "<",
    "COMPARE_GREATERTHAN": ">",
    "COMPARE_LESSTHANOREQUALTO": "<=",
    "COMPARE_GREATERTHANOREQUALTO": ">=",
    "COMPARE_NOT_DISTINCT_FROM": "<=>",
    "COMPARE_DISTINCT_FROM": "<=>",
}
#: Whole numbers by what they hold: each is held by those behind it of its own row.
_HELD = (
    ("TINYINT", "SMALLINT", "INTEGER", "BIGINT", "HUGEINT"),
    ("UTINYINT", "USMALLINT", "UINTEGER", "UBIGINT", "HUGEINT"),
    ("UTINYINT", "SMALLINT", "INTEGER", "BIGINT", "HUGEINT"),
    ("USMALLINT", "INTEGER", "BIGINT", "HUGEINT"),
    ("UINTEGER", "BIGINT", "HUGEINT"),
)


def is_widening(e: Type, to: Type) -> bool:
    """Whether each value of a type is one of the other."""
    if e == to or e.name == "NULL" or (e.name, to.name) in (("JSON", "VARCHAR"), ("UUID", "VARCHAR")):
        return True
    if e.letter == "i" and to.letter == "i":
        return any(e.name in row and to.name in row and row.index(e.name) <= row.index(to.name) for row in _HELD)
    if e.letter == "i" and to.name == "DOUBLE":
        return e.name not in ("HUGEINT", "UBIGINT")
    if e.letter == "i" and to.name == "DECIMAL":
        return DIGITS[e.name] <= to.precision - to.scale
    if e.name == to.name == "DECIMAL":
        return e.scale <= to.scale and e.precision - e.scale <= to.precision - to.scale
    return False


def widened(e: E, to: Type) -> str | None:
    """Spark's text of the value as `to`; None where the cast is not Spark's."""
    if not is_widening(e.type, to):
        return None
    if e.type.name == "NULL" and to.args and e.text != "NULL":  # Spark casts no text to a list, were it NULL
        return f"CASE WHEN {e.text} IS NULL THEN CAST(NULL AS {spark_type(to)}) END"
    return (
        e.text
        if spark_type(e.type) == spark_type(to) and e.type.name != "NULL"
        else f"CAST({e.text} AS {spark_type(to)})"
    )


def common(a: Type, b: Type) -> Type | None:
    """The type in which DuckDB compares two numbers, where Spark can follow; None else."""
    if a == b:
        return a
    if a.letter == "i" and b.letter == "i":
        return Type("HUGEINT") if {"UBIGINT", "HUGEINT"} & {a.name, b.name} else Type("BIGINT")
    if a.is_numeric and b.is_numeric and "FLOAT" not in (a.name, b.name):
        if "DOUBLE" in (a.name, b.name):
            return Type("DOUBLE")
        left, right = as_decimal(a), as_decimal(b)
        whole, scale = max(left.precision - left.scale, right.precision - right.scale), max(left.scale, right.scale)
        return Type("DECIMAL", precision=whole + scale, scale=scale) if whole + scale <= 38 else None
    return None


def compared(operator: str, a: E, b: E) -> str:
    text = f"({a.text} {COMPARE[operator]} {b.text})"
    return f"(NOT {text})" if operator == "COMPARE_DISTINCT_FROM" else text
