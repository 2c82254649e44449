r"""The content of a row as two independent 64-bit hashes over names and values as the destination would receive them.

Numbers that are equal hash equal whatever their type, -0.0 is 0.0, and neither the order of columns nor that of an
object's fields matters; 1 and '1' differ. Values are hashed as they are typed, building text only where the destination
receives text: xxhash64 chained over the columns in the order of their names, from two different seeds. It passes over
NULL, so a value may be given as several alternatives of which one is not NULL; one number tells which columns are NULL.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import TYPE_CHECKING

from runtime.columns import H1, H2
from runtime.lake import internals
from runtime.lake.table import literal, quoted

if TYPE_CHECKING:
    from pyspark.sql import Column as SparkColumn
    from pyspark.sql import DataFrame
    from pyspark.sql.types import DataType

#: Grows when rows are hashed otherwise than before, so that every table starts anew.
HASHING = 1
#: Bits of one BIGINT that can tell NULLs.
BITS = 62
#: A DOUBLE holds so many decimal digits exactly; a decimal with more arrives as text.
DIGITS = 15
#: What dates' texts are put together from; other years are left to the cast, which takes many times as long.
FIRST_YEAR = 1900
YEARS = ",".join(f"{year}-" for year in range(FIRST_YEAR, 2100))
DAYS = ",".join(f"{month:02}-{day:02}" for month in range(1, 13) for day in range(1, 32))


def with_hashes(
    frame: DataFrame, names: Sequence[str], integers: frozenset[str] = frozenset(), *, chained: bool = False
) -> DataFrame:
    """The frame with both hashes of the named columns. `integers` are decimals that arrive as whole numbers of any
    length. `chained` makes the same hashes of private parts of Spark's, somewhat quicker."""
    types = {f.name: f.dataType for f in frame.schema}
    ordered = sorted(names)
    # Whatever stands in several places is made once, in a step of its own: a decimal's number, and what both hashes are
    # of. Spark would work it out for each of them, in methods so long that the JVM compiles none.
    numbers = {n: f"__ondatra_number{i}" for i, n in enumerate(ordered) if _is_decimal(types[n]) and n not in integers}
    values = [
        part
        for n in ordered
        for part in alternatives(quoted(n), types[n], integer=n in integers, number=numbers.get(n, ""))
    ]
    values += _nulls(ordered, types)
    made = frame.selectExpr("*", *[f"CAST({quoted(n)} AS DOUBLE) AS {number}" for n, number in numbers.items()])
    parts = {
        text: f"__ondatra_part{i}"
        for i, text in enumerate(dict.fromkeys(values))
        if text[-1] == ")" or " " in text.strip("`")
    }
    columns = [*map(quoted, frame.columns)]
    made = made.selectExpr(*columns, *[f"{text} AS {name}" for text, name in parts.items()])
    said = [parts.get(text, text) for text in values]
    told = json.dumps(ordered)
    if chained:
        return made.select(
            *columns, *[_chained(frame, which, told, said).alias(name) for which, name in ((1, H1), (2, H2))]
        )
    hashed = [f"xxhash64({which}, {literal(told)}, {', '.join(said)}) AS {name}" for which, name in ((1, H1), (2, H2))]
    return made.selectExpr(*columns, *hashed)


def _chained(frame: DataFrame, which: int, names: str, said: Sequence[str]) -> SparkColumn:
    return internals.chained_hash(frame.sparkSession, [which, names], said)


def _is_decimal(kind: DataType) -> bool:
    from pyspark.sql import types as t

    return isinstance(kind, t.DecimalType)


def _nulls(names: Sequence[str], types: dict[str, DataType]) -> list[str]:
    """Which columns are NULL, as numbers."""
    bits = [f"if({is_null(quoted(n), types[n])}, {1 << i % BITS}L, 0L)" for i, n in enumerate(names)]
    return ["(" + " | ".join(bits[i : i + BITS]) + ")" for i in range(0, len(bits), BITS)]


def is_null(value: str, kind: DataType) -> str:
    """NaN and infinities arrive as None."""
    from pyspark.sql import types as t

    if isinstance(kind, (t.FloatType, t.DoubleType)):
        return f"({value} IS NULL OR isnan({value}) OR abs({value}) = double('Infinity'))"
    return f"{value} IS NULL"


