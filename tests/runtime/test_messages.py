"""Messages are grouped by what they say."""

from __future__ import annotations

import duckdb
import pytest

from runtime.tracking import messages


@pytest.mark.parametrize(
    ("message", "expected"),
    [
        ("no contact 17 found", "no contact ‹n› found"),
        ("status -1.5% of 1,300", "status ‹n› of ‹n›"),
        ('field "name" too long (max 12)', "field ‹text› too long (max ‹n›)"),
        ("bad address 'ada@example.com'", "bad address ‹text›"),
        ("bad address ada@example.com", "bad address ‹address›"),
        ("HTTP 500 from https://api.example.com/v1/x?id=3", "HTTP ‹n› from ‹address›"),
        ("10.0.0.1:80 refused", "‹address› refused"),
        ("id 0f8fad5b-d9cb-469f-a165-70867728950e is gone", "id ‹id› is gone"),
        ("object 5f2b8c1e9a is 0x1F", "object ‹id› is ‹id›"),
        ("at 2026-01-15T08:09:10Z", "at ‹time›"),
        ("don't do that, it's wrong", "don't do that, it's wrong"),
        ("two\n  lines", "two lines"),
        ("", ""),
    ],
)
def test_what_differs_becomes_a_placeholder(message, expected):
    assert messages.pattern(message) == expected


def test_a_long_message_gives_a_short_pattern():
    assert len(messages.pattern("word " * 100_000)) == messages.LONGEST_PATTERN


@pytest.mark.parametrize(
    "message",
    ["no contact 17 found", 'field "a_b" is 5% too long', "two\n  lines of 100%", r"a \ b_c", "word " * 1_000],
)
def test_the_messages_of_a_group_match_its_like_pattern(message):
    pattern = messages.like(messages.pattern(message))
    assert duckdb.execute(
        r"SELECT $m LIKE $p ESCAPE '\', 'something else' LIKE $p ESCAPE '\'", {"m": message, "p": pattern}
    ).fetchone() == (True, False)
