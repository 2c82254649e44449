"""Few changes of a large table are found by a filter and committed where they lie; whatever the filter cannot tell is
joined."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from building import ROWS, UNUSABLE, Built, count_as_large

from runtime.columns import H1
from runtime.kinds import in_place, merge, source
from runtime.kinds.build import Build
from runtime.kinds.built import Feed
from runtime.kinds.sieve import commit, filters
from runtime.lake import effort, note
from runtime.staging.chunks import read_chunk
from runtime.staging.request import Staged, StageRequest
from runtime.staging.stage import stage


class Watched(Built):
    """A table that counts as large; `ways` says how each build found and wrote its changes."""

    ways: list[str]

    def way(self, *rows: Any, **options: Any) -> str:
        self.ways.clear()
        self.build(*rows, **options)
        return " ".join(self.ways)


@pytest.fixture(scope="module")
def first(spark: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Watched]:
    """The table that each test begins with."""
    with pytest.MonkeyPatch.context() as patch:
        count_as_large(patch)
        made = Watched(spark, tmp_path_factory.mktemp("first"), "merge", "id")
        made.build(*ROWS)
    yield made


@pytest.fixture
def table(first: Watched, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> Watched:
    """With Spark's settings for a large table in the test that asks for them: with those for little the same takes two
    thirds of the time."""
    usual = effort.settings
    count_as_large(monkeypatch)
    if request.node.get_closest_marker("large"):
        monkeypatch.setattr(effort, "settings", usual)
    first.ways = []
    made = first.another(tmp_path)
    for module, name in ((commit, "write"), (merge, "compare")):
        usual = getattr(module, name)
        monkeypatch.setattr(
            module, name, lambda *a, _usual=usual, _name=name, **k: (made.ways.append(_name), _usual(*a, **k))[1]
        )
    return made


def expect(change: str, *row: Any) -> list[tuple[Any, ...]]:
    """What the feed says of a row, sorted."""
    if change != "update":
        return [(change, *row)]
    key, old, new = row
    return [("update_postimage", key, new), ("update_preimage", key, old)]


def feed_of(*changes: list[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
    return sorted((change for each in changes for change in each), key=repr)


def laid(*rows: tuple[Any, ...]) -> list[tuple[Any, ...]]:
    """Rows in the order in which `Built.rows` gives them."""
    return sorted(rows, key=repr)


# what is committed


@pytest.mark.large
def test_changed_and_new_rows_are_committed_without_a_merge(table: Watched) -> None:
    now = [*ROWS[:-1], (39, "N"), (77, "new"), (78, "new")]
    assert table.way(*now) == "write"
    assert table.changes() == feed_of(
        expect("insert", 77, "new"), expect("insert", 78, "new"), expect("update", 39, "n39", "N")
    )
    assert table.rows() == laid(*now)


def test_a_row_keeps_its_id_and_a_new_one_gets_the_next(table: Watched) -> None:
    before = dict(table.rows("id", "__ondatra_rowid"))
    table.build(*ROWS[:-1], (39, "N"), (77, "new"), (78, "new"))
    now = dict(table.rows("id", "__ondatra_rowid"))
    new = sorted(now.pop(key) for key in (77, 78))
    assert now == before
    assert new == [max(before.values()) + 1, max(before.values()) + 2]


def test_the_version_before_a_commit_can_still_be_read(table: Watched) -> None:
    before = table.table.version(table.spark)
    table.build(*ROWS[1:-1], (39, "N"))
    with effort.fit(table.spark, -1):
        assert laid(*map(tuple, table.table.read(table.spark, before).select("id", "n").collect())) == laid(*ROWS)


def test_the_same_rows_in_another_order_are_no_change(table: Watched) -> None:
    assert table.way(*reversed(ROWS)) == ""
    assert table.last is not None
    assert table.last.action == "unchanged"


def test_a_file_that_lost_rows_loses_more(table: Watched) -> None:
    table.build(*ROWS[:-1], (39, "N"))
    assert table.way(*ROWS[:-2], (38, "M"), (39, "O")) == "write"
    assert table.changes() == feed_of(expect("update", 38, "n38", "M"), expect("update", 39, "N", "O"))
    assert table.rows() == laid(*ROWS[:-2], (38, "M"), (39, "O"))


def test_delta_s_own_writers_go_on_from_a_commit(table: Watched) -> None:
    table.build(*ROWS[:-1], (39, "N"), (77, "new"))
    highest = max(table.rows("__ondatra_rowid"))
    table.spark.sql(f"INSERT INTO {table.table.sql} (id, n) VALUES (99, 'by hand')")
    assert dict(table.rows("id", "__ondatra_rowid"))[99] > highest[0]


def test_a_commit_carries_the_run_id(table: Watched) -> None:
    table.build(*ROWS[:-1], (39, "N"))
    last = table.spark.sql(f"DESCRIBE HISTORY {table.table.sql} LIMIT 1").first()
    assert (last["operation"], last["userMetadata"]) == ("UPDATE", '{"run": 7}')


def test_a_commit_knows_what_its_change_feed_says(table: Watched) -> None:
    table.model = deleting(table)
    table.build(*ROWS)
    assert table.way(*ROWS[1:-1], (39, None), (77, "new")) == "write"
    assert table.last is not None
    assert table.last.feed is not None
    feed, version = table.last.feed, table.last.version

    read = table.table.feed(table.spark, version, version).drop("_commit_version", "_commit_timestamp")
    assert sorted(feed.rows.columns) == sorted(read.columns)
    assert sorted(map(repr, feed.rows.select(*read.columns).collect())) == sorted(map(repr, read.collect()))
    assert feed.counts == {"update_preimage": 1, "update_postimage": 1, "insert": 1, "delete": 1}


def test_what_is_staged_from_the_feed_at_hand_is_what_is_staged_from_its_files(table: Watched, tmp_path: Path) -> None:
    table.build(*ROWS[:-1], (39, None), (77, "new"))
    assert table.last is not None
    assert table.last.feed is not None
    version = table.last.version

    def staged(name: str, made: Feed | None) -> Staged:
        url = (tmp_path / name).as_uri()
        request = StageRequest(table.model, table.table, version - 1, version, version - 1, (), url, made=made)
        return stage(table.spark, request)

    from_memory, from_files = staged("memory", table.last.feed), staged("files", None)
    assert [read_chunk(c.url, None).to_pylist() for c in from_memory.chunks] == [
        read_chunk(c.url, None).to_pylist() for c in from_files.chunks
    ]
    told = [(s.changed, s.deleted, s.carried) for s in (from_memory, from_files)]
    assert told == [(2, 0, 0)] * 2


def test_another_writer_of_the_table_is_noticed(table: Watched, monkeypatch: pytest.MonkeyPatch) -> None:
    usual = in_place._rows

    def meanwhile(*given: Any, **named: Any) -> Any:
        table.spark.sql(f"DELETE FROM {table.table.sql} WHERE id = 39")
        return usual(*given, **named)

    monkeypatch.setattr(in_place, "_rows", meanwhile)
    with pytest.raises(Exception, match="(?i)concurrent"):
        table.build(*ROWS[:-1], (39, "N"))
    assert table.rows() == laid(*ROWS[:-1])


def test_a_clone_is_built_without_touching_the_table_that_it_is_of(table: Watched, tmp_path: Path) -> None:
    clone = table.another(tmp_path / "clone")
    shutil.rmtree(Path(clone.table.path) / "_delta_log")
    clone.table.clone_from(table.spark, table.table)
    known = note.read(table.spark, clone.table)
    note.write(table.spark, clone.table, replace(known, version=clone.table.version(table.spark)))
    assert clone.way((0, "a"), *ROWS[1:]) == "write"
    assert clone.changes() == expect("update", 0, "n0", "a")
    assert table.rows() == laid(*ROWS)


@pytest.mark.parametrize("told", ["true", "false"])
def test_old_rows_are_found_whether_or_not_the_checksum_names_the_files(table: Watched, told: str) -> None:
    table.spark.conf.set("spark.databricks.delta.allFilesInCrc.enabled", told)
    try:
        table.build((0, "a"), *ROWS[1:])
        assert table.way((0, "b"), *ROWS[1:-1], (39, "N")) == "write"
    finally:
        table.spark.conf.unset("spark.databricks.delta.allFilesInCrc.enabled")
    name = f"{table.last.version if table.last else 0:020}.crc"
    checksum = json.loads((Path(table.table.path) / "_delta_log" / name).read_text())
    assert ("allFiles" in checksum) is (told == "true")
    assert table.changes() == feed_of(expect("update", 0, "a", "b"), expect("update", 39, "n39", "N"))


# rows that vanished


def deleting(table: Watched) -> Any:
    return Built(table.spark, Path("/nowhere"), "merge", "id", on_missing="delete").model


def test_vanished_rows_are_deleted_where_the_model_says_so(table: Watched) -> None:
    table.model = deleting(table)
    table.build(*ROWS)
    assert table.way(*ROWS[2:-1], (39, "N")) == "write"
    assert table.last is not None
    assert table.last.deletes == 2
    assert table.changes() == feed_of(
        expect("delete", 0, "n0"), expect("delete", 1, "n1"), expect("update", 39, "n39", "N")
    )
    assert table.rows() == laid(*ROWS[2:-1], (39, "N"))


def test_a_build_that_only_deletes_is_committed_likewise(table: Watched) -> None:
    table.model = deleting(table)
    table.build(*ROWS)
    assert table.way(*ROWS[1:]) == "write"
    assert table.changes() == expect("delete", 0, "n0")


def test_vanished_rows_stay_where_the_model_does_not_say_so(table: Watched) -> None:
    assert table.way(*ROWS[1:]) == ""
    assert table.last is not None
    assert (table.last.action, table.last.source) == ("unchanged", 39)
    assert table.rows() == laid(*ROWS)


def test_changes_are_found_beside_rows_that_vanished_before_and_stay(table: Watched) -> None:
    table.build(*ROWS[1:])
    for gone, old, new in ((2, "n39", "O"), (3, "O", "P")):
        assert table.way(*ROWS[gone:-1], (39, new)) == "write"
        assert table.changes() == expect("update", 39, old, new)
        assert table.last is not None
        assert table.last.source == 40 - gone
    assert table.rows() == laid(*ROWS[:-1], (39, "P"))


def test_new_rows_alone_are_inserted_without_a_look_at_old_ones(table: Watched) -> None:
    assert table.way(*ROWS, (50, "new")) == ""
    assert table.changes() == expect("insert", 50, "new")


# what the filter cannot tell


@UNUSABLE
def test_rows_without_a_usable_key_are_found_by_the_join(table: Watched, rows: list[Any], invalid: int) -> None:
    assert table.way(*rows) == "compare"
    assert table.last is not None
    assert table.last.invalid_rows == invalid


def test_changes_beside_rows_without_a_usable_key_are_committed(table: Watched) -> None:
    table.build(*ROWS[:-1], (39, "N"), (None, "x"), (5, "twice"))
    assert table.changes() == expect("update", 39, "n39", "N")
    assert table.rows() == laid(*ROWS[:-1], (39, "N"))


#: One row in nine.
SOME = [(i, f"x{i}") if i % 9 == 0 else (i, n) for i, n in ROWS]
SOME_CHANGES = feed_of(*[expect("update", i, f"n{i}", f"x{i}") for i in range(0, 40, 9)])


def test_a_change_that_slips_through_the_filter_is_found_all_the_same(
    table: Watched, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(filters, "BITS", 1)
    monkeypatch.setattr(filters, "FUNCTIONS", 1)
    monkeypatch.setattr(filters, "LEAST_ROWS", 1)
    table.table.sweep(table.spark, "_ondatra", "filter-")
    assert table.way(*SOME) == "compare"
    assert table.changes() == SOME_CHANGES
    assert table.rows() == laid(*SOME)


def test_a_change_that_slips_through_one_filter_does_not_slip_through_the_next(
    table: Watched, made: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    passed = filters.passed
    monkeypatch.setattr(
        filters,
        "passed",
        lambda build, rows, known, on=H1: passed(build, rows, known, on).filter("id <> 9" if on == H1 else "true"),
    )
    assert table.way(*SOME) == "write"
    assert table.changes() == SOME_CHANGES
    assert table.way((0, "y"), *SOME[1:]) == "write"
    assert table.changes() == expect("update", 0, "x0", "y")
    assert made == [40]


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many rows each filter has that is made of the table."""
    found: list[int] = []
    usual = filters.make
    monkeypatch.setattr(filters, "make", lambda build, rows: (found.append(rows), usual(build, rows))[1])
    return found


