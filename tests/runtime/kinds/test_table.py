from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from building import Built

from runtime.errors import HeldError
from runtime.model import MaxDeletes


def test_any_change_deletes_every_old_row_and_inserts_every_new_one(spark: Any, tmp_path: Path) -> None:
    table = Built(spark, tmp_path, "table")
    assert table.build((1, "a"), (2, "b")).action == "built"
    assert table.changes() == [("insert", 1, "a"), ("insert", 2, "b")]
    assert table.build((2, "b"), (1, "a")).action == "unchanged"
    table.build((1, "a"), (2, "B"))
    assert table.changes() == [("delete", 1, "a"), ("delete", 2, "b"), ("insert", 1, "a"), ("insert", 2, "B")]


def test_equal_rows_count(spark: Any, tmp_path: Path) -> None:
    table = Built(spark, tmp_path, "table")
    table.build((1, "a"), (1, "a"))
    table.build((1, "a"), (1, "a"), (1, "a"), (1, "a"))
    assert len(table.changes()) == 6


def test_an_unchanged_table_is_found_without_the_note_of_the_last_build(spark: Any, tmp_path: Path) -> None:
    table = Built(spark, tmp_path, "table")
    table.build((1, "a"), (2, "b"))
    (tmp_path / "table/_ondatra/source.json").unlink()
    built = table.build((2, "b"), (1, "a"))
    assert (built.action, built.version, built.previous_version) == ("unchanged", 0, 0)


def test_an_empty_first_result_makes_an_empty_table(spark: Any, tmp_path: Path) -> None:
    table = Built(spark, tmp_path, "table")
    built = table.build()
    assert (built.action, built.version, table.rows()) == ("built", 0, [])
    assert table.build().action == "unchanged"
    table.build((1, "a"))
    assert table.changes() == [("insert", 1, "a")]


def test_rows_whose_content_is_there_again_are_no_deletes(spark: Any, tmp_path: Path) -> None:
    table = Built(spark, tmp_path, "table", max_deletes=MaxDeletes(1))
    table.build((1, "a"), (2, "b"), (3, "c"))
    table.build((1, "a"), (2, "b"), (4, "d"))
    with pytest.raises(HeldError, match="2 deletes are more than @max_deletes") as held:
        table.build((1, "a"), (5, "e"))
    assert sorted(tuple(row.values()) for row in held.value.rows.select(["id", "n"]).to_pylist()) == [
        (2, "b"),
        (4, "d"),
    ]
    assert table.rows() == [(1, "a"), (2, "b"), (4, "d")]


def test_another_kind_or_full_starts_the_table_anew(spark: Any, tmp_path: Path) -> None:
    Built(spark, tmp_path, "table").build((1, "a"), (2, "b"))
    table = Built(spark, tmp_path, "merge", "id")
    built = table.build((1, "a"))
    assert (built.version, table.changes()) == (0, [("insert", 1, "a")])
    built = table.build((1, "a"), full=True)
    assert (built.version, table.changes()) == (0, [("insert", 1, "a")])


def test_row_ids_and_the_run_id_are_kept(spark: Any, tmp_path: Path) -> None:
    table = Built(spark, tmp_path, "table")
    table.build((1, "a"), (2, "b"))
    first = table.rows("__ondatra_rowid")
    table.build((1, "c"), (2, "d"))
    assert not set(first) & set(table.rows("__ondatra_rowid"))
    assert spark.sql(f"DESCRIBE HISTORY {table.table.sql} LIMIT 1").first()["userMetadata"] == '{"run": 7}'
