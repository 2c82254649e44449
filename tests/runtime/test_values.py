"""Rows as push() gets them: contract 2.3, Values, from the Arrow types that the lake's files have."""

from __future__ import annotations

import datetime as dt
import math
import random
import time
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from runtime.model import Column
from runtime.staging.values import to_rows, to_values

HUGE = 10**37

CASES: dict[str, tuple[pa.Array, str, list[Any]]] = {
    "integers": (pa.array([1, None, -128], pa.int8()), "TINYINT", [1, None, -128]),
    "big integers": (pa.array([9007199254740993, None, 2**63 - 1]), "BIGINT", [9007199254740993, None, 2**63 - 1]),
    "hugeints": (
        pa.array([Decimal(HUGE), None, Decimal(-5), Decimal(2**64)], pa.decimal128(38, 0)),
        "HUGEINT",
        [HUGE, None, -5, 2**64],
    ),
    "ubigints": (pa.array([Decimal(2**64 - 1), None], pa.decimal128(20, 0)), "UBIGINT", [2**64 - 1, None]),
    "doubles": (
        pa.array([1.5, 0.1, 2.0, 1e300, math.nan, math.inf, None]),
        "DOUBLE",
        [1.5, 0.1, 2.0, 1e300, None, None, None],
    ),
    "reals": (pa.array([0.1, None, math.inf], pa.float32()), "FLOAT", [0.1, None, None]),
    "unnamed structs": (
        pa.array([[{"col1": 1, "col2": "a"}, {"col1": None, "col2": "b"}], None]),
        "TUPLE(INTEGER, VARCHAR)[]",
        [[[1, "a"], [None, "b"]], None],
    ),
    "small decimals": (
        pa.array(map(Decimal, ("1.10", "-0.01", "1234567890123.45")), pa.decimal128(15, 2)),
        "DECIMAL(15,2)",
        [1.1, -0.01, 1234567890123.45],
    ),
    "decimals by their value": (
        pa.array(
            [*map(Decimal, ("12345678901234567.10", "1.50", "100000000000000000.00")), None], pa.decimal128(20, 2)
        ),
        "DECIMAL(20,2)",
        ["12345678901234567.10", 1.5, 1e17, None],
    ),
    "large decimals": (
        pa.array([Decimal("-12345678901234567890123456789012345.678")], pa.decimal128(38, 3)),
        "DECIMAL(38,3)",
        ["-12345678901234567890123456789012345.678"],
    ),
    "a decimal that only looks like a hugeint": (
        pa.array([Decimal(HUGE), Decimal(HUGE + 1)], pa.decimal128(38, 0)),
        "DECIMAL(38,0)",
        [1e37, str(HUGE + 1)],
    ),
    "tiny decimals": (
        pa.array([Decimal("1E-30"), Decimal("0.123456789012345678")], pa.decimal128(38, 30)),
        "DECIMAL(38,30)",
        [1e-30, "0.123456789012345678000000000000"],
    ),
    "booleans": (pa.array([True, None, False]), "BOOLEAN", [True, None, False]),
    "texts": (pa.array(["é", "", None, '"q"\n']), "VARCHAR", ["é", "", None, '"q"\n']),
    "json": (pa.array(['{"a":1}']), "JSON", ['{"a":1}']),
    "dates": (
        pa.array([dt.date(2026, 1, 15), None, dt.date(1899, 12, 31), dt.date(1, 1, 1)]),
        "DATE",
        ["2026-01-15", None, "1899-12-31", "0001-01-01"],
    ),
    "timestamps": (
        pa.array(
            [
                dt.datetime(2026, 1, 15, 8, 9, 10),
                dt.datetime(2026, 1, 15, 8, 9, 10, 123456),
                dt.datetime(1950, 2, 3),
                None,
                dt.datetime(2026, 1, 15, 8, 9, 10, 500000),
            ],
            pa.timestamp("us"),
        ),
        "TIMESTAMP",
        [
            "2026-01-15T08:09:10",
            "2026-01-15T08:09:10.123456",
            "1950-02-03T00:00:00",
            None,
            "2026-01-15T08:09:10.500000",
        ],
    ),
    "timestamps with a zone": (
        pa.array(
            [dt.datetime(2026, 1, 15, 8, 9, 10), dt.datetime(2026, 1, 15, 8, 9, 10, 1)], pa.timestamp("us", "UTC")
        ),
        "TIMESTAMP WITH TIME ZONE",
        ["2026-01-15T08:09:10Z", "2026-01-15T08:09:10.000001Z"],
    ),
    "timestamps whose zone was lost": (
        pa.array([dt.datetime(2026, 1, 15, 8, 9, 10)], pa.timestamp("ns")),
        "TIMESTAMP WITH TIME ZONE",
        ["2026-01-15T08:09:10Z"],
    ),
    "times": (
        pa.array([dt.time(8, 9, 10), dt.time(23, 59, 59, 500000), None], pa.time64("us")),
        "TIME",
        ["08:09:10", "23:59:59.500000", None],
    ),
    "times in nanoseconds": (pa.array([dt.time(8, 9, 10)], pa.time64("ns")), "TIME", ["08:09:10"]),
    "blobs": (pa.array([b"\x00\xff\xaa", b"", None]), "BLOB", ["AP+q", "", None]),
    "lists": (pa.array([[3, 1], None, [], [None]]), "INTEGER[]", [[3, 1], None, [], [None]]),
    "lists of lists": (pa.array([[[1], [2, 3]], [[]]]), "INTEGER[][]", [[[1], [2, 3]], [[]]]),
    "days of any year": (
        pa.array([2932897, -719162, -719529, None], pa.int32()).cast(pa.date32()),
        "DATE",
        ["10000-01-01", "0001-01-01", "-0001-12-31", None],
    ),
    "moments of any year": (
        pa.array([253402300800000001, -62135596800000000, -62167305600000000, None], pa.int64()).cast(
            pa.timestamp("us")
        ),
        "TIMESTAMP",
        ["10000-01-01T00:00:00.000001", "0001-01-01T00:00:00", "-0001-12-31T00:00:00", None],
    ),
    "lists of dates": (pa.array([[dt.date(2026, 1, 15)]]), "DATE[]", [["2026-01-15"]]),
    "lists of doubles": (pa.array([[math.nan, 1.0]]), "DOUBLE[]", [[None, 1.0]]),
    "structs": (
        pa.array([{"z": 1, "a": dt.date(2026, 1, 15)}, None, {"z": None, "a": None}]),
        "STRUCT(z INTEGER, a DATE)",
        [{"z": 1, "a": "2026-01-15"}, None, {"z": None, "a": None}],
    ),
    "lists of structs of hugeints": (
        pa.array([[{"h": Decimal(HUGE)}]], pa.list_(pa.struct([("h", pa.decimal128(38, 0))]))),
        "STRUCT(h HUGEINT)[]",
        [[{"h": HUGE}]],
    ),
    "maps": (
        pa.array([[("x", 1), ("y", None)], None, []], pa.map_(pa.string(), pa.int64())),
        "MAP(VARCHAR, INTEGER)",
        [{"x": 1, "y": None}, None, {}],
    ),
    "maps with other keys": (
        pa.array([[(1, [2]), (3, None)]], pa.map_(pa.int64(), pa.list_(pa.int64()))),
        "MAP(INTEGER, INTEGER[])",
        [{"1": [2], "3": None}],
    ),
    "nothing": (pa.nulls(2), "NULL", [None, None]),
    "dictionaries": (pa.array(["a", None, "a"]).dictionary_encode(), "ENUM('a')", ["a", None, "a"]),
}


