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
from building import Built, count_as_large

from runtime.kinds import merge, source
from runtime.kinds.build import Build
from runtime.kinds.sieve import commit, filters
from runtime.lake import effort, note
from runtime.lake.table import H1
from runtime.staging.stage import StageRequest, read_chunk, stage

ROWS = [(i, f"n{i}") for i in range(40)]


class Watched(Built):
    """A table that counts as large; `ways` says how each build found and wrote its changes."""

    ways: list[str]

    def way(self, *rows: Any, **options: Any) -> str:
        self.ways.clear()
        self.build(*rows, **options)
        return " ".join(self.ways)

    def another(self, folder: Path) -> Watched:
        """A table that holds the same, made in the same way."""
        made = Watched(self.spark, folder, "merge", "id")
        shutil.copytree(self.table.path, made.table.path)
        made.ways, made.delivered, made.last = self.ways, self.delivered, self.last
        return made


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


@pytest.mark.large
def test_changed_and_new_rows_are_committed_without_a_merge(table: Watched) -> None:
    ids = dict(table.rows("id", "__ondatra_rowid"))
    assert table.way(*ROWS[:-1], (39, "N"), (77, "new"), (78, "new")) == "write"
    assert table.changes() == [
        ("insert", 77, "new"),
        ("insert", 78, "new"),
        ("update_postimage", 39, "N"),
        ("update_preimage", 39, "n39"),
    ]
    now = dict(table.rows("id", "__ondatra_rowid"))
    assert {k: now[k] for k in ids} == ids and len(set(now.values())) == 42
    assert table.rows() == sorted([*ROWS[:-1], (39, "N"), (77, "new"), (78, "new")], key=repr)
    version = table.last.version if table.last else 0
    assert len(table.table.read(table.spark, version - 1).collect()) == 40

    assert (
        table.way((39, "N"), *ROWS[:-1], (78, "new"), (77, "new")) == ""
        and table.last
        and table.last.action == "unchanged"
    )

    # deletion vectors grow, and Delta's own writers go on from what was written
    assert table.way(*ROWS[:-2], (38, "M"), (39, "O"), (77, "new"), (78, "new")) == "write"
    assert table.changes()[:2] == [("update_postimage", 38, "M"), ("update_postimage", 39, "O")]
    table.spark.sql(f"INSERT INTO {table.table.sql} (id, n) VALUES (99, 'by hand')")
    assert len(set(table.rows("__ondatra_rowid"))) == 43
    history = table.spark.sql(f"DESCRIBE HISTORY {table.table.sql}").collect()
    assert [h["userMetadata"] for h in history if h["operation"] == "UPDATE"] == ['{"run": 7}'] * 2


def test_a_commit_knows_what_its_change_feed_says(table: Watched, tmp_path: Path) -> None:
    table.model = Built(table.spark, Path("/nowhere"), "merge", "id", on_missing="delete").model
    table.build(*ROWS)
    assert (
        table.way(*ROWS[1:-1], (39, None), (77, "new")) == "write"
        and table.last is not None
        and table.last.feed is not None
    )
    feed, version = table.last.feed, table.last.version
    read = table.table.feed(table.spark, version, version).drop("_commit_version", "_commit_timestamp")
    assert sorted(map(repr, feed.rows.select(*read.columns).collect())) == sorted(map(repr, read.collect()))
    assert sorted(feed.rows.columns) == sorted(read.columns)
    assert feed.counts == {"update_preimage": 1, "update_postimage": 1, "insert": 1, "delete": 1}

    from_memory, from_files = (
        stage(
            table.spark,
            StageRequest(
                table.model, table.table, version - 1, version, version - 1, (), (tmp_path / name).as_uri(), made=made
            ),
        )
        for name, made in (("memory", feed), ("files", None))
    )
    assert [read_chunk(c.url, None).to_pylist() for c in from_memory.chunks] == [
        read_chunk(c.url, None).to_pylist() for c in from_files.chunks
    ]
    assert (
        (from_memory.changed, from_memory.deleted, from_memory.carried)
        == (from_files.changed, from_files.deleted, from_files.carried)
        == (2, 1, 0)
    )


