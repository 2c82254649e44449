"""Payloads: the JSON object of a row's columns, as text. Whole columns at a time where they are plain, so that Python's
lock is hardly held."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from contextlib import suppress
from operator import itemgetter
from typing import Any

import numpy as np
import orjson
import pyarrow as pa
import pyarrow.compute as pc

from runtime.columns import CHANGE_TYPE, HASH, ROWID
from runtime.custody.masks import Masker
from runtime.model import Column

Rows = Sequence[dict[str, Any]]
#: Rows that are put into JSON together: so few that their text stays in the processor's cache.
_TOGETHER = 8_000
#: What push() gets beside the model's columns.
_OURS = (ROWID, CHANGE_TYPE, HASH)


def text(row: dict[str, Any]) -> str:
    """The JSON object of one row's columns."""
    try:
        return orjson.dumps(row).decode()
    except TypeError:  # integers over 64 bits, lone surrogates
        return json.dumps(row, separators=(",", ":"))


def texts(columns: Sequence[Column], masks: Masker, rows: Rows) -> list[str]:
    """The payloads of rows as push() gets them, row by row."""
    names = [c.name for c in columns] or [n for n in (rows[0] if rows else ()) if n not in _OURS]
    picked: Callable[[dict[str, Any]], tuple[Any, ...]] = (
        itemgetter(*names) if len(names) > 1 else lambda row: (row[names[0]],) if names else ()
    )
    if not masks:
        with suppress(KeyError, TypeError):  # the quick way: every row has every column, every value is plain
            return [orjson.dumps(dict(zip(names, picked(row)))).decode() for row in rows]
    plain = ({n: row.get(n) for n in names} for row in rows)
    return [text(masks.row(row)) for row in plain] if masks else [text(row) for row in plain]


def column(columns: Sequence[Column], rows: Rows, source: pa.Table) -> pa.ChunkedArray | None:
    """The unmasked payloads of all rows, which `source` holds as columns; None where they must be made row by row."""
    if not columns or not {c.name for c in columns} <= set(source.column_names):
        return None
    try:
        return pa.chunked_array(
            [_joined(columns, rows, i, source.slice(i, _TOGETHER)) for i in range(0, len(rows), _TOGETHER)], pa.string()
        )
    except (KeyError, TypeError, pa.ArrowException):  # integers over 64 bits, lone surrogates, more than 2 GB of text
        return None


def _joined(columns: Sequence[Column], rows: Rows, first: int, source: pa.Table) -> pa.Array:
    """Those of the rows from `first` on that `source` holds."""
    parts: list[Any] = []
    before = "{"
    for c in columns:
        values, quote = _values(c, rows, first, source.column(c.name))
        parts += [f"{before}{orjson.dumps(c.name).decode()}:{quote}", values]
        before = f"{quote},"
    return pc.binary_join_element_wise(*parts, before[:-1] + "}", "")


def _values(column: Column, rows: Rows, first: int, stored: pa.ChunkedArray) -> tuple[pa.Array, str]:
    """The JSON of a column's values, and the quote that is wanted around each of them."""
    kind = stored.type
    if stored.null_count == len(stored):
        return pa.repeat("null", len(stored)), ""
    if pa.types.is_integer(kind) or pa.types.is_boolean(kind):
        return stored.combine_chunks().cast(pa.string()).fill_null("null"), ""
    if pa.types.is_float64(kind):
        numbers = orjson.dumps(stored.to_numpy(), option=orjson.OPT_SERIALIZE_NUMPY)  # what is no number is null there
        return pc.split_pattern(pa.array([numbers[1:-1].decode()]), ",").values, ""
    if pa.types.is_string(kind) and column.duckdb_type.upper() != "TIME":
        return _quoted(stored.combine_chunks())
    given = [row[column.name] for row in rows[first : first + len(stored)]]
    try:
        return _quoted(pa.array(given, pa.string()))
    except pa.ArrowTypeError:  # something else than text: numbers that lie as decimals, lists, structs
        return pa.array([orjson.dumps(value) for value in given], pa.binary()).cast(pa.string()), ""


def _quoted(given: pa.Array) -> tuple[pa.Array, str]:
    escaped = _escaped(given)
    return (
        (pc.binary_join_element_wise('"', escaped, '"', "").fill_null("null"), "")
        if given.null_count
        else (escaped, '"')
    )


def _escaped(given: pa.Array) -> pa.Array:
    """Texts as they stand between the quotes of JSON; few have a character that is written otherwise there."""
    _, offsets, data = given.buffers()
    ends = np.frombuffer(offsets, np.int32)[given.offset : given.offset + len(given) + 1]
    letters = np.frombuffer(data, np.uint8)[ends[0] : ends[-1]] if data is not None else np.zeros(0, np.uint8)
    odd = np.flatnonzero((letters < 0x20) | (letters == ord('"')) | (letters == ord("\\")))
    if not len(odd):
        return given
    mask = np.zeros(len(given), dtype=bool)
    mask[np.searchsorted(ends, odd + ends[0], side="right") - 1] = True
    mask &= given.is_valid().to_numpy(zero_copy_only=False)
    written = [orjson.dumps(said)[1:-1] for said in given.filter(pa.array(mask)).to_pylist()]
    return pc.replace_with_mask(given, pa.array(mask), pa.array(written, pa.binary()).cast(pa.string()))
