from __future__ import annotations

from pathlib import Path
from typing import Any

from building import Built


def test_changed_partitions_are_replaced_and_the_others_stay(spark: Any, tmp_path: Path) -> None:
    table = Built(spark, tmp_path, "partition", "id")
    table.build((1, "a"), (1, "b"), (2, "c"), (None, "d"))
    assert table.build((1, "b"), (1, "a")).action == "unchanged"
    table.build((1, "a"), (1, "B"), (None, "D"), (4, "e"))
    assert table.changes() == [
        ("delete", 1, "a"),
        ("delete", 1, "b"),
        ("delete", None, "d"),
        ("insert", 1, "B"),
        ("insert", 1, "a"),
        ("insert", 4, "e"),
        ("insert", None, "D"),
    ]
    assert table.rows() == [(1, "B"), (1, "a"), (2, "c"), (4, "e"), (None, "D")]