def test_vanished_rows_are_deleted_or_stay(table: Watched) -> None:
    table.model = Built(table.spark, Path("/nowhere"), "merge", "id", on_missing="delete").model
    table.build(*ROWS)
    assert table.way(*ROWS[2:-1], (39, "N")) == "write"
    assert table.last is not None and table.last.deletes == 2
    assert table.changes() == [
        ("delete", 0, "n0"),
        ("delete", 1, "n1"),
        ("update_postimage", 39, "N"),
        ("update_preimage", 39, "n39"),
    ]
    assert table.rows("id") == sorted(((i,) for i in range(2, 40)), key=repr)

    assert table.way(*ROWS[3:-1], (39, "N")) == "write" and table.changes() == [("delete", 2, "n2")]

    table.model = Built(table.spark, Path("/nowhere"), "merge", "id").model
    table.build(*ROWS[3:-1], (39, "N"))
    assert table.way(*ROWS[4:-1], (39, "N")) == "" and table.last.action == "unchanged" and table.last.source == 36
    for first, name in ((5, "O"), (6, "P"), (6, "Q")):
        assert table.way(*ROWS[first:-1], (39, name)) == "write"
        assert [c[0] for c in table.changes()] == ["update_postimage", "update_preimage"]
        assert table.last.source == 40 - first
    assert len(table.rows("id")) == 37
    assert table.way(*ROWS[6:-1], (39, "Q"), (50, "new")) == "" and table.changes() == [("insert", 50, "new")]


def test_rows_without_a_usable_key_are_found_by_the_join(table: Watched, first: Watched, tmp_path: Path) -> None:
    twice, two = first.another(tmp_path / "twice"), first.another(tmp_path / "two")
    assert table.way(*ROWS[:-1], (39, "N"), (None, "x"), (5, "twice")) == "compare"
    assert table.last is not None and table.last.invalid_rows == 3
    assert table.changes() == [("update_postimage", 39, "N"), ("update_preimage", 39, "n39")]
    assert table.rows() == sorted([*ROWS[:-1], (39, "N")], key=repr)
    assert (
        twice.way(*ROWS, (5, "n5")) == "compare" and twice.last and twice.last.invalid_rows == 2
    )  # the same content twice
    assert two.way(*ROWS[:-1], (39, "N"), (39, "O")) == "compare" and two.last and two.last.invalid_rows == 2


