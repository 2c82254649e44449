from __future__ import annotations

from pathlib import Path
from typing import Any

from building import Built


def test_what_was_appended_before_is_taken_off_as_a_multiset(spark: Any, tmp_path: Path) -> None:
    table = Built(spark, tmp_path, "append")
    table.build((1, "a"), (1, "a"), (2, "b"))
    built = table.build((1, "a"), (1, "a"), (1, "a"), (2, "B"))
    assert table.changes() == [("insert", 1, "a"), ("insert", 2, "B")]
    assert (built.source, built.invalid_rows) == (4, 0)
    assert table.build((1, "a")).action == "unchanged"
    assert table.build((1, "a"), (1, "a"), (1, "a"), (2, "B"), (2, "b")).action == "unchanged"


def test_with_a_key_only_new_keys_are_appended(spark: Any, tmp_path: Path) -> None:
    table = Built(spark, tmp_path, "append", "id")
    table.build((1, "a"), (2, "b"), (3, "x"), (3, "y"))
    assert table.changes() == [("insert", 1, "a"), ("insert", 2, "b")]
    built = table.build((1, "new"), (2, "p"), (2, "q"), (3, "z"), (4, "u"), (4, "v"), (None, "n"))
    assert table.changes() == [("insert", 3, "z")]
    assert built.invalid_rows == 3
    assert sorted(table.invalid(), key=repr) == [
        (4, "u", "DUPLICATE", "4"),
        (4, "v", "DUPLICATE", "4"),
        (None, "n", "NULL", None),
    ]


def test_row_ids_grow_in_the_order_of_the_select(spark: Any, tmp_path: Path) -> None:
    table = Built(spark, tmp_path, "append")
    query = "SELECT CAST(id AS INT) AS id, 'x' AS n FROM range(0, {}, 1, 4) ORDER BY id DESC"
    for most in (50, 90):
        table.build(sql=query.format(most), ordered=True)
    ids = [r.id for r in table.table.read(spark).orderBy("__ondatra_rowid").collect()]
    assert ids == [*range(49, -1, -1), *range(89, 49, -1)]
