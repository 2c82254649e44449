"""Tables by their path: what is there, its versions, its schema."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from runtime.lake import hadoop, note
from runtime.lake.note import Note
from runtime.lake.spark import session
from runtime.lake.table import LakeTable, ddl, is_widening


def made(spark: Any, folder: Path) -> LakeTable:
    table = LakeTable((folder / "a b%ü").as_uri())
    table.create(spark, [("id", "INT"), ("n", "STRING")])
    return table


def test_a_table_is_made_empty_with_growing_row_ids(spark: Any, tmp_path: Path) -> None:
    table = made(spark, tmp_path)
    assert (table.exists(spark), table.version(spark), table.is_new(spark)) == (True, 0, True)
    spark.sql(f"INSERT INTO {table.sql} (id, n) VALUES (1, 'a')")
    assert [tuple(r) for r in table.read(spark).collect()] == [(1, "a", 1)]
    assert [(r["_change_type"], r["id"]) for r in table.feed(spark, 1, table.version(spark)).collect()] == [
        ("insert", 1)
    ]


def test_a_table_with_rows_from_the_start_is_the_one_that_gets_them_afterwards(spark: Any, tmp_path: Path) -> None:
    columns = [("id", "INT"), ("n", "STRUCT<`a b`: DECIMAL(9,2)>"), ("t", "TIMESTAMP_LTZ"), ("u", "TIMESTAMP_NTZ")]
    rows = spark.sql(
        "SELECT 1 AS id, named_struct('a b', CAST(2 AS DECIMAL(9,2))) AS n, TIMESTAMP_LTZ '2020-01-01 00:00:00' AS t, "
        "TIMESTAMP_NTZ '2020-01-01 00:00:00' AS u"
    )
    at_once, after = (LakeTable((tmp_path / name).as_uri()) for name in ("at once", "after"))
    at_once.begun(spark, columns, rows)()
    after.create(spark, columns)
    rows.write.format("delta").mode("append").save(after.path)

    def told(table: LakeTable) -> list[Any]:
        feed = table.feed(spark, 0, table.version(spark)).drop("_commit_timestamp", "_commit_version")
        detail = spark.sql(f"DESCRIBE DETAIL {table.sql}").select("properties", "tableFeatures")
        return [table.read(spark).schema, *(frame.collect() for frame in (table.read(spark), feed, detail))]

    assert (at_once.version(spark), at_once.is_new(spark), told(at_once)) == (0, False, told(after))


def test_a_table_is_created_over_what_a_build_left_that_died_before_its_first_commit(
    spark: Any, tmp_path: Path
) -> None:
    left = tmp_path / "a b%ü" / "_delta_log"
    left.mkdir(parents=True)
    (left.parent / "part-0.parquet").touch()
    LakeTable(left.parent.as_uri()).clear(spark)
    table = made(spark, tmp_path)
    table.clear(spark)  # a table that is there stays
    assert table.version(spark) == 0


def test_a_clone_has_the_rows_and_leaves_the_table_alone(spark: Any, tmp_path: Path) -> None:
    table, clone = made(spark, tmp_path), LakeTable((tmp_path / "clone").as_uri())
    spark.sql(f"INSERT INTO {table.sql} (id, n) VALUES (1, 'a')")
    clone.clone_from(spark, table)
    assert (clone.version(spark), clone.is_new(spark)) == (0, False)
    spark.sql(f"INSERT INTO {clone.sql} (id, n) VALUES (2, 'b')")
    assert (clone.read(spark).count(), table.read(spark).count()) == (2, 1)


def test_another_thread_gets_the_running_engine_and_does_not_look_for_java_again(
    spark: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("JAVA_HOME", "/where/no/java/is")
    with ThreadPoolExecutor(1) as other:
        found = other.submit(session).result(60)
    assert found.sparkContext is spark.sparkContext


def test_a_removed_table_can_be_made_again(spark: Any, tmp_path: Path) -> None:
    table = made(spark, tmp_path)
    table.remove(spark)
    assert not table.exists(spark)
    made(spark, tmp_path)
    assert (table.version(spark), table.read(spark).count()) == (0, 0)


def test_a_note_is_kept_beside_the_table(spark: Any, tmp_path: Path) -> None:
    table = LakeTable(tmp_path.as_uri())
    assert note.read(spark, table) == Note()
    note.write(spark, table, Note(version=3))
    assert note.read(spark, table) == Note(version=3)


def test_a_note_on_another_store_goes_through_the_engine(spark: Any, tmp_path: Path) -> None:
    path = f"{tmp_path}/a/note.json"
    assert hadoop.read_text(spark, path) == ""
    hadoop.write_text(spark, path, '{"ä": 1}')
    assert hadoop.read_text(spark, path) == '{"ä": 1}'


@pytest.mark.parametrize(
    "old, new, widens",
    [
        ("int", "bigint", True),
        ("bigint", "int", False),
        ("int", "double", True),
        ("bigint", "double", False),
        ("decimal(10,2)", "decimal(12,4)", True),
        ("decimal(10,2)", "decimal(12,5)", False),
    ],
)
def test_only_types_that_hold_every_value_widen_in_place(old: str, new: str, widens: bool) -> None:
    assert is_widening(old, new) is widens


def test_types_are_written_with_their_names_quoted() -> None:
    from pyspark.sql import types as t

    kind = t.MapType(t.StringType(), t.ArrayType(t.StructType([t.StructField("a `b", t.DecimalType(5, 2))])))
    assert ddl(kind) == "MAP<STRING, ARRAY<STRUCT<`a ``b`: DECIMAL(5,2)>>>"
    assert [ddl(k) for k in (t.TimestampType(), t.TimestampNTZType())] == ["TIMESTAMP_LTZ", "TIMESTAMP_NTZ"]
