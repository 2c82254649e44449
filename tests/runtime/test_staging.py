"""Staging on real Delta tables: files, their order and sizes, what waits, what is carried."""

from __future__ import annotations

from datetime import UTC, date, datetime, time
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from staged import Lake, lines, rows_of, waiting

from runtime.errors import HistoryGone
from runtime.lake.spark import session
from runtime.staging import states
from runtime.staging.chunks import WaitingChunk, read_chunk, read_column
from runtime.staging.layout import write_plain
from runtime.staging.units import unit_starts
from runtime.staging.waiting import needs_stage

pytestmark = pytest.mark.spark


@pytest.fixture(scope="module")
def spark() -> Any:
    return session()


def column(url: str, name: str) -> list[Any]:
    return read_chunk(url, None).column(name).to_pylist()


# order


def test_all_deletes_of_a_table_come_first_and_rows_go_by_row_id(spark: Any, tmp_path: Path) -> None:
    lake = Lake(spark, tmp_path, "table")
    lake.insert(("a", "1"), ("b", "1"))
    mark = lake.version
    lake.overwrite(("a", "1"), ("b", "2"), ("c", "1"))
    staged = lake.stage(mark)
    assert lines(staged) == [
        ("delete", "a", "1"),
        ("delete", "b", "1"),
        ("insert", "a", "1"),
        ("insert", "b", "2"),
        ("insert", "c", "1"),
    ]
    assert [(c.phase, c.rows, c.records) for c in staged.chunks] == [
        (0, 2, 1),
        (1, 3, 3),
    ]  # a's content is there again: no record
    assert (staged.changed, staged.deleted, staged.carried) == (3, 1, 0)


def test_a_closed_version_stands_before_the_new_one(spark: Any, tmp_path: Path) -> None:
    lake = Lake(spark, tmp_path, "scd2")
    lake.insert(("a", "1"), ("b", "1"))
    mark = lake.version
    lake.change([("a", "2"), ("b", "2")])
    staged = lake.stage(mark)
    (chunk,) = staged.chunks
    assert rows_of(chunk.url) == [
        ("update_preimage", "a", "1"),
        ("update_postimage", "a", "1"),
        ("insert", "a", "2"),
        ("update_preimage", "b", "1"),
        ("update_postimage", "b", "1"),
        ("insert", "b", "2"),
    ]
    assert column(chunk.url, "__ondatra_record") == [False, True, True] * 2
    assert (staged.changed, staged.deleted, chunk.records) == (2, 2, 4)
    assert unit_starts(read_chunk(chunk.url, None), "scd2").tolist() == [0, 3]


def test_an_undelivered_version_that_was_closed_goes_out_closed_and_first(spark: Any, tmp_path: Path) -> None:
    lake = Lake(spark, tmp_path, "scd2")
    lake.insert(("a", "1"), ("b", "1"))
    first, mark = lake.stage(None), lake.version
    lake.change([("a", "2")])
    staged = lake.stage(mark, *waiting(first, states.REFUSED))
    (chunk,) = staged.chunks
    assert rows_of(chunk.url) == [("insert", "a", "1"), ("insert", "a", "2")]
    assert column(chunk.url, "is_current") == [False, True]
    assert {i: p.tolist() for i, p in staged.superseded.items()} == {1: [0]}
    assert (staged.changed, staged.deleted) == (1, 1)


def test_a_tracked_group_goes_deletes_first_and_vanished_groups_before_all(spark: Any, tmp_path: Path) -> None:
    lake = Lake(spark, tmp_path, "tracked")
    lake.insert(("a", "1"), ("a", "2"), ("b", "1"), ("c", "1"))
    mark = lake.version
    lake.change([("a", "1"), ("a", "3"), ("d", "1")], gone=["c"])
    staged = lake.stage(mark)
    assert [(c.phase, rows_of(c.url), column(c.url, "__ondatra_record")) for c in staged.chunks] == [
        (0, [("delete", "c", "1")], [True]),
        (
            1,
            [
                ("delete", "a", "1"),
                ("delete", "a", "2"),
                ("insert", "a", "1"),
                ("insert", "a", "3"),
                ("insert", "d", "1"),
            ],
            [False, False, True, True, True],
        ),
    ]
    assert (staged.changed, staged.deleted, staged.carried) == (3, 1, 0)


# files


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


# what waits


def test_rows_without_a_newer_change_stay_where_they_are(spark: Any, tmp_path: Path) -> None:
    lake = Lake(spark, tmp_path, "merge")
    lake.insert(("a", "1"), ("b", "1"))
    first, mark = lake.stage(None), lake.version
    lake.insert(("c", "1"))
    staged = lake.stage(mark, *waiting(first, states.REFUSED))
    assert (lines(staged), staged.superseded) == ([("insert", "c", "1")], {})


def test_nothing_new_stages_nothing(spark: Any, tmp_path: Path) -> None:
    lake = Lake(spark, tmp_path, "merge")
    lake.insert(("a", "1"))
    first = lake.stage(None)
    staged = lake.stage(lake.version, *waiting(first, states.REFUSED))
    assert (staged.chunks, staged.superseded, staged.changed) == ((), {}, 0)