@pytest.mark.parametrize("name", CASES)
def test_each_type_has_one_form(name: str) -> None:
    column, kind, expected = CASES[name]
    assert repr(to_values(column, kind)) == repr(expected)


@pytest.mark.parametrize("name", CASES)
def test_a_slice_and_several_chunks_give_the_same(name: str) -> None:
    column, kind, expected = CASES[name]
    chunks = pa.chunked_array([column, column.slice(1)])
    assert repr(to_values(chunks, kind)) == repr(expected + expected[1:])
    assert repr(to_values(chunks.slice(1, len(column) - 1), kind)) == repr(expected[1:])


def test_decimals_of_up_to_15_digits_are_the_nearest_float_of_their_text() -> None:
    numbers = [Decimal(random.Random(n).randrange(-(10**15) + 1, 10**15)).scaleb(-(n % 16)) for n in range(5000)]
    for scale in range(16):
        some = [n for n in numbers if n.as_tuple().exponent == -scale]
        assert to_values(pa.array(some, pa.decimal128(31, scale)), "DECIMAL") == [float(n) for n in some]


def test_internal_fields_stand_last_and_helper_columns_are_dropped() -> None:
    table = pa.table(
        {
            "b": [1],
            "a": [2],
            "__ondatra_rowid": [7],
            "_content_hash": ["h"],
            "__ondatra_change_type": ["insert"],
            "__ondatra_key": ["k"],
            "__ondatra_record": [True],
        }
    )
    assert [list(row.items()) for row in to_rows(table)] == [
        [("b", 1), ("a", 2), ("_content_hash", "h"), ("__ondatra_rowid", 7), ("__ondatra_change_type", "insert")]
    ]


def test_the_columns_of_the_model_decide_what_a_wide_decimal_is() -> None:
    table = pa.table(
        {
            "h": pa.array([Decimal(HUGE + 1)], pa.decimal128(38, 0)),
            "d": pa.array([Decimal(HUGE + 1)], pa.decimal128(38, 0)),
        }
    )
    assert to_rows(table, [Column("h", "HUGEINT", ""), Column("d", "DECIMAL(38,0)", "")]) == [
        {"h": HUGE + 1, "d": str(HUGE + 1)}
    ]


def test_a_table_without_rows_has_none() -> None:
    assert (
        to_rows(pa.table({name.replace(" ", "_"): column.slice(0, 0) for name, (column, _, _) in CASES.items()})) == []
    )


def test_a_hundred_thousand_rows_take_less_than_two_seconds() -> None:
    n = 100_000
    table = pa.table(
        {
            "i": range(n),
            "f": [i / 7 for i in range(n)],
            "t": [f"text {i}" for i in range(n)],
            "b": [i % 2 == 0 for i in range(n)],
            "d": pa.array(range(n), pa.timestamp("us")),
            "n": pa.array([None if i % 3 else i for i in range(n)]),
        }
    )
    began = time.process_time()
    assert len(to_rows(table)) == n
    assert time.process_time() - began < 2


def test_a_row_has_no_columns_of_the_engine_but_its_id_and_change_type() -> None:
    table = pa.table(
        {
            "id": [1],
            "__ondatra_h1": [5],
            "__ondatra_again": [False],
            "__ondatra_rowid": [7],
            "__ondatra_change_type": ["insert"],
            "__ondatra_key": ["1"],
            "__ondatra_record": [True],
            "_content_hash": ["ab"],
        }
    )
    assert to_rows(table) == [{"id": 1, "_content_hash": "ab", "__ondatra_rowid": 7, "__ondatra_change_type": "insert"}]


def test_a_time_of_day_that_is_stored_as_text_has_six_digits_or_none() -> None:
    assert to_values(pa.chunked_array([["08:09:10", "23:59:59.5", None]]), "TIME") == [
        "08:09:10",
        "23:59:59.500000",
        None,
    ]
