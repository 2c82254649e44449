"""Payloads made a column at a time say what push() got, to the letter."""

from __future__ import annotations

from datetime import date, datetime, time
from decimal import Decimal

import pyarrow as pa
import pytest

from runtime.custody.masks import Masker
from runtime.model import Column
from runtime.staging.values import to_rows
from runtime.tracking import payloads

NOBODY = Masker((), "ab" * 32)
TEXTS = [
    '},{"id":1,"__ondatra_rowid":',
    "\\",
    'é😀"',
    "",
    None,
    "tab\tnewline\nnul\0bell\x07del\x7f",
    "plain",
    "\u2028",
    ",",
]
NUMBERS = [
    0.0,
    -0.0,
    1.0,
    0.1,
    1e15,
    1e16,
    1e20,
    1.5e-7,
    5e-324,
    1.7976931348623157e308,
    float("nan"),
    float("inf"),
    None,
    123456789.125,
]


@pytest.mark.parametrize(
    ("kind", "lake", "values"),
    [
        ("VARCHAR", pa.string(), TEXTS),
        ("VARCHAR", pa.string(), ["no", "quotes"]),
        ("VARCHAR", pa.string(), [None, None]),
        ("VARCHAR", pa.large_string(), TEXTS),
        ("DOUBLE", pa.float64(), NUMBERS),
        ("FLOAT", pa.float32(), [0.1, 1e20, None]),
        ("BIGINT", pa.int64(), [-(2**63), 2**63 - 1, 0, None]),
        ("UTINYINT", pa.uint8(), [0, 255]),
        ("UBIGINT", pa.decimal128(20), [Decimal(2**64 - 1), None]),
        ("BOOLEAN", pa.bool_(), [True, None, False]),
        ("DECIMAL(10,2)", pa.decimal128(10, 2), [Decimal("1.50"), None]),
        ("DECIMAL(38,2)", pa.decimal128(38, 2), [Decimal("123456789012345678901.25"), Decimal("1.5")]),
        ("DATE", pa.date32(), [date(2026, 1, 15), None]),
        ("TIMESTAMP", pa.timestamp("us"), [datetime(2026, 1, 15, 8, 9, 10, 5), None]),
        ("TIME", pa.string(), ["08:09:10", "08:09:10.500000", None]),
        ("BLOB", pa.binary(), [b'\0"', None]),
        ("VARCHAR[]", pa.list_(pa.string()), [['a"', None], [], None]),
        ("STRUCT(a INTEGER)", pa.struct([("a", pa.int32())]), [{"a": 1}, None]),
        ("TIME", pa.time64("us"), [time(8, 9, 10), None]),
    ],
    ids=lambda v: str(v) if isinstance(v, str | pa.DataType) else "",
)
@pytest.mark.parametrize("last", [True, False], ids=["last", "first"])
def test_a_column_at_a_time_is_as_row_by_row(kind: str, lake: pa.DataType, values: list[object], last: bool) -> None:
    stored = pa.array([None, *values], lake).slice(1)  # as a filtered chunk has it: with an offset
    many = [Column('a "name"', kind, ""), Column("n", "INTEGER", "")]
    columns = tuple(many if last else reversed(many))
    by_name = {'a "name"': stored, "n": pa.array(range(len(values)), pa.int32())}
    table = pa.table(
        {
            **{c.name: by_name[c.name] for c in columns},
            "__ondatra_rowid": by_name["n"],
            "__ondatra_change_type": ["insert"] * len(values),
        }
    )
    rows = to_rows(table, columns)
    made = payloads.column(columns, rows, table)
    assert made is not None and made.to_pylist() == payloads.texts(columns, NOBODY, rows)


def test_many_rows_and_what_no_column_can_say() -> None:
    columns = (Column("t", "VARCHAR", ""),)
    table = pa.table({"t": pa.chunked_array([TEXTS * 1_000, ["end"]], pa.string())})
    rows = to_rows(table, columns)
    made = payloads.column(columns, rows, table)
    assert made is not None and made.to_pylist() == payloads.texts(columns, NOBODY, rows)
    assert payloads.column((), rows, table) is payloads.column((Column("other", "VARCHAR", ""),), rows, table) is None
    huge = (Column("h", "HUGEINT", ""),)
    table = pa.table({"h": pa.array([Decimal(2**100)], pa.decimal128(38))})
    assert payloads.column(huge, to_rows(table, huge), table) is None  # no quick JSON has such integers