def alternatives(value: str, kind: DataType, *, integer: bool = False, number: str = "") -> list[str]:
    """Expressions of which at most one is not NULL (a timestamp adds its mark). `number` is a decimal as DOUBLE, where
    it stands ready."""
    from pyspark.sql import types as t

    if isinstance(kind, (t.StringType, t.BooleanType)):
        return [value]
    if isinstance(kind, t.DateType):
        text = (
            f"concat(get(split('{YEARS}', ','), year({value}) - {FIRST_YEAR}), get(split('{DAYS}', ','), "
            f"month({value}) * 31 + day({value}) - 32))"
        )
        return [f"coalesce({text}, CAST({value} AS STRING))"]
    if isinstance(kind, t.NullType):
        return ["CAST(NULL AS STRING)"]
    if isinstance(kind, t.IntegralType):
        return [f"CAST({value} AS BIGINT)"]
    if isinstance(kind, (t.FloatType, t.DoubleType)):
        return _double(f"CAST({value} AS DOUBLE)")
    if isinstance(kind, t.DecimalType):
        return _integer(value, kind) if integer else _decimal(value, kind, number or f"CAST({value} AS DOUBLE)")
    if isinstance(kind, t.BinaryType):
        return [f"base64({value})"]
    if isinstance(kind, t.TimestampType):
        return [f"unix_micros({value})", f"if({value} IS NULL, NULL, 'z')"]
    if isinstance(kind, t.TimestampNTZType):
        return [f"unix_micros(CAST({value} AS TIMESTAMP_LTZ))", f"if({value} IS NULL, NULL, 'n')"]
    if isinstance(kind, (t.StructType, t.ArrayType, t.MapType)):
        return [f"if({value} IS NULL, NULL, concat('\\u0000', {_canonical(value, kind, 0)}))"]
    return [f"CAST({value} AS STRING)"]


def _double(value: str, finite: str = "") -> list[str]:
    """Whole numbers as BIGINT, so that they equal integers."""
    whole = f"{value} = floor({value}) AND abs({value}) < 9.0E18D"
    finite = finite or f"NOT isnan({value}) AND abs({value}) < double('Infinity')"
    return [
        f"CASE WHEN {whole} THEN CAST({value} AS BIGINT) END",
        f"CASE WHEN {finite} AND NOT ({whole}) THEN {value} END",
    ]


def _decimal(value: str, kind: DataType, number: str) -> list[str]:
    """A number where it has few significant digits, else its exact text."""
    precision, scale = _size(kind)
    if scale == 0 and precision <= DIGITS:
        return [f"CAST({value} AS BIGINT)"]
    if precision <= DIGITS:
        return _double(number, "true")
    # below the bound every number of this scale has few digits, so a DOUBLE tells it from the bound
    bare = f"trim(LEADING '0' FROM replace(CAST(abs({value}) AS STRING), '.', ''))"
    # not OR: Spark would take the text for a part that all three have in common, and make it for every row
    few = f"if(abs({number}) < 1E{DIGITS - scale}D, true, length(trim(TRAILING '0' FROM {bare})) <= {DIGITS})"
    whole = f"{number} = floor({number}) AND abs({number}) < 9.0E18D"
    return [
        f"CASE WHEN {whole} AND {few} THEN CAST({number} AS BIGINT) END",
        f"CASE WHEN NOT ({whole}) AND {few} THEN {number} END",
        f"CASE WHEN NOT {few} THEN CAST({value} AS STRING) END",
    ]


def _integer(value: str, kind: DataType) -> list[str]:
    """A whole number beyond BIGINT is told apart from a text of the same digits."""
    precision, _ = _size(kind)
    if precision <= 18:
        return [f"CAST({value} AS BIGINT)"]
    small = f"abs({value}) < 9000000000000000000BD"
    return [
        f"CASE WHEN {small} THEN CAST({value} AS BIGINT) END",
        f"CASE WHEN NOT ({small}) THEN concat('\\u0000', CAST({value} AS STRING)) END",
    ]


def _size(kind: DataType) -> tuple[int, int]:
    return int(getattr(kind, "precision")), int(getattr(kind, "scale"))  # noqa: B009 - the base type has neither


def _canonical(value: str, kind: DataType, depth: int) -> str:
    """A nested value as one text: fields and keys by name, lists in their order."""
    from pyspark.sql import types as t

    item = f"x{depth}"
    if isinstance(kind, t.StructType):
        fields = [
            f"{literal(json.dumps(f.name) + ':')}, {_canonical(f'{value}.{quoted(f.name)}', f.dataType, depth)}"
            for f in sorted(kind.fields, key=lambda f: f.name)
        ]
        text = "concat('{', " + ", ',', ".join(fields) + ", '}')"
    elif isinstance(kind, t.ArrayType):
        text = (
            f"concat('[', array_join(transform({value}, {item} -> "
            f"{_canonical(item, kind.elementType, depth + 1)}), ','), ']')"
        )
    elif isinstance(kind, t.MapType):
        # a map's keys arrive as text, like the names of a struct
        key = f"to_json(array(CAST({item}.key AS STRING)))"
        pair = (
            f"concat(substr({key}, 2, length({key}) - 2), ':', "
            f"{_canonical(f'{item}.value', kind.valueType, depth + 1)})"
        )
        text = f"concat('{{', array_join(array_sort(transform(map_entries({value}), {item} -> {pair})), ','), '}}')"
    elif isinstance(kind, (t.StringType, t.DateType, t.BinaryType)):
        text = f"to_json(array({alternatives(value, kind)[0]}))"
    else:
        text = "concat_ws('', " + ", ".join(f"CAST({a} AS STRING)" for a in alternatives(value, kind)) + ")"
    return f"if({is_null(value, kind)}, 'N', {text})"
