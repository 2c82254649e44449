from __future__ import annotations

from pathlib import Path
from typing import Any

from building import Built

COLUMNS = ("id", "n", "valid_from_snapshot", "valid_to_snapshot", "is_current")


def test_a_change_closes_the_version_and_opens_the_next(spark: Any, tmp_path: Path) -> None:
    table = Built(spark, tmp_path, "scd2", "id")
    table.build((1, "a"), (2, "b"))
    table.build((1, "A"), (2, "b"))
    assert table.changes(*COLUMNS) == [
        ("insert", 1, "A", 2, None, True),
        ("update_postimage", 1, "a", 1, 2, False),
        ("update_preimage", 1, "a", 1, None, True),
    ]
    table.build((1, "AA"), (3, "c"))
    assert table.rows(*COLUMNS) == [
        (1, "A", 2, 3, False),
        (1, "AA", 3, None, True),
        (1, "a", 1, 2, False),
        (2, "b", 1, None, True),
        (3, "c", 3, None, True),
    ]


def test_a_vanished_key_stays_open_and_its_return_is_no_change(spark: Any, tmp_path: Path) -> None:
    table = Built(spark, tmp_path, "scd2", "id")
    table.build((1, "a"), (2, "b"))
    assert table.build((1, "a")).action == "unchanged"
    assert table.build((1, "a"), (2, "b")).action == "unchanged"
    assert table.rows("id", "is_current") == [(1, True), (2, True)]
