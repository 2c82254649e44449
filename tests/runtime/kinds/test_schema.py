"""A new schema is a commit of its own and sends only rows whose payload changed."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from building import Built, count_as_large

from runtime.kinds.writer import Writer
from runtime.lake.table import quoted

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


#: Names that SQL quotes, and names that a build might give to columns of its own.
ODD = ("a.b", "a b,;{}()=.'\"", "ü\t😀", "1st", "select", "t", "__do", "__key", "__n", "__part0", "__file", "count")
FIRST, SECOND = (tuple(f"{i}{row}" for i in range(len(ODD))) for row in (1, 2))
#: The nested columns of the two rows.
EMPTY, LESS, MORE = (
    '{"l":[],"m":{}}',
    '{"s":{"x":1},"l":[{"x":1}],"m":{"k":{"x":1}}}',
    ('{"s":{"x":1,"y":2},"l":[{"x":1,"y":2}],"m":{"k":{"x":1,"y":2}}}'),
)


def source(key: str, name: str, nested: str) -> str:
    """Two rows with odd names; the second one has nothing in its nested columns, whose fields are those of the text."""
    odd = ", ".join(f"concat('{i}', id) AS {quoted(n)}" for i, n in enumerate(ODD))
    kind = "s STRUCT<x: INT{0}>, l ARRAY<STRUCT<x: INT{0}>>, m MAP<STRING, STRUCT<x: INT{0}>>".format(
        ", y: INT" if nested == MORE else ""
    )
    parsed = f"from_json(if(id = 1, '{nested}', '{EMPTY}'), '{kind}')"
    rows = f"SELECT id, {parsed} AS n FROM VALUES (1), (2) AS t(id)"
    return f"SELECT id AS {key}, 'a' AS {name}, {odd}, n.s, n.l, n.m FROM ({rows})"


def told(kind: str, before: tuple[Any, ...], after: tuple[Any, ...]) -> list[tuple[Any, ...]]:
    """What the feed says of one row that changed; the version that scd2 closes has no values of a new column either."""
    return {
        "append": [("insert", *after)],
        "merge": [("update_postimage", *after), ("update_preimage", *before)],
        "scd2": [("insert", *after), ("update_postimage", *before), ("update_preimage", *before)],
    }.get(kind, [("delete", *before), ("insert", *after)])


@pytest.mark.parametrize("kind, way", [*((kind, "quick") for kind in KINDS), ("merge", "plain"), ("tracked", "plain")])
def test_a_field_more_and_other_letters_in_a_name_are_changes_of_the_rows_concerned(
    spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str, way: str
) -> None:
    count_as_large(monkeypatch)
    if way == "plain":
        monkeypatch.setenv("ONDATRA_PLAIN_BUILD", "1")
    nested, odd = "to_json(struct(s, l, m))", [quoted(n) for n in ODD]

    table = Built(spark, tmp_path, kind, *(() if kind in ("table", "append") else ("id",)))
    table.build(sql=source("id", "name", LESS))
    table.build(sql=source("id", "name", MORE))
    changed = told(kind, (1, "a", "{}", *FIRST), (1, "a", MORE, *FIRST))
    if kind == "table":  # which goes as a whole
        changed += told(kind, (2, "a", "{}", *SECOND), (2, "a", EMPTY, *SECOND))
    assert table.changes("id", "name", nested, *odd) == sorted(changed, key=repr)

    table.model = replace(table.model, key=tuple(map(str.upper, table.model.key)))
    table.build(sql=source("ID", "Name", MORE))
    rows = (MORE, *FIRST), (EMPTY, *SECOND)
    changed = []
    for i, row in enumerate(rows, 1):  # a key in other letters is the same key
        changed += told(kind, (i if table.model.key else None, None, *row), (i, "a", *row))
    assert table.changes("ID", "Name", nested, *odd) == sorted(changed, key=repr)


def test_rows_that_are_not_in_the_source_keep_their_values_under_the_new_name(spark: Any, tmp_path: Path) -> None:
    table = made(spark, tmp_path, "merge", "id INT, n STRING", (1, "a"), (2, "b"))
    table.build((1, "a"), schema="id INT, N STRING")
    assert table.changes("id", "N") == [("update_postimage", 1, "a"), ("update_preimage", 1, None)]
    assert table.rows("id", "N") == [(1, "a"), (2, "b")]


def test_nested_values_of_another_type_keep_every_digit(spark: Any, tmp_path: Path) -> None:
    table = Built(spark, tmp_path, "merge", "id")
    query = "SELECT 1 AS id, named_struct('at', TIMESTAMP '2020-01-01 00:00:00.123456', 'b', CAST(2 AS {})) AS n"
    table.build(sql=query.format("INT"))
    assert table.build(sql=query.format("BIGINT")).action == "unchanged"
    assert table.rows("CAST(n.at AS STRING)", "n.b") == [("2020-01-01 00:00:00.123456", 2)]


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
