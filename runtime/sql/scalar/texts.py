"""Spark SQL text of literals."""

from __future__ import annotations

import datetime as dt
import json
import math
import re
import uuid
from decimal import Decimal
from typing import Any

from runtime.sql.asking.types import Type, spark_type
from runtime.sql.model import Refused


def string(text: str) -> str:
    """A Spark string literal."""
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'").replace("\0", "\\u0000") + "'"


def literal(value: Any, kind: Type) -> str:
    """A constant that DuckDB computed, as Spark text of the type that `kind` has in Spark."""
    spark = spark_type(kind)
    if value is None:
        return "NULL" if kind.name == "NULL" else f"CAST(NULL AS {spark})"
    if kind.letter == "i":
        if abs(value) >= 10**38:
            raise Refused(f"a constant of more than 38 digits, which no {kind} of Spark's holds,", hint=False)
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
    if kind.name == "TIME":
        raise Refused(f"the time {value}, before which Spark's days end,", hint=False)
    raise Refused(f"a constant of type {kind}")


def moment(text: str, kind: Type) -> str:
    """A day or moment as Spark reads it, from DuckDB's text: Python has no years before 1 and after 9999."""
    if "infinity" in text:
        raise Refused(f"an infinite {kind} (write a day that is far enough, such as DATE '9999-12-31')", hint=False)
    if before := re.match(r"(\d+)(-\d\d-\d\d) \(BC\)(.*)", text):
        year = 1 - int(before[1])
        text = f"{'-' if year < 0 else ''}{-year:04}{before[2]}{before[3]}"
    return string(text + ":00" if kind.name == "TIMESTAMPTZ" else text)
