"""The text by which rows are told apart, and the rows that have no usable key."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from runtime.lake.table import quoted

if TYPE_CHECKING:
    from pyspark.sql import Column
    from pyspark.sql.types import DataType


def key_text(names: Sequence[str], types: Mapping[str, DataType]) -> Column:
    """One column its text, several a JSON list; null where any of them is."""
    from pyspark.sql import functions as F

    if len(names) == 1:
        return F.expr(_text(names[0], types[names[0]]))
    parts = ", ',', ".join(_json(name, types[name]) for name in names)
    return F.expr(f"concat('[', {parts}, ']')")


def partition_text(names: Sequence[str], types: Mapping[str, DataType]) -> Column:
    """A JSON list in which NULL is a value like any other."""
    from pyspark.sql import functions as F

    parts = ", ',', ".join(f"coalesce({_json(name, types[name])}, 'null')" for name in names)
    return F.expr(f"concat('[', {parts}, ']')")


def _text(name: str, kind: DataType) -> str:
    from pyspark.sql import types as t

    value = quoted(name)
    if isinstance(kind, t.BinaryType):
        return f"base64({value})"
    if isinstance(kind, (t.StructType, t.ArrayType, t.MapType)):
        return f"to_json({value})"
    if isinstance(kind, (t.FloatType, t.DoubleType)):
        # without Spark's E notation where DuckDB writes none
        plain = f"regexp_replace(CAST(CAST({value} AS DECIMAL(38, 18)) AS STRING), '(?<=[.][0-9]{{1,18}}?)0+$', '')"
        return f"CASE WHEN abs({value}) >= 1E7 AND abs({value}) < 1E15 THEN {plain} ELSE CAST({value} AS STRING) END"
    if isinstance(kind, (t.DateType, t.TimestampType, t.TimestampNTZType)):
        return f"trim(LEADING '+' FROM CAST({value} AS STRING))"  # Spark's sign of years after 9999
    return f"CAST({value} AS STRING)"


def _json(name: str, kind: DataType) -> str:
    from pyspark.sql import types as t

    value = quoted(name)
    if isinstance(kind, (t.StructType, t.ArrayType, t.MapType)):
        return f"to_json({value})"
    if isinstance(kind, (t.NumericType, t.BooleanType)):
        return _text(name, kind)
    text = f"to_json(array({_text(name, kind)}))"
    return f"CASE WHEN {value} IS NOT NULL THEN substr({text}, 2, length({text}) - 2) END"
