from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from building import Built

from runtime.columns import CHANGE_TYPE, KEY
from runtime.errors import HeldError
from runtime.lake import effort
from runtime.model import MaxDeletes


def test_only_what_changed_is_written_and_an_update_keeps_its_row_id(spark: Any, tmp_path: Path) -> None:
    table = Built(spark, tmp_path, "merge", "id")
    table.build((1, "a"), (2, "b"))
    ids = dict(table.rows("id", "__ondatra_rowid"))
    built = table.build((1, "a"), (2, "B"), (3, "c"))
    assert table.changes() == [("insert", 3, "c"), ("update_postimage", 2, "B"), ("update_preimage", 2, "b")]
    assert (built.version, built.previous_version, built.deletes) == (1, 0, 0)
    assert {k: v for k, v in table.rows("id", "__ondatra_rowid") if k in ids} == ids


def test_vanished_keys_stay_unless_on_missing_says_delete(spark: Any, tmp_path: Path) -> None:
    table = Built(spark, tmp_path, "merge", "id")
    table.build((1, "a"), (2, "b"))
    assert table.build((1, "a")).action == "unchanged"
    table.model = Built(spark, tmp_path, "merge", "id", on_missing="delete").model
    built = table.build((1, "a"))
    assert (built.deletes, table.changes()) == (1, [("delete", 2, "b")])


def test_invalid_rows_are_listed_and_what_was_delivered_stays(spark: Any, tmp_path: Path) -> None:
    table = Built(spark, tmp_path, "merge", "id", on_missing="delete")
    table.build((1, "a"), (2, "b"))
    built = table.build((1, "a"), (2, "x"), (2, "y"), (None, "n"))
    assert (built.action, built.source, built.invalid_rows) == ("unchanged", 4, 3)
    assert sorted(table.invalid(), key=repr) == [
        (2, "x", "DUPLICATE", "2"),
        (2, "y", "DUPLICATE", "2"),
        (None, "n", "NULL", None),
    ]
    again = table.build((None, "n"), (2, "y"), (2, "x"), (1, "a"))
    assert again.invalid_digest == built.invalid_digest != ""
    assert table.build((1, "a"), (2, "x"), (2, "z"), (None, "n")).invalid_digest != built.invalid_digest


def test_the_first_build_leaves_invalid_rows_out(spark: Any, tmp_path: Path) -> None:
    table = Built(spark, tmp_path, "merge", "id")
    built = table.build((1, "a"), (2, "x"), (2, "y"), (None, "n"))
    assert (table.rows(), built.invalid_rows, len(table.invalid())) == ([(1, "a")], 3, 3)


def test_several_key_columns_make_a_json_list(spark: Any, tmp_path: Path) -> None:
    table = Built(spark, tmp_path, "merge", "region", "year")
    schema = "region STRING, year INT, total DOUBLE"
    table.build(('e"u', 2025, 1.0), ("us", 2025, 2.0), ("us", None, 3.0), schema=schema)
    assert table.rows("__ondatra_key") == [('["e\\"u",2025]',), ('["us",2025]',)]
    table.build(('e"u', 2025, 1.5), ("us", 2025, 2.0), schema=schema)
    assert table.changes("region", "total") == [("update_postimage", 'e"u', 1.5), ("update_preimage", 'e"u', 1.0)]


def test_too_many_deletes_hold_the_build_before_it_writes(spark: Any, tmp_path: Path) -> None:
    table = Built(spark, tmp_path, "merge", "id", on_missing="delete", max_deletes=MaxDeletes(1))
    table.build((1, "a"), (2, "b"), (3, "c"))
    with pytest.raises(HeldError, match="2 deletes .*max_deletes.*1") as held:
        table.build((1, "A"))
    told = vars(held.value)
    rows = told.pop("rows").select(["id", "n", KEY, CHANGE_TYPE]).to_pylist()
    assert sorted(tuple(row.values()) for row in rows) == [(2, "b", "2", "delete"), (3, "c", "3", "delete")]
    assert told == {
        "source": 1,
        "unchanged": 0,
        "invalid": 0,
        "changed": 1,
        "deleted": 2,
        "limit": 1,
        "gone": False,
    }
    assert table.rows() == [(1, "a"), (2, "b"), (3, "c")]
    with pytest.raises(HeldError):
        table.build((1, "A"), confirmed_deletes=1)
    table.build((1, "A"), confirmed_deletes=2)
    assert table.rows() == [(1, "A")]


def test_a_source_that_became_empty_is_held_from_twenty_rows_on(spark: Any, tmp_path: Path) -> None:
    few = Built(spark, tmp_path / "few", "merge", "id", on_missing="delete")
    few.build(*[(i, "a") for i in range(19)])
    assert few.build().deletes == 19
    more = Built(spark, tmp_path / "more", "merge", "id", on_missing="delete")
    more.build(*[(i, "a") for i in range(20)])
    with pytest.raises(HeldError):
        more.build()


@pytest.mark.parametrize(
    "rows, sent, invalid",
    [
        (
            ["(1, 'a')", "(2, 'B')", "(4, 'd')"],
            [("delete", 3, "c"), ("insert", 4, "d"), ("update_postimage", 2, "B"), ("update_preimage", 2, "b")],
            0,
        ),
        (["(1, 'a')", "(1, 'a')", "(2, 'b')", "(3, 'c')"], [], 2),
        (
            ["(1, 'a')", "(1, 'z')", "(2, 'b')", "(3, 'C')"],
            [("update_postimage", 3, "C"), ("update_preimage", 3, "c")],
            2,
        ),
        (["(1, 'a')", "(2, 'b')", "(3, 'c')", "(4, 'd')", "(4, 'e')", "(NULL, 'f')"], [], 3),
        (["(1, 'a')", "(2, 'b')", "(3, 'c')", "(4, 'd')", "(5, 'e')"], [("insert", 4, "d"), ("insert", 5, "e")], 0),
        (["(1, 'a')", "(2, 'b')"], [("delete", 3, "c")], 0),
        (["(3, 'c')", "(2, 'b')", "(1, 'a')"], [], 0),
    ],
    ids=["valid", "equal rows", "one of them changed", "new invalid ones", "new ones", "one is gone", "the same"],
)
@pytest.mark.parametrize("little", [0, effort.LITTLE], ids=["large", "small"])
def test_a_table_of_any_size_is_compared_row_by_row_with_the_same_result(
    spark: Any,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    little: int,
    rows: list[str],
    sent: list[Any],
    invalid: int,
) -> None:
    monkeypatch.setattr(effort, "LITTLE", little)
    table = Built(spark, tmp_path, "merge", "id", on_missing="delete", max_deletes=MaxDeletes(9))
    table.build((1, "a"), (2, "b"), (3, "c"))
    table.build(sql=f"SELECT * FROM VALUES {', '.join(rows)} AS t(id, n) ORDER BY id")  # dear: read once, or kept
    assert table.last is not None
    assert (table.changes(), table.last.invalid_rows) == (sent, invalid)