def test_a_filter_goes_on_from_build_to_build(table: Watched, made: list[int]) -> None:
    table.build((0, "a"), *ROWS[1:])
    assert table.way((0, "a"), (1, "b"), *ROWS[2:]) == "write"
    assert table.changes() == expect("update", 1, "n1", "b")
    assert made == []


def test_a_filter_is_made_anew_for_rows_that_become_what_they_were(table: Watched, made: list[int]) -> None:
    table.build((0, "a"), *ROWS[1:])
    assert table.way(*ROWS) == "write"
    assert table.changes() == expect("update", 0, "a", "n0")
    assert made == [40]
    assert len(list(Path(table.table.path).glob("_ondatra/filter-*"))) == 3  # whole, changed, and the hashes of that


def test_whoever_removes_a_filter_costs_a_scan_and_no_change(table: Watched, made: list[int]) -> None:
    table.table.sweep(table.spark, "_ondatra", "filter-")
    assert table.way((0, "d"), *ROWS[1:]) == "write"
    assert table.changes() == expect("update", 0, "n0", "d")
    assert made == [40]


# when it is not tried


@pytest.fixture
def looked(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The scans only to learn whether the source differs; its first five rows are looked at before."""
    monkeypatch.setattr(source, "FIRST", 5)
    found: list[str] = []
    unchanged = Build.unchanged
    monkeypatch.setattr(Build, "unchanged", lambda made: (found.append("digest"), unchanged(made))[1])
    return found


def test_a_source_whose_first_rows_differ_is_not_looked_through_before(table: Watched, looked: list[str]) -> None:
    table.build((0, "a"), *ROWS[1:])  # notes the first five
    looked.clear()
    assert table.way((0, "b"), *ROWS[1:]) == "write"
    assert looked == []


def test_a_source_that_differs_later_is_looked_through_and_then_sieved(table: Watched, looked: list[str]) -> None:
    table.build((0, "a"), *ROWS[1:])  # notes the first five
    looked.clear()
    assert table.way((0, "a"), *ROWS[1:-1], (39, "z")) == "write"
    assert table.changes() == expect("update", 39, "n39", "z")
    assert looked == ["digest"]


def test_a_source_in_another_order_is_sieved_and_found_unchanged(table: Watched, looked: list[str]) -> None:
    table.build((0, "a"), *ROWS[1:])
    looked.clear()
    assert table.way(*reversed([(0, "a"), *ROWS[1:]])) == ""
    assert table.last is not None
    assert (table.last.action, looked) == ("unchanged", [])


def test_other_columns_than_before_are_joined(table: Watched) -> None:
    wide = [(*row, None) for row in ROWS]
    assert table.way(*wide, schema="id INT, n STRING, more INT") == "compare"


def test_after_a_build_that_changed_everything_a_filter_would_only_cost(table: Watched) -> None:
    everything = [(i, "other") for i in range(40)]
    assert table.way(*everything) == "write"
    assert len(table.changes()) == 80
    assert table.way(*everything[:-1], (39, "N")) == "compare"
    assert table.changes() == expect("update", 39, "other", "N")
