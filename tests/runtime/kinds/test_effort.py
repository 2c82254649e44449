"""What is read off a plan before anything runs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from building import Built

from runtime.lake import effort


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
