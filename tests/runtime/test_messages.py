"""Messages are grouped by what they say, and a group's filter finds what the group counts."""

from __future__ import annotations

import json
import random
import time
from typing import Any

import duckdb
import pyarrow as pa
import pytest

from runtime.records.filter import Filter
from runtime.tracking import messages

CASES = [
    ("no contact 17 found", "no contact ‹n› found"),
    ("status -1.5% of 1,300", "status ‹n› of ‹n›"),
    ('field "name" too long (max 12)', 'field "name" too long (max ‹n›)'),
    ("bad address 'ada@example.com'", "bad address ‹text›"),
    ("bad address ada@example.com", "bad address ‹address›"),
    ("HTTP 500 from https://api.example.com/v1/x?id=3", "HTTP 500 from ‹address›"),
    ("10.0.0.1:80 refused", "‹address› refused"),
    ("id 0f8fad5b-d9cb-469f-a165-70867728950e is gone", "id ‹id› is gone"),
    ("object 5f2b8c1e9a is 0x1F", "object ‹id› is ‹id›"),
    ("timeout after 30s, 4xx", "timeout after ‹n›s, ‹n›xx"),
    ("at 2026-01-15T08:09:10Z", "at ‹time›"),
    ("don't do that, it's wrong", "don't do that, it's wrong"),
    ("two\n  lines", "two lines"),
    (" a\0b\1c ", "a b c"),
    ("", ""),
    ('422: field "year" is required', '422: field "year" is required'),
    ("status code 429, 17 waiting", "status code 429, ‹n› waiting"),
    ("answered 503 after 3 tries", "answered 503 after ‹n› tries"),
    ("ERR-1042: row 7 is locked", "ERR-1042: row ‹n› is locked"),
    ("`address_2` must be 4 letters", '"address_2" must be ‹n› letters'),
    ("name 'Ada Lovelace' is taken", "name ‹text› is taken"),
    ('{"error":{"code":"INVALID_EMAIL","message":"x@y is no address"}}', "INVALID_EMAIL · ‹address› is no address"),
    ('{"error":{"code":"DUPLICATE","message":"id 17 exists"}}', "DUPLICATE · id ‹n› exists"),
    ('{"message":"failed","status":400,"id":"a1b2c3d4"}', "failed · 400"),
    ('422: {"errors":{"email":["is invalid"],"age":["is 3"]}}', "422: email is invalid · age is ‹n›"),
    (
        '{"data":{"email":{"code":"validation_required","message":"Missing"}}}',
        "email code validation_required · Missing",
    ),
    ('{"errors": ["Pr\u00e9nom manque", "x"]}', "Pr\u00e9nom manque"),
    ('{"code": 1042, "detail": "row \\"A 1\\" of 3"}', "1042 · row ‹text› of ‹n›"),
    ('{"id": 1, "email": "a@b.c"}', '{"id": ‹n›, "email": ‹text›}'),
]
#: Messages about a row, whose own values are in none of their patterns.
ABOUT_ROWS = [
    (
        'manufacturer "ROBINSON" is unknown',
        {"tailnum": "N1", "manufacturer": "ROBINSON"},
        "manufacturer ‹text› is unknown",
    ),
    ("Contact Smith & Sons not found", {"name": "Smith & Sons", "alias": "Smith"}, "Contact ‹text› not found"),
    ("N14558 was refused", {"tailnum": "N14558"}, "‹text› was refused"),
    ("is a it", {"a": "a", "b": "it", "c": 3, "d": None}, "is a it"),
    ('{"error": "no Zo\u00eb"}', {"name": "Zo\u00eb"}, "no ‹text›"),
    ("met Ada <ada@example.com> twice", {"who": "Ada <ada@example.com>", "first": "Ada"}, "met ‹text› twice"),
    ('{"error": "see https://x.example/a\\" now"}', {"name": "now"}, "see ‹address›' ‹text›"),
]
#: An error of a whole call is that of each of its rows; it names an address, a moment or an id of one of them.
OF_A_CALL = "ada@example.com, seen 2026-01-15T08:09:10Z as 0f8fad5b-d9cb-469f-a165-70867728950e at http://x.io/ada"
ITS_ROWS = [
    {"id": 17, "mail": "ada@example.com", "at": "2026-01-15T08:09:10Z"},
    {"id": 18, "mail": "bob@example.com", "domain": "example.com", "time": "08:09", "kind": "address"},
    {"id": 19, "first": "ada", "page": "http://x.io/ada", "guid": "0f8fad5b-d9cb-469f-a165-70867728950e"},
]
#: Of these, each has its own group, however alike they look to a pattern with wildcards.
ALIKE = [
    "no row 1 at a_b",
    "no row 1 at aXb",
    "value x% of 3 refused",
    "value x and more of 3 refused",
    "order 17 refused",
    "order 'x' refused",
    "order refused",
    r"a \ b_c",
    r"a \\ b_c",
    "word " * 1_000 + "a",
    "",
    "it's 5 o'clock",
]


def pattern_of(message: str, payload: str | None = None) -> str:
    return str(messages.patterns(pa.array([message], pa.string()), pa.array([payload], pa.string()))[0].as_py())


