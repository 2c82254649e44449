"""Which values of which types have the same content."""

from __future__ import annotations

from typing import Any

import pytest

from runtime.lake.hashes import with_hashes


def hashes(spark: Any, *queries: str, integers: frozenset[str] = frozenset()) -> list[tuple[int, int]]:
    found = []
    for query in queries:
        frame = spark.sql(query)
        found += [
            (r[0], r[1])
            for r in with_hashes(frame, frame.columns, integers).select("__ondatra_h1", "__ondatra_h2").collect()
        ]
    return found


SAME = {
    "whole numbers": [
        "CAST(1 AS TINYINT)",
        "1",
        "1L",
        "1.00BD",
        "CAST(1 AS DECIMAL(38, 10))",
        "1.0D",
        "CAST(1 AS FLOAT)",
    ],
    "fractions": ["1.10BD", "1.1D", "CAST(1.1 AS DECIMAL(30, 12))"],
    "zeros": ["0", "0.0D", "-0.0D", "CAST('-0.0' AS FLOAT)", "0.00BD"],
    "many zeros": ["1000000000000000000L", "CAST(1000000000000000000 AS DECIMAL(38, 0))", "1E18D"],
    "nothing": [
        "CAST(NULL AS INT)",
        "CAST(NULL AS STRING)",
        "CAST(NULL AS DATE)",
        "CAST(NULL AS DECIMAL(20, 2))",
        "CAST(NULL AS TIMESTAMP_NTZ)",
        "CAST(NULL AS ARRAY<INT>)",
        "double('NaN')",
        "double('Infinity')",
        "CAST(NULL AS BOOLEAN)",
    ],
    "dates": ["DATE'2026-01-15'", "'2026-01-15'"],
    "long decimals": ["12345678901234567.10BD", "'12345678901234567.10'"],
    "objects": ["named_struct('a', 1, 'b', 'x')", "named_struct('b', 'x', 'a', 1.0D)"],
    "maps": ["map('a', 1, 'b', 2)", "map('b', 2L, 'a', 1L)", "named_struct('b', 2, 'a', 1)"],
    "lists": ["array(1, NULL)", "array(1.0D, NULL)"],
    "times": ["TIMESTAMP_NTZ'2026-01-15 08:09:10'", "CAST('2026-01-15 08:09:10' AS TIMESTAMP_NTZ)"],
    "bytes": ["X'00FFAA'", "'AP+q'"],
}
DIFFERENT = [
    "1",
    "'1'",
    "true",
    "'true'",
    "'A'",
    "'a'",
    "''",
    "NULL",
    "2",
    "1.5D",
    "TIMESTAMP_NTZ'2026-01-15 08:09:10'",
    "TIMESTAMP_LTZ'2026-01-15 08:09:10'",
    "1768464550000000L",
    "array(1, 2)",
    "array(2, 1)",
    "array()",
    "array(array(1), array(2))",
    "array(array(1, 2), array())",
    "'[1,2]'",
    "named_struct('a', 1)",
    "named_struct('a', '1')",
    "named_struct('b', 1)",
    "named_struct('a', NULL)",
    "12345678901234567.10BD",
    "12345678901234567.20BD",
    "123456789012345678L",
    "'123456789012345678 '",
]


@pytest.mark.parametrize("name", SAME)
def test_the_same_content_in_other_types_hashes_equal(spark: Any, name: str) -> None:
    assert len(set(hashes(spark, *[f"SELECT {value} AS v" for value in SAME[name]]))) == 1


def test_a_date_of_any_year_hashes_as_its_text(spark: Any) -> None:
    days = [
        "0001-01-01",
        "0999-12-31",
        "1899-12-31",
        "1900-01-01",
        "1970-01-01",
        "2024-02-29",
        "2099-12-31",
        "2100-01-01",
        "9999-12-31",
    ]
    assert hashes(spark, *[f"SELECT DATE'{day}' AS v" for day in days]) == hashes(
        spark, *[f"SELECT '{day}' AS v" for day in days]
    )


def test_other_content_hashes_otherwise(spark: Any) -> None:
    found = hashes(spark, *[f"SELECT {value} AS v" for value in DIFFERENT])
    assert len(set(found)) == len({h for h, _ in found}) == len({h for _, h in found}) == len(DIFFERENT)


def test_whole_numbers_beyond_bigint_are_no_text(spark: Any) -> None:
    digits = "12345678901234567890"
    number, text = hashes(spark, f"SELECT {digits}BD AS v", f"SELECT '{digits}' AS v", integers=frozenset(["v"]))
    assert number != text
    assert hashes(spark, f"SELECT {digits}BD AS v") == [text]


def test_neither_the_order_nor_the_place_of_columns_can_be_mistaken(spark: Any) -> None:
    same = hashes(spark, "SELECT 1 AS a, 'x' AS b", "SELECT 'x' AS b, 1 AS a")
    others = hashes(
        spark,
        "SELECT 1 AS b, 'x' AS a",
        "SELECT NULL AS a, 1 AS b",
        "SELECT 1 AS a, NULL AS b",
        "SELECT 1 AS a",
        "SELECT 1 AS A",
        "SELECT 'ab' AS a, 'c' AS b",
        "SELECT 'a' AS a, 'bc' AS b",
    )
    assert len(set(same)) == 1
    assert len({*same, *others}) == 8


def test_hashes_stay_what_they_were_so_that_an_upgrade_sends_nothing(spark: Any) -> None:
    (wanted,) = spark.sql(
        """SELECT xxhash64(1, '["a", "b"]', 'x', 5L, 0L), xxhash64(2, '["a", "b"]', 'x', 5L, 0L)"""
    ).collect()
    assert hashes(spark, "SELECT 'x' AS a, 5 AS b") == [tuple(wanted)]
    assert tuple(wanted) == (-3100298264344608917, -2241555948535932755)


def test_any_number_of_columns_can_be_null(spark: Any) -> None:
    wide = [
        ", ".join(f"{'NULL' if i == gone else 1} AS c{i}" for i in range(200)) for gone in (0, 61, 62, 63, 124, 199)
    ]
    assert len(set(hashes(spark, *[f"SELECT {w}" for w in wide]))) == 6


def test_hashes_of_private_parts_are_those_of_the_public_function(spark: Any) -> None:
    values = [value for same in SAME.values() for value in same] + DIFFERENT
    listed = ", ".join(f"{value} AS `c{i} 'ü\"\\\\`" for i, value in enumerate(values))
    frame = spark.sql(f"SELECT {listed}")
    public, private = (with_hashes(frame, frame.columns, chained=chained).tail(1)[0][-2:] for chained in (False, True))
    assert public == private
