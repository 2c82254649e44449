"""Rows as push() gets them: contract 2.3, Values. Column by column, never cell by cell."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Sequence
from decimal import Decimal
from typing import Any

import numpy as np
import orjson
import pyarrow as pa
from numpy.typing import NDArray

from runtime.columns import CHANGE_TYPE, OURS, ROWID
from runtime.model import Column

#: Decimals with up to this many significant digits are exact as floats.
EXACT_DIGITS = 15
#: The first day of the year 0, as days since 1970.
YEAR_0 = -719_528
MICROS_OF_DAY = 86_400_000_000


def to_rows(table: pa.Table, columns: Sequence[Column] = ()) -> list[dict[str, Any]]:
    """The rows of a chunk: the SELECT's columns, then `_content_hash`, row id and change type."""
    types = {c.name: c.duckdb_type.upper() for c in columns}
    last = [n for n in (ROWID, CHANGE_TYPE) if n in table.column_names]
    names = [n for n in table.column_names if not n.startswith(OURS)] + last  # push functions see no other of ours
    cells = [to_values(table.column(name), types.get(name, "")) for name in names]
    return (
        [dict(zip(names, row, strict=True)) for row in zip(*cells, strict=True)]
        if cells
        else [{} for _ in range(table.num_rows)]
    )


def to_values(column: pa.ChunkedArray | pa.Array, duckdb_type: str = "") -> list[Any]:
    """The values of one column as push() gets them."""
    if duckdb_type == "TIME" and pa.types.is_string(column.type):
        return [_time_text(v) for v in column.to_pylist()]
    if isinstance(column, pa.ChunkedArray):
        if column.num_chunks > 1:
            return [value for chunk in column.chunks for value in to_values(chunk, duckdb_type)]
        column = column.chunk(0) if column.num_chunks else pa.array([], column.type)
    kind = column.type
    if isinstance(kind, pa.DictionaryType):
        return to_values(column.dictionary_decode(), duckdb_type)
    if isinstance(kind, pa.BaseExtensionType):
        return to_values(column.storage, duckdb_type)
    if pa.types.is_null(kind) or column.null_count == len(column):
        return [None] * len(column)
    for fits, convert in _CONVERTERS:
        if fits(kind):
            return convert(column, duckdb_type)
    return [None if v is None else str(v) for v in column.to_pylist()]


def _without_nulls(values: list[Any], column: pa.Array) -> list[Any]:
    """Puts None where the column is null."""
    if column.null_count:
        for i in np.flatnonzero(column.is_null().to_numpy(zero_copy_only=False)):
            values[i] = None
    return values


def _filled(column: pa.Array, value: Any) -> pa.Array:
    return column.fill_null(pa.scalar(value, column.type)) if column.null_count else column


def _integers(column: pa.Array, _: str) -> list[Any]:
    return _without_nulls(_filled(column, 0).to_numpy(zero_copy_only=False).tolist(), column)


def _objects(column: pa.Array, _: str) -> list[Any]:
    """Text and booleans need no change."""
    return _without_nulls(list(column.to_numpy(zero_copy_only=False).tolist()), column)


def _floats(column: pa.Array, _: str) -> list[Any]:
    numbers = column.to_numpy(zero_copy_only=False)
    finite = np.isfinite(numbers)
    values: list[Any]
    if numbers.dtype != np.float64:  # the shortest text of a REAL, not the tail that widening gives it
        values = [float(str(n)) for n in numbers.astype(np.float32)]
    else:
        values = list(numbers.tolist())
    if not finite.all():
        for i in np.flatnonzero(~finite):
            values[i] = None
    return values


def _whole(duckdb_type: str, kind: pa.DataType) -> bool:
    """HUGEINT and UBIGINT lie in the lake as decimals without a fraction."""
    return kind.scale == 0 and (
        ("HUGEINT" in duckdb_type and kind.precision == 38) or ("UBIGINT" in duckdb_type and kind.precision == 20)
    )


def _decimals(column: pa.Array, duckdb_type: str) -> list[Any]:
    kind = column.type
    whole = _whole(duckdb_type, kind)
    if not pa.types.is_decimal128(kind):
        return [None if d is None else _decimal(d, whole) for d in column.to_pylist()]
    words = np.frombuffer(column.buffers()[1], dtype=np.int64).reshape(-1, 2)[
        column.offset : column.offset + len(column)
    ]
    low, high = words[:, 0], words[:, 1]
    limit = 10**18 if whole else 10**EXACT_DIGITS
    small = (high == (low >> 63)) & (low < limit) & (low > -limit)
    # both sides of the division are exact doubles, so the quotient is the nearest double of the decimal
    values = low.tolist() if whole else (low / 10.0**kind.scale).tolist() if kind.scale <= 22 else [0.0] * len(column)
    large = ~small if kind.scale <= 22 or whole else np.ones(len(column), dtype=bool)
    places = np.flatnonzero(large & ~column.is_null().to_numpy(zero_copy_only=False))
    for i, value in zip(places.tolist(), column.take(pa.array(places)).to_pylist() if len(places) else [], strict=True):
        values[i] = _decimal(value, whole)
    return _without_nulls(values, column)


