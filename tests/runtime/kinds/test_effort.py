"""What is read off a plan before anything runs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from building import Built

from runtime.lake import effort
from runtime.lake.spark import name_jobs


def test_a_scan_with_a_filter_is_cheap_and_whatever_shuffles_is_dear(spark: Any) -> None:
    cheap = ["SELECT id, id + 1 AS n FROM range(9) WHERE id > 2", "SELECT 1 AS id UNION ALL SELECT 2"]
    dear = [
        "SELECT id % 2 AS k, count(*) AS n FROM range(9) GROUP BY 1",
        "SELECT DISTINCT id % 2 AS k FROM range(9)",
        "SELECT uuid() AS u FROM range(9)",
        "SELECT a.id FROM range(9) a JOIN range(5) b ON a.id = b.id + 1",
        "SELECT id FROM range(9) ORDER BY id % 3",
        "SELECT id, sum(id) OVER (PARTITION BY id % 3) AS s FROM range(9)",
    ]
    assert [effort.is_dear(spark.sql(q)) for q in cheap + dear] == [False] * 2 + [True] * 6


def test_sizes_are_spark_s_guess_and_decide_the_settings(spark: Any) -> None:
    few, many = (effort.size(spark.sql(f"SELECT id FROM range({n})")) for n in (1000, 100_000_000))
    assert [effort.settings(size)["spark.sql.shuffle.partitions"] for size in (few, many, 1 << 60)] == ["1", "25", "32"]


def test_hashes_are_shared_by_so_many_tasks_that_each_has_a_million_unless_a_person_gave_their_number(
    spark: Any,
) -> None:
    before = effort.change(spark, {"spark.sql.shuffle.partitions": "4"})
    try:
        told = [effort.sharing(spark, rows) for rows in (1_000_000, 50_000_000)]
        spark.conf.set("spark.ondatra.givenPartitions", "4")
        told.append(effort.sharing(spark, 50_000_000))
    finally:
        spark.conf.unset("spark.ondatra.givenPartitions")
        effort.change(spark, before)
    assert [each["spark.sql.shuffle.partitions"] for each in told] == ["4", "50", "4"]


def test_a_table_counts_as_large_as_its_files(spark: Any, tmp_path: Path) -> None:
    table = Built(spark, tmp_path, "table")
    table.build((1, "a"))
    [file] = table.table.read(spark).inputFiles()
    assert table.table.size() == Path(file.removeprefix("file:")).stat().st_size


def test_a_join_is_as_large_as_what_it_reads(spark: Any) -> None:
    """Spark's own guess of a join is the product of both sides."""
    join = "SELECT a.id FROM range(5000) a JOIN range(30000) b ON a.id % 70 = b.id % 70"
    assert effort.size(spark.sql(join)) == 8 * 35_000


def test_a_join_of_small_tables_takes_about_as_many_tasks_as_steps_and_one_file(spark: Any, tmp_path: Path) -> None:
    for name, rows in (
        ("few", "SELECT id, id % 900 AS region FROM range(5000)"),
        ("many", "SELECT id, id % 5000 AS customer, id % 97 AS amount FROM range(30000)"),
    ):
        spark.sql(rows).write.parquet(str(tmp_path / name))
        spark.read.parquet(str(tmp_path / name)).createOrReplaceTempView(name)
    query = (
        "SELECT few.id, max(region + {} * int(few.id < 3)) AS region, sum(amount) AS amount FROM few JOIN many ON "
        "customer = few.id WHERE few.id < 4500 GROUP BY few.id"
    )
    table = Built(spark, tmp_path, "table")
    for change, group in ((0, "first build"), (1, "three rows changed")):
        name_jobs(spark, group)
        try:
            table.build(sql=query.format(change))
        finally:
            name_jobs(spark, None)
        steps, tasks = done(spark, group)
        assert tasks <= 2 * steps, group
        assert len(table.table.read(spark).inputFiles()) == 1, group
    assert len(table.changes("id", "region")) == 9000


def done(spark: Any, group: str) -> tuple[int, int]:
    """Stages that ran for a job group, and their tasks."""
    tracker = spark.sparkContext.statusTracker()
    stages = {s for job in tracker.getJobIdsForGroup(group) for s in tracker.getJobInfo(job).stageIds}
    ran = [info.numCompletedTasks for s in stages if (info := tracker.getStageInfo(s)) and info.numCompletedTasks]
    return len(ran), sum(ran)


def test_few_rows_of_a_dear_result_are_written_anew_into_one_file_though_much_was_read(
    spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(effort, "LITTLE", 0)
    table = Built(spark, tmp_path, "table")
    for rows in (4, 40):  # a new table has them as they come
        table.build(sql=f"SELECT CAST(rand() AS INT) AS zero, id FROM range(0, {rows}, 1, 8)")
    assert len(table.table.read(spark).inputFiles()) == 1


def test_settings_are_put_back(spark: Any) -> None:
    before = effort.change(spark, effort.settings(1))
    assert effort.change(spark, before) == effort.settings(1)
    assert spark.conf.get("spark.sql.adaptive.enabled") == "true"


def test_groups_and_copies_of_a_large_table_are_found_in_the_compiled_pass(
    spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(effort, "LITTLE", 0)
    groups = Built(spark, tmp_path / "groups", "tracked", "id")
    groups.build((1, "a"), (1, "b"), (2, "c"), (3, "d"))
    built = groups.build((1, "a"), (1, "B"), (3, "d"), (4, "e"), (None, "x"))
    assert groups.changes() == [
        ("delete", 1, "a"),
        ("delete", 1, "b"),
        ("delete", 2, "c"),
        ("insert", 1, "B"),
        ("insert", 1, "a"),
        ("insert", 4, "e"),
    ]
    assert (built.source, built.invalid_rows, built.deletes) == (5, 1, 1)
    assert groups.build((4, "e"), (1, "B"), (None, "x"), (3, "d"), (1, "a")).action == "unchanged"

    copies = Built(spark, tmp_path / "copies", "append")
    copies.build((1, "a"))
    copies.build((1, "a"), (1, "a"), (1, "a"), (2, "b"))
    assert copies.changes() == [("insert", 1, "a"), ("insert", 1, "a"), ("insert", 2, "b")]
