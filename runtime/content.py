"""The content of a row as two independent 64-bit hashes over names and values as the destination would receive them.

Numbers that are equal hash equal whatever their type, -0.0 is 0.0, and neither the order of columns nor that of an
object's fields matters; 1 and '1' differ. Values are hashed as they are typed, without building text where that can
be avoided: xxhash64 chained over the columns in the order of their names, from two different seeds.
"""
from __future__ import annotations

import json
from typing import TYPE_CHECKING

from runtime.lake import H1, H2, quoted

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.types import DataType

#: Grows when rows are hashed otherwise than before.
HASHING = 1
NULL_MARK = "'\\u0000N'"


def with_hashes(frame: DataFrame, names: list[str]) -> DataFrame:
    """The frame with both hashes of the named columns."""
    types = {f.name: f.dataType for f in frame.schema}
    ordered = sorted(names)
    parts = [part for name in ordered for part in hashed(quoted(name), types[name])]
    seed = "'" + json.dumps(ordered).replace("\\", "\\\\").replace("'", "\\'") + "'"
    said = ", ".join([seed, *parts])
    return frame.selectExpr("*", f"xxhash64(1, {said}) AS {H1}", f"xxhash64(2, {said}) AS {H2}")


def hashed(value: str, kind: DataType, depth: int = 0) -> list[str]:
    """Expressions that stand for a value; NULL becomes a mark, since xxhash64 passes over it."""
    from pyspark.sql import types as t

    if isinstance(kind, (t.StringType, t.BinaryType)):
        return [f"coalesce({value}, {NULL_MARK if isinstance(kind, t.StringType) else _binary_mark()})"]
    if isinstance(kind, t.NullType):
        return [NULL_MARK]
    if isinstance(kind, t.BooleanType):
        return [f"CASE {value} WHEN true THEN '\\u0000T' WHEN false THEN '\\u0000F' ELSE {NULL_MARK} END"]
    if isinstance(kind, (t.ByteType, t.ShortType, t.IntegerType, t.LongType)):
        return [f"CAST({value} AS BIGINT)", f"isnull({value})", "0D"]
    if isinstance(kind, (t.FloatType, t.DoubleType)):
        return _double(f"CAST({value} AS DOUBLE)")
    if isinstance(kind, t.DecimalType):
        return _decimal(value, kind.precision, kind.scale)
    if isinstance(kind, t.DateType):
        return [f"coalesce(CAST({value} AS STRING), {NULL_MARK})"]
    if isinstance(kind, (t.TimestampType, t.TimestampNTZType)):
        tag = "z" if isinstance(kind, t.TimestampType) else "n"
        micros = f"unix_micros({value})" if tag == "z" else f"unix_micros(CAST({value} AS TIMESTAMP_LTZ))"
        return [micros, f"CASE WHEN {value} IS NULL THEN {NULL_MARK} ELSE '\\u0000{tag}' END"]
    return [_nested(value, kind, depth)]


def _binary_mark() -> str:
    return "CAST('\\u0000N' AS BINARY)"


def _double(value: str) -> list[str]:
    """Whole numbers as BIGINT, so that they equal integers; NaN and infinities are None at the destination."""
    whole = f"{value} = floor({value}) AND abs({value}) < 9.0E18D"
    finite = f"{value} IS NOT NULL AND NOT isnan({value}) AND abs({value}) < double('Infinity')"
    return [f"CASE WHEN {finite} AND {whole} THEN CAST({value} AS BIGINT) END", f"NOT ({finite})", f"CASE WHEN {finite} AND NOT ({whole}) THEN {value} ELSE 0D END"]


def _decimal(value: str, precision: int, scale: int) -> list[str]:
    if scale == 0 and precision <= 18:
        return [f"CAST({value} AS BIGINT)", f"isnull({value})", "0D"]
    if precision <= 15:
        return _double(f"CAST({value} AS DOUBLE)")
    # up to 15 significant digits it arrives as a number, else as its exact text
    text = f"regexp_replace(CAST(abs({value}) AS STRING), '^0*[.]?0*|[.]', '')"
    digits = f"length(CASE WHEN CAST({value} AS STRING) LIKE '%.%' THEN rtrim('0', {text}) ELSE {text} END)"
    whole = f"{scale} = 0 AND abs({value}) < 9000000000000000000" if scale == 0 else "false"
    short = _double(f"CAST(CASE WHEN {digits} <= 15 THEN {value} END AS DOUBLE)")
    exact = f"CASE WHEN {whole} THEN 'w' WHEN {digits} > 15 THEN CAST({value} AS STRING) ELSE '' END"
    first = f"CASE WHEN {whole} THEN CAST({value} AS BIGINT) ELSE {short[0]} END" if scale == 0 else short[0]
    return [first, f"isnull({value})", short[2], f"nullif(nullif({exact}, ''), 'w')"]


def _nested(value: str, kind: DataType, depth: int) -> str:
    """A nested value as canonical JSON text: fields and keys by name, lists in their order."""
    from pyspark.sql import types as t

    return f"coalesce({_canonical(value, kind, depth)}, {NULL_MARK})" if isinstance(kind, (t.StructType, t.ArrayType, t.MapType)) else (
        f"coalesce(CAST({value} AS STRING), {NULL_MARK})")


def _canonical(value: str, kind: DataType, depth: int) -> str:
    from pyspark.sql import types as t

    if isinstance(kind, t.StructType):
        fields = ", ',', ".join(f"'{_escaped(f.name)}:', {_canonical(f'{value}.{quoted(f.name)}', f.dataType, depth)}"
                                for f in sorted(kind.fields, key=lambda f: f.name))
        return f"CASE WHEN {value} IS NULL THEN 'N' ELSE concat('{{', {fields}, '}}') END"
    item = f"x{depth}"
    if isinstance(kind, t.ArrayType):
        inner = _canonical(item, kind.elementType, depth + 1)
        return f"CASE WHEN {value} IS NULL THEN 'N' ELSE concat('[', array_join(transform({value}, {item} -> {inner}), ','), ']') END"
    if isinstance(kind, t.MapType):
        pair = f"concat({_canonical(f'{item}.key', kind.keyType, depth + 1)}, ':', {_canonical(f'{item}.value', kind.valueType, depth + 1)})"
        return (f"CASE WHEN {value} IS NULL THEN 'N' ELSE concat('{{', array_join(array_sort(transform(map_entries({value}), {item} -> {pair})), ','), '}}') END")
    if isinstance(kind, t.StringType):
        return f"coalesce(to_json(array({value})), 'N')"
    parts = ", ".join(f"coalesce(CAST({p} AS STRING), '')" for p in hashed(value, kind))
    return f"concat_ws('|', {parts})"


def _escaped(name: str) -> str:
    return name.replace("\\", "\\\\").replace("'", "\\'")