def _decimal(value: Decimal, whole: bool) -> int | float | str:
    if whole:
        return int(value)
    digits = "".join(map(str, value.as_tuple().digits)).strip("0")
    return float(value) if len(digits) <= EXACT_DIGITS else format(value, "f")


def _dates(column: pa.Array, _: str) -> list[Any]:
    days = _filled(column.cast(pa.int32()), 0).to_numpy()
    values = np.datetime_as_string(days.astype("datetime64[D]")).tolist()
    _widen_years(values, days < YEAR_0)
    return _without_nulls(values, column)


def _widen_years(values: list[str], before: NDArray[np.bool_]) -> None:
    """Years before the year 0 have four digits like all others; NumPy writes three."""
    for i in np.flatnonzero(before):
        year, rest = values[i][1:].split("-", 1)
        values[i] = f"-{year:0>4}-{rest}"


def _texts_of_times(micros: np.ndarray[Any, Any], cut: int, end: str) -> list[str]:
    moments = micros.astype("datetime64[us]")
    values = np.datetime_as_string(moments, unit="s").tolist()
    for i in np.flatnonzero(micros % 1_000_000):
        values[i] = str(np.datetime_as_string(moments[i], unit="us"))
    _widen_years(values, micros < YEAR_0 * MICROS_OF_DAY)
    return [v[cut:] + end for v in values] if cut or end else values


def _timestamps(column: pa.Array, duckdb_type: str) -> list[Any]:
    zone = column.type.tz
    # Spark's INT96 has lost its zone on the way; then the model's type knows it
    micros = _filled(column.cast(pa.timestamp("us", zone), safe=False).cast(pa.int64()), 0).to_numpy()
    return _without_nulls(
        _texts_of_times(micros, 0, "Z" if zone or duckdb_type == "TIMESTAMP WITH TIME ZONE" else ""), column
    )


def _times(column: pa.Array, _: str) -> list[Any]:
    micros = _filled(column.cast(pa.time64("us"), safe=False).cast(pa.int64()), 0).to_numpy()
    return _without_nulls(_texts_of_times(micros, len("1970-01-01T"), ""), column)


def _binaries(column: pa.Array, _: str) -> list[Any]:
    return [None if v is None else b64encode(v).decode() for v in column.to_pylist()]


def _lists(column: pa.Array, duckdb_type: str) -> list[Any]:
    if pa.types.is_fixed_size_list(column.type):
        column = column.cast(pa.list_(column.type.value_type))
    offsets = column.offsets.to_numpy()
    first = int(offsets[0])
    items = to_values(column.values.slice(first, int(offsets[-1]) - first), duckdb_type)
    return _without_nulls(
        [items[a - first : b - first] for a, b in zip(offsets[:-1].tolist(), offsets[1:].tolist(), strict=True)], column
    )


def _structs(column: pa.Array, duckdb_type: str) -> list[Any]:
    names = [column.type.field(i).name for i in range(column.type.num_fields)]
    cells = [to_values(column.field(i), duckdb_type) for i in range(len(names))]
    if "TUPLE(" in duckdb_type and names == [f"col{i}" for i in range(1, len(names) + 1)]:
        return _without_nulls([list(row) for row in zip(*cells, strict=True)], column)
    return _without_nulls(
        [dict(zip(names, row, strict=True)) for row in zip(*cells, strict=True)] if cells else [{} for _ in column],
        column,
    )


def _maps(column: pa.Array, duckdb_type: str) -> list[Any]:
    offsets = column.offsets.to_numpy()
    first, length = int(offsets[0]), int(offsets[-1] - offsets[0])
    keys = [_key(k) for k in to_values(column.keys.slice(first, length), duckdb_type)]
    items = to_values(column.items.slice(first, length), duckdb_type)
    return _without_nulls(
        [
            dict(zip(keys[a - first : b - first], items[a - first : b - first], strict=True))
            for a, b in zip(offsets[:-1].tolist(), offsets[1:].tolist(), strict=True)
        ],
        column,
    )


def _time_text(text: str | None) -> str | None:
    """A time of day that the lake holds as text: microseconds only if there are any, then all six digits."""
    if text is None or "." not in text:
        return text
    whole, _, part = text.partition(".")
    return f"{whole}.{part:0<6}"


def _key(value: Any) -> str:
    """Keys of a MAP as text; what is no text as its JSON."""
    return value if isinstance(value, str) else orjson.dumps(value, default=str).decode()


_CONVERTERS = (
    (pa.types.is_integer, _integers),
    (pa.types.is_string, _objects),
    (pa.types.is_large_string, _objects),
    (pa.types.is_boolean, _objects),
    (pa.types.is_floating, _floats),
    (pa.types.is_decimal, _decimals),
    (pa.types.is_date32, _dates),
    (pa.types.is_timestamp, _timestamps),
    (pa.types.is_time, _times),
    (pa.types.is_binary, _binaries),
    (pa.types.is_large_binary, _binaries),
    (pa.types.is_fixed_size_binary, _binaries),
    (pa.types.is_map, _maps),
    (pa.types.is_struct, _structs),
    (pa.types.is_list, _lists),
    (pa.types.is_large_list, _lists),
    (pa.types.is_fixed_size_list, _lists),
)
