"""Upkeep changes nothing that a table says, and removes nothing that a sync still needs."""

from __future__ import annotations

import datetime as dt
from pathlib import Path
from typing import Any

import pytest
from building import Built

from runtime.lake import upkeep
from runtime.lake.upkeep import keep

NOW = dt.timedelta(0)


def files(table: Built, pattern: str = "**/*.parquet") -> int:
    return len(list(Path(table.table.path).glob(pattern)))


@pytest.fixture
def table(spark: Any, tmp_path: Path) -> Built:
    """Four versions: three inserts and an update."""
    made = Built(spark, tmp_path, "merge", "id")
    for rows in ([(1, "a")], [(1, "a"), (2, "b")], [(1, "a"), (2, "b"), (3, "c")], [(1, "a"), (2, "b"), (3, "C")]):
        made.build(*rows)
    return made


def test_little_files_become_one_and_nothing_seems_changed(table: Built) -> None:
    rows = table.rows("id", "n", "__ondatra_rowid")
    kept = keep(table.spark, table.table, 3, many_files=2)
    assert kept.after > kept.before == 3
    assert table.spark.sql(f"DESCRIBE DETAIL {table.table.sql}").head()["numFiles"] == 1
    assert table.rows("id", "n", "__ondatra_rowid") == rows
    assert table.table.feed(table.spark, 4, kept.after).count() == 0
    built = table.build((1, "a"), (2, "b"), (3, "C"))
    assert (built.action, built.version) == ("unchanged", kept.after)
    table.build((1, "a"), (2, "B"), (3, "C"))
    assert table.changes() == [("update_postimage", 2, "B"), ("update_preimage", 2, "b")]


def test_few_files_are_left_alone(table: Built) -> None:
    assert keep(table.spark, table.table, 3) == upkeep.Kept(3, 3, 0)


def test_only_files_that_no_version_since_the_mark_needs_are_removed(table: Built) -> None:
    before = files(table)
    assert keep(table.spark, table.table, 2, keep_for=NOW).removed == 0
    assert files(table) == before
    assert len(table.table.feed(table.spark, 3, 3).collect()) == 2

    kept = keep(table.spark, table.table, 3, keep_for=NOW)
    assert kept.removed and files(table) < before
    assert table.rows() == [(1, "a"), (2, "b"), (3, "C")]


def test_nothing_is_removed_before_the_first_run_has_read_it(table: Built) -> None:
    assert keep(table.spark, table.table, None, keep_for=NOW).removed is None
    assert sorted(r["_change_type"] for r in table.table.feed(table.spark, 0, 3).collect()) == ["insert"] * 3 + [
        "update_postimage",
        "update_preimage",
    ]
