"""A large table is built by private parts of Spark and Delta where these work, and else the plain way, with the same
result."""

from __future__ import annotations

import logging
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from building import Built, count_as_large

from runtime.kinds.sieve import filters, find
from runtime.lake import internals, proof, transactions

ROWS = [(i, f"n{i}") for i in range(24)]
FORCED = "ONDATRA_PLAIN_BUILD"
SLOWER = "WARNING tables are built the plain way, which is slower: the quick parts of Spark and Delta"


@pytest.fixture(autouse=True)
def large(monkeypatch: pytest.MonkeyPatch) -> None:
    count_as_large(monkeypatch)


@pytest.fixture
def said(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[list[str]]:
    """What the log says of an engine that nothing is known of yet."""
    monkeypatch.setattr(proof, "_works", {})
    monkeypatch.setattr(proof, "known_in", lambda: (tmp_path / "proven",))
    lines: list[str] = []

    class Lines(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            lines.append(f"{record.levelname} {record.getMessage()}")

    handler = Lines()
    logging.getLogger("ondatra").addHandler(handler)
    yield lines
    logging.getLogger("ondatra").removeHandler(handler)


@pytest.fixture(scope="module")
def first(spark: Any, tmp_path_factory: pytest.TempPathFactory) -> Built:
    with pytest.MonkeyPatch.context() as patch:
        count_as_large(patch)
        made = Built(spark, tmp_path_factory.mktemp("first"), "merge", "id", on_missing="delete")
        made.build(*ROWS)
    return made


@pytest.fixture
def table(first: Built, tmp_path: Path) -> Built:
    return first.another(tmp_path / "one")


CHANGED = {
    "table": ["delete 1 a", "delete 2 b", "delete 3 c", "insert 1 a", "insert 2 B", "insert 4 d"],
    "append": ["insert 2 B", "insert 4 d"],
    "merge": ["insert 4 d", "update_postimage 2 B", "update_preimage 2 b"],
    "tracked": ["delete 2 b", "delete 3 c", "insert 2 B", "insert 4 d"],
    "scd2": ["insert 2 B", "insert 4 d", "update_postimage 2 b", "update_preimage 2 b"],
    "partition": ["delete 2 b", "insert 2 B", "insert 4 d"],
}


@pytest.mark.parametrize("kind", CHANGED)
def test_each_kind_goes_on_the_plain_way_from_what_was_built_the_quick_way_and_back(
    spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    table = Built(spark, tmp_path, kind, *(() if kind in ("table", "append") else ("id",)))
    table.build((1, "a"), (2, "b"), (3, "c"))
    monkeypatch.setenv(FORCED, "1")
    assert table.build((3, "c"), (2, "b"), (1, "a")).action == "unchanged"
    table.build((1, "a"), (2, "B"), (4, "d"))
    assert [" ".join(map(str, change)) for change in table.changes()] == CHANGED[kind]
    monkeypatch.delenv(FORCED)
    assert table.build((4, "d"), (2, "B"), (1, "a")).action == "unchanged"


def test_the_quick_parts_work_with_the_versions_that_are_installed(
    table: Built, ways: list[str], said: list[str]
) -> None:
    table.build((0, "a"), *ROWS[1:])
    assert (ways, said) == (["write"], [])
    assert [p.name for p in Path(table.table.path).parent.iterdir()] == ["table"]  # the proof leaves nothing


def test_the_plain_way_can_be_forced(
    table: Built, ways: list[str], said: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(FORCED, "1")
    table.build((0, "a"), *ROWS[1:])
    assert (ways, said) == (["compare"], [])
    assert table.changes() == [("update_postimage", 0, "a"), ("update_preimage", 0, "n0")]


def test_other_versions_are_built_the_plain_way_which_is_said_once(
    table: Built, ways: list[str], said: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(internals, "versions", lambda spark: ("4.3.0", "4.5.0"))
    table.build((0, "a"), *ROWS[1:])
    table.build((0, "b"), *ROWS[1:])
    assert ways == ["compare", "compare"]
    assert table.changes() == [("update_postimage", 0, "b"), ("update_preimage", 0, "a")]
    assert said == [f"{SLOWER} are known for Spark 4.2.0 with Delta 4.4.0, and Spark 4.3.0 with Delta 4.5.0 is loaded"]


def test_parts_that_give_another_result_on_three_rows_are_not_used_which_is_said_once(
    table: Built, ways: list[str], said: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    usual = internals.may_contain
    monkeypatch.setattr(internals, "may_contain", lambda *given: ~usual(*given))
    table.build((0, "a"), *ROWS[1:])
    table.build((0, "b"), *ROWS[1:])
    assert ways == ["compare", "compare"]
    assert table.changes() == [("update_postimage", 0, "b"), ("update_preimage", 0, "a")]
    assert said == [f"{SLOWER} do not work: Differs: passed the filter: [(1, 'a')] came, not [(2, 'B'), (4, 'd')]"]


def test_an_error_right_before_the_commit_sends_the_same_build_the_plain_way_which_is_said_once(
    table: Built, ways: list[str], said: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    proof._works[table.spark.sparkContext.applicationId] = True

    def broken(*_: Any) -> Any:
        raise TypeError("'JavaPackage' object is not callable")

    monkeypatch.setattr(transactions.Opened, "written", broken)
    version = table.table.version(table.spark)
    built = table.build((0, "a"), *ROWS[2:], (77, "new"))
    assert ways == ["write", "compare"]
    assert (built.version, built.previous_version, built.deletes) == (version + 1, version, 1)
    assert table.changes() == [
        ("delete", 1, "n1"),
        ("insert", 77, "new"),
        ("update_postimage", 0, "a"),
        ("update_preimage", 0, "n0"),
    ]
    table.build((0, "b"), *ROWS[2:], (77, "new"))
    assert ways[2:] == ["compare"]
    assert said == [f"{SLOWER} failed: TypeError: 'JavaPackage' object is not callable"]


def test_a_filter_that_cannot_be_made_does_not_fail_a_build_that_was_committed(
    spark: Any, tmp_path: Path, said: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    proof._works[spark.sparkContext.applicationId] = True
    monkeypatch.setattr(internals, "filter_of", lambda *_: 1 / 0)
    table = Built(spark, tmp_path, "merge", "id")
    table.build((1, "a"))
    assert table.rows() == [(1, "a")]
    assert said == [f"{SLOWER} failed: ZeroDivisionError: division by zero"]


def test_a_value_that_cannot_be_converted_is_no_fault_of_the_quick_parts(
    table: Built, said: list[str], ways: list[str]
) -> None:
    proof._works[table.spark.sparkContext.applicationId] = True
    with pytest.raises(Exception, match="CAST_INVALID_INPUT"):
        table.build(sql="SELECT CAST(id AS INT) AS id, CAST(CAST(concat('x', id) AS INT) AS STRING) AS n FROM range(9)")
    assert (ways, said) == ([], [])


def test_what_the_data_are_at_fault_for_is_told_from_what_the_quick_parts_are(spark: Any) -> None:
    from runtime.errors import BuildError

    with pytest.raises(Exception) as of_data:
        spark.sql("SELECT CAST('x' AS INT)").collect()
    with pytest.raises(Exception) as raised:
        spark.sql("SELECT raise_error('a text is spelt unlike its value')").collect()
    with pytest.raises(Exception) as of_parts:
        spark._jvm.org.apache.spark.NoSuchThing.at_all()
    blamed = [proof.is_to_blame(error) for error in (of_data.value, raised.value, BuildError("held"), of_parts.value)]
    assert blamed == [False, False, False, True]


class Changes:
    """Sources of one table, each some random changes away from the one before."""

    def __init__(self, seed: int) -> None:
        self.random, self.rows = random.Random(seed), {i: (f"n{i}", i * 10) for i in range(60)}
        self.gone: dict[int, tuple[str, int]] = {}
        self.were: dict[int, tuple[str, int]] = {}
        self.name, self.kind, self.number = "n", "INT", 60

    def step(self, what: str) -> str:
        """The next source as a query."""
        some = self.random.sample(sorted(self.rows), self.random.randint(2, 5))
        if what in ("delete", "both"):
            self.gone |= {i: self.rows.pop(i) for i in some[1:]}
        if what == "both":
            self.were = {i: self.rows[i] for i in some if i in self.rows}
            self.rows |= {i: (f"x{self.random.random()}", m + 1) for i, (_, m) in self.were.items()}
            for _ in range(self.random.randint(0, 3)):
                self.rows[self.number] = (f"n{self.number}", 7)
                self.number += 1
        if what == "back":
            self.rows |= self.gone
            self.gone = {}
        if what == "undo":
            self.rows |= self.were
        if what == "rename":
            self.name = "renamed"
        if what == "widen":
            self.kind = "BIGINT"
        values = ", ".join(f"({i}, '{n}', {m})" for i, (n, m) in self.rows.items())
        return f"SELECT id, n AS {self.name}, CAST(m AS {self.kind}) AS m FROM VALUES {values} AS t(id, n, m)"


#: Of each step, how the quick way goes about it. Where the columns are other ones than before, it joins; new rows alone
#: are inserted.
STEPS = (
    ("both", "write"),
    ("back", ""),
    ("rename", "compare"),
    ("both", "write"),
    ("widen", "compare"),
    ("undo", "write"),
    ("delete", "write"),
)


@pytest.mark.slow
def test_a_commit_in_place_says_what_a_merge_of_the_same_changes_says(
    spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, ways: list[str]
) -> None:
    monkeypatch.setattr(find, "SHARE", 1)  # everything changed when a column was renamed
    changes = Changes(seed=20_260_115)
    start = changes.step("")
    names = ("quick", "large", "plain")
    quick, large, plain = (Built(spark, tmp_path / name, "merge", "id", on_missing="delete") for name in names)
    for each in (quick, large, plain):
        each.build(sql=start)

    for what, way in STEPS:
        ways.clear()
        source, columns = changes.step(what), ("id", changes.name, "m", "__ondatra_h1", "__ondatra_h2", "__ondatra_key")
        quick.build(sql=source)
        with monkeypatch.context() as patch:
            patch.setattr(filters, "MOST_ROWS", 0)  # no table has a filter
            large.build(sql=source)
        assert ways == ([way, way] if way else []), what
        with monkeypatch.context() as patch:
            patch.setenv(FORCED, "1")
            plain.build(sql=source)
        for each in (quick, large):
            assert each.changes(*columns) == plain.changes(*columns), what
            assert each.rows(*columns) == plain.rows(*columns), what
            assert (each.last.action, each.last.deletes) == (plain.last.action, plain.last.deletes), what  # type: ignore[union-attr]

    for each in (quick, large):
        assert len(set(each.rows("__ondatra_rowid"))) == len(changes.rows)
