"""Chunk files: their size and order, the types of their values, what is read of them."""

from __future__ import annotations

from datetime import UTC, date, datetime, time
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from staged import Lake, column

from runtime.staging.chunks import read_chunk, read_column
from runtime.staging.layout import write_plain
from runtime.staging.units import unit_starts

pytestmark = pytest.mark.spark


def test_a_large_first_run_becomes_files_of_about_the_wanted_size_in_key_order(spark: Any, tmp_path: Path) -> None:
    lake = Lake(spark, tmp_path, "tracked")
    spark.range(70_000).selectExpr(
        "CAST(id DIV 7 AS STRING) AS id",
        "CAST(id % 7 AS STRING) AS n",
        "id AS __ondatra_h1",
        "id AS __ondatra_h2",
        "CAST(id DIV 7 AS STRING) AS __ondatra_key",
    ).createOrReplaceTempView("new_rows")
    lake.insert_view()
    staged = lake.stage(None, chunk_rows=10_000)
    sizes = [c.rows for c in staged.chunks]
    assert (sum(sizes), staged.changed) == (70_000, 70_000)
    assert min(sizes) > 7_000 and max(sizes) < 13_000
    keys = [k for c in staged.chunks for k in column(c.url, "__ondatra_key")]
    assert keys == sorted(keys)
    assert (
        sum(len(unit_starts(read_chunk(c.url, None), "tracked")) for c in staged.chunks) == 10_000
    )  # no group in two files


def test_a_large_append_keeps_the_order_of_row_ids_over_its_files(spark: Any, tmp_path: Path) -> None:
    lake = Lake(spark, tmp_path, "append")
    spark.range(30_000).selectExpr(
        "lpad(id, 6, '0') AS id", "'x' AS n", "id AS __ondatra_h1", "id AS __ondatra_h2"
    ).createOrReplaceTempView("new_rows")
    lake.insert_view()
    staged = lake.stage(None, chunk_rows=10_000)
    ids = [i for c in staged.chunks for i in column(c.url, "__ondatra_rowid")]
    assert len(staged.chunks) == 3 and len(ids) == 30_000 and ids == sorted(ids)


def test_a_large_table_keeps_deletes_and_inserts_in_files_of_their_own(spark: Any, tmp_path: Path) -> None:
    lake = Lake(spark, tmp_path, "table")
    spark.range(20_000).selectExpr(
        "lpad(id, 6, '0') AS id", "'x' AS n", "id AS __ondatra_h1", "id AS __ondatra_h2"
    ).createOrReplaceTempView("new_rows")
    lake.insert_view()
    mark = lake.version
    spark.sql(
        f"INSERT OVERWRITE {lake.table.sql} (id, n, __ondatra_h1, __ondatra_h2) SELECT id, 'y', __ondatra_h1 + 1, "
        f"__ondatra_h2 FROM new_rows"
    )
    staged = lake.stage(mark, chunk_rows=10_000)
    assert [(c.phase, c.change_counts.keys() == {"insert" if c.phase else "delete"}) for c in staged.chunks] == [
        (0, True)
    ] * 2 + [(1, True)] * 2
    for phase in (0, 1):
        ids = [i for c in staged.chunks if c.phase == phase for i in column(c.url, "__ondatra_rowid")]
        assert len(ids) == 20_000 and ids == sorted(ids)
    assert (staged.changed, staged.deleted) == (20_000, 20_000)


def test_types_survive_the_file(spark: Any, tmp_path: Path) -> None:
    lake = Lake(spark, tmp_path, "append")
    spark.sql(f"ALTER TABLE {lake.table.sql} SET TBLPROPERTIES ('delta.feature.timestampNtz' = 'supported')")
    spark.sql(f"""ALTER TABLE {lake.table.sql} ADD COLUMNS (at TIMESTAMP_LTZ, ntz TIMESTAMP_NTZ, day DATE,
                  price DECIMAL(38, 2), tags ARRAY<STRING>,
                  owner STRUCT<name: STRING, age: INT>, `odd name, ünd so` BINARY)""")
    spark.sql(f"""INSERT INTO {lake.table.sql} (id, n, at, ntz, day, price, tags, owner, `odd name, ünd so`)
                  VALUES ('a', 'b',
                  TIMESTAMP_LTZ '2026-01-15 08:09:10.123456Z', TIMESTAMP_NTZ '1500-01-15 08:09:10', DATE '2026-01-15',
                  12345678901234567890.25,
                  array('x', NULL), named_struct('name', 'z', 'age', 3), X'00FF')""")
    (chunk,) = lake.stage(None).chunks
    (row,) = (
        read_chunk(chunk.url, None)
        .select(["at", "ntz", "day", "price", "tags", "owner", "odd name, ünd so"])
        .to_pylist()
    )
    assert row == {
        "at": datetime(2026, 1, 15, 8, 9, 10, 123456, UTC),
        "ntz": datetime(1500, 1, 15, 8, 9, 10),
        "day": date(2026, 1, 15),
        "price": Decimal("12345678901234567890.25"),
        "tags": ["x", None],
        "owner": {"name": "z", "age": 3},
        "odd name, ünd so": b"\x00\xff",
    }


def test_times_survive_the_file(spark: Any, tmp_path: Path) -> None:
    (url,) = write_plain(spark.sql("SELECT TIME '08:09:10.000001' AS t"), tmp_path.as_uri(), 1)
    assert read_chunk(url, None).column("t").to_pylist() == [time(8, 9, 10, 1)]


def test_plain_rows_are_cut_into_files(spark: Any, tmp_path: Path) -> None:
    urls = write_plain(spark.range(2_500), tmp_path.as_uri(), 2_500, chunk_rows=1_000)
    assert len(urls) == 2
    assert sorted(i for url in urls for i in read_column(url, "id").tolist()) == list(range(2_500))


def test_plain_rows_in_an_order_keep_it_over_all_files_however_many_are_equal(spark: Any, tmp_path: Path) -> None:
    rows = spark.range(3_000, numPartitions=3).selectExpr(
        "CASE WHEN id % 3 = 0 THEN NULL ELSE CAST(id % 3 AS STRING) END AS k", "id % 3 AS h", "id"
    )
    urls = write_plain(rows, tmp_path.as_uri(), 3_000, chunk_rows=500, order=("k", "h"))
    tables = [read_chunk(url, None) for url in urls]
    assert 5 <= len(urls) <= 6 and max(t.num_rows for t in tables) < 900 and tables[0].column_names == ["k", "h", "id"]
    assert [k for t in tables for k in t.column("k").to_pylist()] == [None] * 1_000 + ["1"] * 1_000 + ["2"] * 1_000


def test_a_mask_reads_only_its_rows(spark: Any, tmp_path: Path) -> None:
    lake = Lake(spark, tmp_path, "merge")
    lake.insert(("a", "1"), ("b", "1"), ("c", "1"))
    (chunk,) = lake.stage(None).chunks
    assert read_chunk(chunk.url, np.array([True, False, True])).column("id").to_pylist() == ["a", "c"]
