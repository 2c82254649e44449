"""A table that is too large for a filter has its hashes joined with the source's; what is found is the same."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from building import ROWS, UNUSABLE, Built, count_as_large

from runtime.kinds.build import Build
from runtime.kinds.sieve import filters, hashes


def without_filters(patch: pytest.MonkeyPatch) -> None:
    count_as_large(patch)
    patch.setattr(filters, "MOST_ROWS", len(ROWS) // 2)


@pytest.fixture(scope="module")
def first(spark: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Built]:
    with pytest.MonkeyPatch.context() as patch:
        without_filters(patch)
        made = Built(spark, tmp_path_factory.mktemp("first"), "merge", "id", on_missing="delete")
        made.build(*ROWS)
    yield made


@pytest.fixture
def table(first: Built, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Built:
    without_filters(monkeypatch)
    return first.another(tmp_path)


def test_new_changed_and_vanished_rows_are_found(table: Built, ways: list[str]) -> None:
    built = table.build(*ROWS[2:-2], (38, "N"), (39, None), (77, "new"), (78, "new"))
    assert (ways, built.deletes, built.source) == (["write"], 2, 40)
    assert table.changes() == [
        ("delete", 0, "n0"),
        ("delete", 1, "n1"),
        ("insert", 77, "new"),
        ("insert", 78, "new"),
        ("update_postimage", 38, "N"),
        ("update_postimage", 39, None),
        ("update_preimage", 38, "n38"),
        ("update_preimage", 39, "n39"),
    ]


def test_the_next_builds_go_on_from_there(table: Built, ways: list[str]) -> None:
    table.build((0, "N"), *ROWS[1:])
    table.build((0, "n0"), (1, "N"), *ROWS[2:])  # one became again what it was
    assert table.changes() == [
        ("update_postimage", 0, "n0"),
        ("update_postimage", 1, "N"),
        ("update_preimage", 0, "N"),
        ("update_preimage", 1, "n1"),
    ]
    assert table.build(*reversed([(0, "n0"), (1, "N"), *ROWS[2:]])).action == "unchanged"
    assert ways == ["write", "write"]


@UNUSABLE
def test_rows_without_a_usable_key_are_found_by_the_join(
    table: Built, ways: list[str], rows: list[Any], invalid: int
) -> None:
    assert (table.build(*rows).invalid_rows, ways) == (invalid, ["compare"])


def test_rows_that_vanished_and_stay_are_known_when_they_come_back(table: Built, ways: list[str]) -> None:
    table.model = Built(table.spark, Path("/nowhere"), "merge", "id").model
    assert table.build(*ROWS[2:]).action == "unchanged"
    table.build((0, "N"), *ROWS[2:])
    assert table.changes() == [("update_postimage", 0, "N"), ("update_preimage", 0, "n0")]
    assert table.build((0, "N"), *ROWS[1:]).action == "unchanged"
    assert (ways, len(table.rows())) == (["write"], 40)


@pytest.mark.parametrize("rows", [[(i, f"N{i}") for i in range(5)] + ROWS[5:], ROWS[5:]], ids=["changed", "vanished"])
def test_more_than_may_be_held_are_joined(
    table: Built, ways: list[str], rows: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(hashes, "BROADCAST_KEYS", 4)
    table.build(*rows)
    assert (ways, len(table.rows()), len({key for _, key, _ in table.changes()})) == (["compare"], len(rows), 5)


def test_no_filter_is_made_and_no_scan_only_to_learn_that_the_first_rows_differ(
    table: Built, ways: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Build, "unchanged", lambda made: pytest.fail("looked through"))
    table.build((0, "N"), *ROWS[1:])
    assert ways == ["write"]
    assert not list(Path(table.table.path).glob("_ondatra/filter-*"))