def found_by(pattern: str, said: list[str]) -> list[str]:
    """What the filter of a group finds among messages."""
    where, values = Filter(pattern=pattern).where()
    told = {"status_message": pa.array(said, pa.string()), "record_payload": pa.nulls(len(said), pa.string())}
    found = pa.table(told)  # noqa: F841, DuckDB reads it by its name
    return [row[0] for row in duckdb.execute(f"SELECT status_message FROM found WHERE {where}", values).fetchall()]


@pytest.mark.parametrize(("message", "expected"), CASES)
def test_what_differs_becomes_a_placeholder(message: str, expected: str) -> None:
    assert pattern_of(message) == expected


@pytest.mark.parametrize(("message", "row", "expected"), ABOUT_ROWS)
def test_the_values_of_the_row_itself_tell_no_causes_apart(message: str, row: dict[str, Any], expected: str) -> None:
    assert pattern_of(message, json.dumps(row, ensure_ascii=False)) == expected


def test_an_error_of_a_whole_call_is_one_group_whichever_row_it_names() -> None:
    patterns = {pattern_of(OF_A_CALL, json.dumps(row)) for row in ITS_ROWS}
    assert patterns == {"‹address›, seen ‹time› as ‹id› at ‹address›"}


def test_a_group_finds_the_records_whose_own_values_it_left_out() -> None:
    said = [(m, json.dumps(row, ensure_ascii=False)) for m, row, _ in ABOUT_ROWS] + [("N14559 was refused", "{}")]
    said += [(OF_A_CALL, json.dumps(row)) for row in ITS_ROWS]
    for message, payload in said:
        pattern = pattern_of(message, payload)
        where, values = Filter(pattern=pattern).where()
        told = {"status_message": [m for m, _ in said], "record_payload": [p for _, p in said]}
        found = pa.table(told)  # noqa: F841, DuckDB reads it by its name
        rows = duckdb.execute(f"SELECT status_message FROM found WHERE {where}", values).fetchall()
        assert [r[0] for r in rows] == [m for m, p in said if pattern_of(m, p) == pattern]


def test_a_long_message_gives_a_short_pattern() -> None:
    assert len(pattern_of("word " * 100_000)) == messages.LONGEST_PATTERN


def test_no_message_has_no_pattern() -> None:
    assert messages.patterns(pa.array([None, "a 1"], pa.string())).to_pylist() == [None, "a ‹n›"]


@pytest.mark.parametrize("message", ["123456-" * 280, "a1-" * 1_000_000, "'" * 100_000, "1" * 100_000, "\\" * 100_000])
def test_a_message_made_to_be_slow_is_grouped_at_once(message: str) -> None:
    began = time.process_time()
    pattern_of(message)
    assert time.process_time() - began < 0.5


@pytest.mark.parametrize("message", [*ALIKE, *(message for message, _ in CASES)])
def test_a_group_finds_its_own_message_and_no_other_that_looks_alike(message: str) -> None:
    said = [*ALIKE, *(message for message, _ in CASES)]
    pattern = pattern_of(message)
    assert found_by(pattern, said) == [text for text in said if pattern_of(text) == pattern]


def test_of_two_long_messages_that_begin_alike_a_group_finds_both() -> None:
    said = ["word " * 1_000 + "a", "word " * 1_000 + "b", "word " * 99 + "word"]
    assert found_by(pattern_of(said[0]), said) == said[:2]


def test_duckdb_and_arrow_agree_on_the_pattern_of_any_text() -> None:
    letters = [*"ab1-_'\"`.@:/% ‹n›“”«»éK0x+\\\n\0\1\2\3\4\5\ue000,{}[]$^|()*?2026-01-15T\u2028ſ"]
    letters += ['"error":', '"code": "E12', '{"x":["', '\\"', "422", "status 503", '"a_2"', "ERR-77", "'name'"]
    drawn = random.Random(7)
    said = ["".join(drawn.choice(letters) for _ in range(drawn.randrange(60))) for _ in range(20_000)]
    condition = messages.has_pattern("said", "x" * messages.LONGEST_PATTERN)
    patterns = messages.patterns(pa.array(said, pa.string()))
    found = pa.table({"said": said, "p": patterns})  # noqa: F841, DuckDB reads it by its name
    query = f"SELECT said FROM found WHERE NOT ({condition.replace('$pattern', 'p')})"
    assert duckdb.execute(query).fetchall() == []


def test_the_quick_look_passes_every_message_of_the_group() -> None:
    letters = [*"ab1-_'\". %\\\n\0‹n›", '{"error":"', '"code": 42', '{"e":["x_y"]}', '\\"']
    drawn = random.Random(11)
    said = ["".join(drawn.choice(letters) for _ in range(drawn.randrange(30))) for _ in range(20_000)]
    like = [messages.like(pattern) for pattern in messages.patterns(pa.array(said, pa.string())).to_pylist()]
    found = pa.table({"said": said, "quick": like})  # noqa: F841, DuckDB reads it by its name
    query = r"SELECT said FROM found WHERE NOT (said LIKE quick ESCAPE '\')"
    assert duckdb.execute(query).fetchall() == []
