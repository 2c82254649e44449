"""A version of a table is one commit: a lake that was restored, lost or written anew since says so."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from runtime.lake.commits import commit_of, disagrees
from runtime.lake.table import LakeTable


def no_spark() -> Any:
    raise AssertionError("a local table is read without Spark")


@pytest.fixture
def table(tmp_path: Path) -> LakeTable:
    """With the commits a, b and c, a day apart."""
    log = tmp_path / "_delta_log"
    log.mkdir()
    for version, name in enumerate("abc"):
        told = {"commitInfo": {"timestamp": 1_768_435_200_000 + version * 86_400_000, "txnId": name}}
        (log / f"{version:020}.json").write_text(json.dumps(told) + "\n" + '{"add":{}}\n')
    return LakeTable(tmp_path.as_uri())


def test_a_commit_is_known_by_its_id_and_its_time(table: LakeTable) -> None:
    found = commit_of(table, 1, no_spark)

    assert found and (found.id, found.at.isoformat()) == ("b", "2026-01-16T00:00:00+00:00")


@pytest.mark.parametrize(
    "version, commit, why",
    [
        (1, "b", ""),
        (1, "", ""),  # noted before ids were
        (3, "d", "stands at version 2 of 2026-01-17 00:00 UTC and so is older than"),
        (3, "", "stands at version 2 of 2026-01-17 00:00 UTC and so is older than"),
        (
            1,
            "other",
            "was written anew since it was restored (its version 1 is of 2026-01-16 00:00 UTC) and lacks",
        ),
    ],
)
def test_a_table_says_how_it_differs_from_what_is_known_of_it(
    table: LakeTable, version: int, commit: str, why: str
) -> None:
    assert disagrees(table, version, commit, no_spark) == why


def test_a_table_whose_folder_was_lost_is_gone(tmp_path: Path) -> None:
    assert disagrees(LakeTable((tmp_path / "lost").as_uri()), 1, "b", no_spark) == "is gone, and with it"


def test_a_log_that_no_longer_holds_the_version_tells_nothing(table: LakeTable) -> None:
    (Path(table.path) / "_delta_log" / f"{1:020}.json").unlink()

    assert disagrees(table, 1, "b", no_spark) == ""