def test_a_change_that_slips_through_the_filter_is_found_all_the_same(
    table: Watched, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(filters, "BITS", 1)
    monkeypatch.setattr(filters, "FUNCTIONS", 1)
    monkeypatch.setattr(filters, "LEAST_ROWS", 1)
    table.table.sweep(table.spark, "_ondatra", "filter-")
    changed = [(i, f"x{i}") if i % 9 == 0 else (i, n) for i, n in ROWS]
    assert table.way(*changed) == "compare"
    assert len(table.changes()) == 10 and table.rows() == sorted(changed, key=repr)


def test_a_change_that_slips_through_one_filter_does_not_slip_through_the_next(
    table: Watched, monkeypatch: pytest.MonkeyPatch
) -> None:
    made: list[int] = []
    make, passed = filters.make, filters.passed
    monkeypatch.setattr(filters, "make", lambda build, rows: (made.append(rows), make(build, rows))[1])
    monkeypatch.setattr(
        filters,
        "passed",
        lambda build, rows, known, on=H1: passed(build, rows, known, on).filter("id <> 9" if on == H1 else "true"),
    )
    changed = [(i, f"x{i}") if i % 9 == 0 else (i, n) for i, n in ROWS]
    assert table.way(*changed) == "write" and made == [40]
    assert len(table.changes()) == 10 and table.rows() == sorted(changed, key=repr)
    assert table.way((0, "y"), *changed[1:]) == "write" and made == [40]
    assert table.changes() == [("update_postimage", 0, "y"), ("update_preimage", 0, "x0")]


def test_a_source_whose_first_rows_are_the_same_is_looked_through_before_anything_else(
    table: Watched, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(source, "FIRST", 5)
    looked: list[str] = []
    unchanged = Build.unchanged
    monkeypatch.setattr(Build, "unchanged", lambda made: (looked.append("digest"), unchanged(made))[1])
    assert table.way((0, "a"), *ROWS[1:]) == "write" and looked == []
    assert table.way((0, "a"), *ROWS[1:]) == "" and looked == ["digest"]
    assert table.way((0, "a"), *ROWS[1:-1], (39, "z")) == "write" and looked == ["digest"] * 2  # it differs, but later
    assert table.changes() == [("update_postimage", 39, "z"), ("update_preimage", 39, "n39")]
    assert (
        table.way(*reversed([(0, "a"), *ROWS[1:-1], (39, "z")])) == "" and looked == ["digest"] * 2
    )  # another order, nothing else


def test_the_filter_is_kept_and_made_anew_for_rows_that_become_what_they_were(
    table: Watched, monkeypatch: pytest.MonkeyPatch
) -> None:
    made: list[int] = []
    usual = filters.make
    monkeypatch.setattr(filters, "make", lambda build, rows: (made.append(rows), usual(build, rows))[1])
    assert table.way((0, "a"), *ROWS[1:]) == table.way((0, "a"), (1, "b"), *ROWS[2:]) == "write" and made == []
    assert table.way(*ROWS[:1], (1, "b"), *ROWS[2:]) == "write" and made == [40]
    assert table.changes() == [("update_postimage", 0, "n0"), ("update_preimage", 0, "a")]
    assert table.way((0, "c"), (1, "b"), *ROWS[2:]) == "write" and made == [40]
    assert len(list(Path(table.table.path).glob("_ondatra/filter-*"))) == 4

    table.table.sweep(table.spark, "_ondatra", "filter-")  # whoever empties the folder costs a scan, no change
    assert table.way((0, "d"), (1, "b"), *ROWS[2:]) == "write" and made == [40, 40]
    assert table.changes() == [("update_postimage", 0, "d"), ("update_preimage", 0, "c")]


def test_another_schema_and_many_changes_are_joined(table: Watched) -> None:
    wide = [(*row, None) for row in ROWS]
    schema = "id INT, n STRING, more INT"
    assert table.way(*wide, schema=schema) == "compare"
    assert (
        table.way(*wide[:-1], (39, "N", 1), schema=schema) == "compare"
    )  # everything changed last time: a filter would only cost
    assert table.way(*[(i, "other", i) for i in range(40)], schema=schema) == "write"
    assert len(table.changes()) == 80


@pytest.mark.parametrize("told", ["true", "false"])
def test_old_rows_are_found_whether_or_not_the_checksum_names_the_files(table: Watched, told: str) -> None:
    table.spark.conf.set("spark.databricks.delta.allFilesInCrc.enabled", told)
    try:
        assert table.way((0, "a"), *ROWS[1:]) == table.way((0, "b"), *ROWS[1:-1], (39, "N")) == "write"
    finally:
        table.spark.conf.unset("spark.databricks.delta.allFilesInCrc.enabled")
    checksum = json.loads(
        (Path(table.table.path) / "_delta_log" / f"{table.last.version if table.last else 0:020}.crc").read_text()
    )
    assert ("allFiles" in checksum) is (told == "true")
    assert table.changes() == [
        ("update_postimage", 0, "b"),
        ("update_postimage", 39, "N"),
        ("update_preimage", 0, "a"),
        ("update_preimage", 39, "n39"),
    ]


def test_a_clone_is_built_without_touching_the_table_that_it_is_of(table: Watched, tmp_path: Path) -> None:
    clone = table.another(tmp_path / "clone")
    shutil.rmtree(Path(clone.table.path) / "_delta_log")
    clone.table.clone_from(table.spark, table.table)
    known = note.read(table.spark, clone.table)
    note.write(table.spark, clone.table, replace(known, version=clone.table.version(table.spark)))
    assert clone.way((0, "a"), *ROWS[1:]) == "write"
    assert clone.changes() == [("update_postimage", 0, "a"), ("update_preimage", 0, "n0")]
    assert table.rows() == sorted(ROWS, key=repr)


def test_another_writer_of_the_table_is_noticed(table: Watched, monkeypatch: pytest.MonkeyPatch) -> None:
    usual = commit._rows

    def meanwhile(*given: Any) -> Any:
        table.spark.sql(f"DELETE FROM {table.table.sql} WHERE id = 39")
        return usual(*given)

    monkeypatch.setattr(commit, "_rows", meanwhile)
    with pytest.raises(Exception, match="(?i)concurrent"):
        table.build(*ROWS[:-1], (39, "N"))
    assert table.rows("id") == sorted(((i,) for i in range(39)), key=repr)
