"""One model file: its name, its header, and what is said of mistakes."""

from __future__ import annotations

from pathlib import Path

import pytest

from runtime.model import Mask, MaxDeletes, Model, Sink
from runtime.project.directives import parse_model


def parse(tmp_path: Path, text: str, name: str = "sync/out") -> tuple[Model | None, list[tuple[int, str]]]:
    path = tmp_path / f"models/{name}.sql"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8", newline="")
    model, problems = parse_model(path, tmp_path)
    return model, [(p.line, p.message) for p in problems]


def test_a_file_with_every_directive_becomes_one_model(tmp_path: Path) -> None:
    model, problems = parse(
        tmp_path,
        '''-- @kind: Merge
-- @push: crm('a, b', "it's ""new""")
-- @unique_key: id, "Region"
-- @identifier: email
-- @on_missing: delete
-- @max_deletes: 50%
-- @renamed_from: People
-- @mask: email:hash, phone
-- @schedule: every 15m
-- @retention: 30
-- @description: People: all of them
-- @tags: crm, daily
-- @dialect: spark

-- the body
SELECT id
FROM t ;
''',
    )
    assert problems == []
    assert model == Model(
        name="sync.out",
        file="models/sync/out.sql",
        path=tmp_path / "models/sync/out.sql",
        sql="SELECT id\nFROM t",
        sql_line=16,
        kind="merge",
        key=("id", "Region"),
        sink=Sink("crm", ("a, b", 'it\'s "new"')),
        identifier="email",
        on_missing="delete",
        max_deletes=MaxDeletes(50, True),
        renamed_from="main.people",
        masks=(Mask("email", "hash"), Mask("phone")),
        schedule="every 15m",
        retention=30,
        description="People: all of them",
        tags=("crm", "daily"),
        dialect="spark",
    )


def test_columns_are_named_as_in_sql_whatever_their_characters(tmp_path: Path) -> None:
    model, problems = parse(
        tmp_path,
        '''-- @kind: merge
-- @unique_key: "a, b", two words, "say ""hi"""
-- @identifier: "a, b"
-- @mask: "x: y", "a, b":hash, two words : hash
SELECT 1 AS id
''',
    )
    assert problems == []
    assert model is not None
    assert (model.key, model.identifier) == (("a, b", "two words", 'say "hi"'), "a, b")
    assert model.masks == (Mask("x: y"), Mask("a, b", "hash"), Mask("two words", "hash"))


def test_a_file_at_the_top_is_in_main_and_names_compare_without_case(tmp_path: Path) -> None:
    model, problems = parse(tmp_path, "SELECT 1 AS id", "Two")
    assert (model and model.name, model and model.kind, problems) == ("main.two", "table", [])


def test_windows_line_ends_and_a_byte_order_mark_are_read(tmp_path: Path) -> None:
    model, problems = parse(tmp_path, "\ufeff-- @kind: merge\r\n-- @unique_key: id\r\nSELECT 1 AS id,\r\n  2 AS n;\r\n")
    assert (model and (model.kind, model.sql, model.sql_line), problems) == (
        ("merge", "SELECT 1 AS id,\n  2 AS n", 3),
        [],
    )


def test_a_text_keeps_its_unicode_line_separators(tmp_path: Path) -> None:
    model, _ = parse(tmp_path, "SELECT 'a\u2028b' AS id")
    assert model and model.sql == "SELECT 'a\u2028b' AS id"


