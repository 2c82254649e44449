"""Staging on real Delta tables: files, their order and sizes, what waits, what is carried."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from staged import Lake, column, lines, rows_of, waiting

from runtime.errors import HistoryGone
from runtime.staging import states
from runtime.staging.chunks import WaitingChunk, read_chunk
from runtime.staging.units import unit_starts
from runtime.staging.waiting import needs_stage

pytestmark = pytest.mark.spark


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
