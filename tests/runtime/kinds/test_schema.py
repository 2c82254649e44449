"""A new schema is a commit of its own and sends only rows whose payload changed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from building import Built

from runtime.kinds.writer import Writer

KINDS = ["table", "append", "merge", "tracked", "scd2", "partition"]


def made(spark: Any, folder: Path, kind: str, schema: str, *rows: Any) -> Built:
    table = Built(spark, folder, kind, *(() if kind in ("table", "append") else ("id",)))
    table.build(*rows, schema=schema)
    return table


@pytest.mark.parametrize(
    "old, new", [("INT", "BIGINT"), ("BIGINT", "INT"), ("DECIMAL(10,2)", "INT")], ids=["wider", "narrower", "other"]
)
def test_another_type_of_the_same_values_changes_nothing_and_keeps_them(
    spark: Any, tmp_path: Path, old: str, new: str
) -> None:
    table = Built(spark, tmp_path, "merge", "id")
    query = "SELECT id, CAST(id AS {}) AS n FROM range(3)"
    table.build(sql=query.format(old))
    built = table.build(sql=query.format(new))
    assert (built.action, table.rows()) == ("unchanged", [(0, 0), (1, 1), (2, 2)])
    assert table.table.read(spark).schema["n"].dataType.simpleString() == new.lower()
    assert table.changes() == []
    assert table.table.feed(spark, built.version, built.version).count() == 0
    table.build(sql=query.format(new).replace("range(3)", "range(4)"))
    assert table.changes() == [("insert", 3, 3)]
    assert len(set(table.rows("__ondatra_rowid"))) == 4


def test_a_type_that_changes_some_values_sends_these_with_an_empty_old_image(spark: Any, tmp_path: Path) -> None:
    table = Built(spark, tmp_path, "merge", "id")
    table.build((1, None), (2, 20))
    table.build((1, None), (2, "20"))
    table = Built(spark, tmp_path / "b", "merge", "id")
    table.build((1, None), (2, 20), schema="id INT, n INT")
    table.build((1, None), (2, "20"))
    assert table.changes() == [("update_postimage", 2, "20"), ("update_preimage", 2, None)]
    assert table.rows() == [(1, None), (2, "20")]


@pytest.mark.parametrize("kind", KINDS)
def test_a_renamed_column_changes_every_row(spark: Any, tmp_path: Path, kind: str) -> None:
    table = made(spark, tmp_path, kind, "id INT, n STRING", (1, "a"), (2, "b"))
    table.build((1, "a"), (2, "b"), schema="id INT, m STRING")
    kinds = [row[0] for row in table.changes("id", "m")]
    assert kinds == {
        "append": ["insert"] * 2,
        "merge": ["update_postimage"] * 2 + ["update_preimage"] * 2,
        "scd2": ["insert"] * 2 + ["update_postimage"] * 2 + ["update_preimage"] * 2,
    }.get(kind, ["delete"] * 2 + ["insert"] * 2)


def test_columns_may_have_any_name_and_only_change_their_case(spark: Any, tmp_path: Path) -> None:
    table = Built(spark, tmp_path, "merge", "id")
    table.build((1, "a"), schema="id INT, `a b,;{}()=.'` STRING")
    table.build((1, "a"), schema="id INT, `A b,;{}()=.'` STRING")
    assert table.changes("`A b,;{}()=.'`") == [("update_postimage", "a"), ("update_preimage", None)]


def test_the_order_of_columns_does_not_matter(spark: Any, tmp_path: Path) -> None:
    table = made(spark, tmp_path, "table", "id INT, n STRING", (1, "a"))
    assert table.build(("a", 1), schema="n STRING, id INT").action == "unchanged"


def test_nested_values_survive_a_new_type(spark: Any, tmp_path: Path) -> None:
    table = Built(spark, tmp_path, "merge", "id")
    table.build(sql="SELECT 1 AS id, named_struct('b', 2, 'a', array(1)) AS n")
    built = table.build(sql="SELECT 1 AS id, named_struct('a', array(1L), 'b', 2) AS n")
    assert built.action == "unchanged"
    assert table.rows("n.a", "n.b") == [([1], 2)]


def test_a_key_of_several_columns_that_only_changed_its_type_is_the_same_key(spark: Any, tmp_path: Path) -> None:
    table = Built(spark, tmp_path, "merge", "id", "n", on_missing="delete")
    table.build((1, 2026), (2, 2026), schema="id INT, n INT")
    table.build((1, "2026"), (2, "2026"), schema="id INT, n STRING")
    assert table.changes("id", "n") == [
        ("update_postimage", 1, "2026"),
        ("update_postimage", 2, "2026"),
        ("update_preimage", 1, None),
        ("update_preimage", 2, None),
    ]
    assert table.rows("__ondatra_key") == [('[1,"2026"]',), ('[2,"2026"]',)]


def test_values_are_given_back_after_a_build_that_died_in_between(
    spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = Built(spark, tmp_path, "merge", "id")
    query = "SELECT id, CAST(id AS {}) AS n FROM range(3)"
    table.build(sql=query.format("BIGINT"))
    with monkeypatch.context() as patched:
        patched.setattr(Writer, "_refill", lambda *_: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            table.build(sql=query.format("INT"))
    assert table.rows() == [(0, None), (1, None), (2, None)]
    assert table.build(sql=query.format("INT")).action == "unchanged"
    assert table.rows() == [(0, 0), (1, 1), (2, 2)]