def test_an_undelivered_row_of_a_table_that_was_replaced_is_not_deleted(spark: Any, tmp_path: Path) -> None:
    lake = Lake(spark, tmp_path, "table")
    lake.insert(("a", "1"), ("b", "1"))
    (chunk,), mark = lake.stage(None).chunks, lake.version
    lake.overwrite(("a", "2"), ("b", "1"))
    staged = lake.stage(mark, WaitingChunk(1, chunk.url, np.array([states.REFUSED, states.DONE], dtype=np.uint8)))
    assert lines(staged) == [("delete", "b", "1"), ("insert", "a", "2"), ("insert", "b", "1")]
    assert {i: p.tolist() for i, p in staged.superseded.items()} == {1: [0]}


def test_changes_of_a_dead_run_are_carried_in_chunks_of_their_own(spark: Any, tmp_path: Path) -> None:
    lake = Lake(spark, tmp_path, "merge")
    lake.insert(("a", "1"), ("b", "1"))
    mark = lake.version
    lake.change([("a", "2"), ("c", "1")])
    own_from = lake.version
    lake.change([("b", "2"), ("c", "2")])
    staged = lake.stage(mark, own_from=own_from)
    assert {c.carried: rows_of(c.url) for c in staged.chunks} == {
        True: [("update_preimage", "a", "1"), ("update_postimage", "a", "2")],
        False: [("update_preimage", "b", "1"), ("update_postimage", "b", "2"), ("insert", "c", "2")],
    }
    assert (staged.changed, staged.deleted, staged.carried) == (2, 0, 1)


def test_old_images_have_the_columns_of_the_new_schema(spark: Any, tmp_path: Path) -> None:
    lake = Lake(spark, tmp_path, "merge")
    lake.insert(("a", "1"), ("b", "1"))
    first, mark = lake.stage(None), lake.version
    lake.change([("b", "2")])
    spark.sql(f"ALTER TABLE {lake.table.sql} DROP COLUMNS (n)")
    spark.sql(f"ALTER TABLE {lake.table.sql} ADD COLUMNS (n INT, extra STRING)")
    spark.sql(f"UPDATE {lake.table.sql} SET n = 7, extra = 'x', __ondatra_h1 = 0 WHERE id = 'a'")
    staged = lake.stage(mark, *waiting(first, states.UNKNOWN), own_from=mark)
    (chunk,) = staged.chunks
    table = read_chunk(chunk.url, None)
    assert table.select(["__ondatra_change_type", "id", "n", "extra"]).to_pylist() == [
        {"__ondatra_change_type": "insert", "id": "a", "n": 7, "extra": "x"},
        {"__ondatra_change_type": "insert", "id": "b", "n": None, "extra": None},
    ]
    assert table.column_names[:3] == ["id", "n", "extra"]


def test_what_waits_behind_a_job_becomes_what_its_outcome_makes_it(spark: Any, tmp_path: Path) -> None:
    lake = Lake(spark, tmp_path, "merge")
    lake.insert(("a", "1"), ("b", "1"))
    first, mark = lake.stage(None), lake.version
    (job,) = waiting(first, states.BLOCKED)
    lake.change([("a", "2"), ("b", "2")])
    second = lake.stage(mark, job)
    assert (lines(second), second.superseded) == ([], {})
    (behind,) = waiting(second, states.UNTRIED, first_id=2)
    assert needs_stage((job, behind))
    mark = lake.version
    lake.change([("a", "3")])
    third = lake.stage(mark, job, behind)  # the job is still open
    (newer,) = waiting(third, states.UNTRIED, first_id=3)
    assert {i: len(p) for i, p in third.superseded.items()} == {2: 4}
    ended = WaitingChunk(1, job.url, np.array([states.REFUSED, states.DONE], dtype=np.uint8))
    staged = lake.stage(lake.version, ended, newer)
    assert lines(staged) == [("insert", "a", "3"), ("update_preimage", "b", "1"), ("update_postimage", "b", "2")]
    assert {i: len(p) for i, p in staged.superseded.items()} == {1: 1, 3: 4}
    assert (staged.changed, staged.carried) == (0, 2)


# everything again


def test_a_full_run_sends_each_current_row_and_the_deletes_that_wait(spark: Any, tmp_path: Path) -> None:
    lake = Lake(spark, tmp_path, "merge")
    lake.insert(("a", "1"), ("b", "1"), ("c", "1"))
    (chunk,), mark = lake.stage(None).chunks, lake.version
    fresh = WaitingChunk(1, chunk.url, np.array([states.REJECTED, states.DONE, states.DONE], dtype=np.uint8))
    lake.change([], gone=["c"])
    deletes, mark = waiting(lake.stage(mark, fresh), states.REJECTED, first_id=2), lake.version
    staged = lake.stage(mark, fresh, *deletes, own_from=mark, full=True)
    assert lines(staged) == [("delete", "c", "1"), ("insert", "a", "1"), ("update_postimage", "b", "1")]
    assert {i: p.tolist() for i, p in staged.superseded.items()} == {1: [0], 2: [0]}
    assert (staged.changed, staged.deleted, staged.carried) == (2, 0, 1)