@pytest.mark.parametrize(
    "line, words",
    [
        ("@kind: cube", ["'cube'", "table, append, merge, tracked, scd2, partition"]),
        ("@kind: events", ["events", "no sink"]),
        ("@sink:", ["function in lib/", "''"]),
        ("@sink: crm(a)", ["quoted texts", "(a)"]),
        ("@sink crm", ["@sink needs a colon"]),
        ("@identifier: a, b", ["one column", "'a, b'"]),
        ("@max_deletes: 101%", ["500 or 50%", "'101%'"]),
        ("@renamed_from: a.b.c", ["old name", "'a.b.c'"]),
        ("@mask: email:rot13", ["column:last4", "'email:rot13'"]),
        ("@mask: email:", ["column:last4", "'email:'"]),
        ("@mask: email, Email:hash", ["twice", "'Email'"]),
        ("@schedule: 0 0 31 2 *", ["'0 0 31 2 *' never does"]),
        ("@schedule: sometimes", ["'every 15m'", "'sometimes'"]),
        ("@retention: 0", ["days", "'0'"]),
        ("@tags: a,,b", ["a tag, or several separated by commas", "'a,,b'"]),
        ("@dialect: mysql", ["duckdb or spark", "'mysql'"]),
        ("@color: red", ["@color is no directive", "kind"]),
        ("@retantion: 3", ["did you mean @retention"]),
        ("@group_key: a", ["@group_key goes with tracked, not with table"]),
        ("@on_missing: delete", ["@on_missing goes with merge, not with table"]),
        ("@unique_key: a", ["@unique_key", "not with table"]),
    ],
)
def test_a_wrong_line_is_a_problem_that_says_what_was_found_and_expected(
    tmp_path: Path, line: str, words: list[str]
) -> None:
    _, problems = parse(tmp_path, f"-- a comment\n-- {line}\nSELECT 1 AS a")
    assert len(problems) == 1 and problems[0][0] == 2
    assert [w for w in words if w not in problems[0][1]] == []


def test_every_problem_of_a_header_is_found_at_once(tmp_path: Path) -> None:
    _, problems = parse(tmp_path, "-- @kind: merge\n-- @retention: x\n-- @kind: table\nSELECT 1 AS a\n-- @mask: a")
    assert sorted(problems) == [
        (1, "kind merge needs @unique_key: column"),
        (2, "@retention: a number of days from 1 on is expected; found 'x'"),
        (3, "@kind is repeated: it stands on line 1 already"),
        (5, "@mask stands after the SELECT: directives belong above it"),
    ]


def test_two_directives_for_one_key_are_a_problem(tmp_path: Path) -> None:
    _, problems = parse(tmp_path, "-- @kind: tracked\n-- @group_key: a\n-- @unique_key: a\nSELECT 1 AS a")
    assert problems == [(3, "@group_key and @unique_key say the same: give one of them")]


def test_block_comments_above_the_select_are_comments(tmp_path: Path) -> None:
    model, problems = parse(
        tmp_path,
        "/* ours\n-- @kind: merge\n*/ -- @retention: 3\n/* a */ /* b */\n-- @kind: append\n/* c */ SELECT 1 AS a -- @x",
    )
    assert problems == [] and model is not None and (model.kind, model.retention, model.sql_line) == ("append", 3, 6)


def test_a_header_without_a_select_makes_no_model(tmp_path: Path) -> None:
    assert parse(tmp_path, "-- @kind: table\n") == (None, [(2, "there is no SELECT after the header")])


@pytest.mark.parametrize(
    "name, word", [("sync/1st", "'1st'"), ("my-sync/out", "'my-sync'"), ("a/b/out", "a/b is deeper")]
)
def test_a_name_that_is_no_identifier_makes_no_model(tmp_path: Path, name: str, word: str) -> None:
    model, problems = parse(tmp_path, "SELECT 1 AS a", name)
    assert model is None and len(problems) == 1 and problems[0][0] == 1 and word in problems[0][1]


def test_a_file_that_is_not_utf_8_is_a_problem(tmp_path: Path) -> None:
    path = tmp_path / "models/out.sql"
    path.parent.mkdir()
    for text in (b"SELECT 1,\n'\xff' AS a", b"SELECT 1,\n'a\0' AS a"):
        path.write_bytes(text)
        model, (problem,) = parse_model(path, tmp_path)
        assert (
            model is None
            and problem.line == 2
            and problem.message.endswith("save it as UTF-8" if b"\xff" in text else "save it as UTF-8 text")
        )
