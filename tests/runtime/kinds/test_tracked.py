from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from building import Built

from runtime.errors import HeldError
from runtime.model import MaxDeletes


def test_a_changed_group_is_replaced_whole_and_a_vanished_one_deleted(spark: Any, tmp_path: Path) -> None:
    table = Built(spark, tmp_path, "tracked", "id")
    table.build((1, "a"), (1, "b"), (2, "c"), (3, "d"))
    built = table.build((1, "a"), (1, "B"), (2, "c"), (4, "e"))
    assert table.changes() == [
        ("delete", 1, "a"),
        ("delete", 1, "b"),
        ("delete", 3, "d"),
        ("insert", 1, "B"),
        ("insert", 1, "a"),
        ("insert", 4, "e"),
    ]
    assert (built.version, built.deletes) == (1, 1)


def test_rows_of_a_group_share_a_hash_that_equal_rows_and_their_order_do_not_disturb(
    spark: Any, tmp_path: Path
) -> None:
    table = Built(spark, tmp_path, "tracked", "id")
    table.build((1, "a"), (1, "a"), (1, "b"), (2, "a"))
    hashes = set(table.rows("id", "_content_hash"))
    assert len(hashes) == 2
    (tmp_path / "table/_ondatra/source.json").unlink()
    assert table.build((2, "a"), (1, "b"), (1, "a"), (1, "a")).action == "unchanged"
    table.build((1, "a"), (1, "b"), (2, "a"))
    assert table.changes() == [
        ("delete", 1, "a"),
        ("delete", 1, "a"),
        ("delete", 1, "b"),
        ("insert", 1, "a"),
        ("insert", 1, "b"),
    ]


def test_rows_without_a_group_are_invalid(spark: Any, tmp_path: Path) -> None:
    table = Built(spark, tmp_path, "tracked", "id")
    table.build((1, "a"), (None, "n"))
    assert (table.rows(), table.invalid()) == ([(1, "a")], [(None, "n", "NULL", None)])


def test_a_held_build_tells_the_rows_of_groups_that_would_go(spark: Any, tmp_path: Path) -> None:
    table = Built(spark, tmp_path, "tracked", "id", max_deletes=MaxDeletes(1))
    table.build((1, "a"), (2, "b"), (2, "c"))
    with pytest.raises(HeldError) as held:
        table.build((1, "A"))
    assert sorted(row["n"] for row in held.value.rows.to_pylist()) == ["b", "c"]