def test_a_row_sent_again_whose_source_changed_meanwhile_is_an_ordinary_change(spark: Any, tmp_path: Path) -> None:
    lake = Lake(spark, tmp_path, "merge")
    lake.insert(("a", "1"), ("b", "1"))
    mark = lake.version
    again = waiting(lake.stage(mark, full=True), states.REFUSED)
    lake.change([("a", "2")], gone=["b"])
    staged = lake.stage(mark, *again)
    assert lines(staged) == [("delete", "b", "1"), ("update_preimage", "a", "1"), ("update_postimage", "a", "2")]


@pytest.mark.parametrize("kind", ["table", "tracked", "append", "scd2"])
def test_a_full_run_of_other_kinds_sends_current_rows_only(spark: Any, tmp_path: Path, kind: str) -> None:
    lake = Lake(spark, tmp_path, kind)
    lake.insert(("a", "1"), ("b", "1"))
    if kind == "scd2":
        lake.change([("a", "2")])
    what = "update_postimage" if kind == "scd2" else "insert"
    staged = lake.stage(lake.version, full=True)
    assert lines(staged) == [(what, "a", "2" if kind == "scd2" else "1"), (what, "b", "1")]
    assert (staged.changed, staged.deleted) == (2, 0)


def test_a_first_full_run_inserts(spark: Any, tmp_path: Path) -> None:
    lake = Lake(spark, tmp_path, "merge")
    lake.insert(("a", "1"))
    assert lines(lake.stage(None, full=True)) == [("insert", "a", "1")]


# housekeeping


def test_lost_history_is_said(spark: Any, tmp_path: Path) -> None:
    lake = Lake(spark, tmp_path, "merge")
    lake.insert(("a", "1"))
    mark = lake.version
    lake.change([("a", "2")])
    for file in (tmp_path / "table").rglob("cdc-*.parquet"):
        file.unlink()
    with pytest.raises(HistoryGone, match="sync.out since version"):
        lake.stage(mark)


def test_a_chunk_without_rows_has_no_units() -> None:
    assert unit_starts(pa.table({"__ondatra_key": pa.array([], pa.string())}), "merge").tolist() == []


# whatever the model's columns are called


def test_columns_may_be_called_anything_that_is_not_reserved(spark: Any, tmp_path: Path) -> None:
    lake = Lake(spark, tmp_path, "merge")
    spark.sql(f"ALTER TABLE {lake.table.sql} ADD COLUMNS (part STRING, `__first` STRING, `a.b é` STRING, version INT)")
    lake.insert(("a", "1"), ("b", "1"))
    first, mark = lake.stage(None), lake.version
    lake.change([("a", "2")])
    spark.sql(f"UPDATE {lake.table.sql} SET part = 'p', `__first` = 'f', `a.b é` = 'x', version = 3 WHERE id = 'a'")
    staged = lake.stage(mark, *waiting(first, states.REFUSED))
    (row,) = (
        read_chunk(staged.chunks[0].url, None).select(["id", "n", "part", "__first", "a.b é", "version"]).to_pylist()
    )
    assert row == {"id": "a", "n": "2", "part": "p", "__first": "f", "a.b é": "x", "version": 3}


def test_a_full_run_leaves_rows_of_an_open_job_to_the_job(spark: Any, tmp_path: Path) -> None:
    lake = Lake(spark, tmp_path, "merge")
    lake.insert(("a", "1"), ("b", "1"))
    (chunk,), mark = lake.stage(None).chunks, lake.version
    job = WaitingChunk(1, chunk.url, np.array([states.BLOCKED, states.DONE], dtype=np.uint8))
    lake.change([("a", "2")])
    staged = lake.stage(mark, job, full=True)
    assert lines(staged) == [("update_postimage", "b", "1")]
    assert lines(staged, waits=True) == [("update_preimage", "a", "1"), ("update_postimage", "a", "2")]


def test_partitions_are_replaced_deletes_first(spark: Any, tmp_path: Path) -> None:
    lake = Lake(spark, tmp_path, "partition")
    lake.insert(("d1", "a"), ("d1", "b"), ("d2", "c"))
    mark = lake.version
    new = spark.sql(
        "SELECT 'd1' AS id, n, xxhash64('d1', n) AS __ondatra_h1, CAST(hash('d1', n) AS BIGINT) AS __ondatra_h2 FROM "
        "VALUES ('a'), ('B') AS v (n)"
    )
    new.write.format("delta").mode("overwrite").option("replaceWhere", "id = 'd1'").save(lake.table.path)
    staged = lake.stage(mark)
    assert [sorted(rows_of(c.url)) for c in staged.chunks] == [
        [("delete", "d1", "a"), ("delete", "d1", "b")],
        [("insert", "d1", "B"), ("insert", "d1", "a")],
    ]
    assert (staged.changed, staged.deleted) == (2, 0)
