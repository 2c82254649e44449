"""What a build remembers beside its table."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from runtime.lake.digest import Digest
from runtime.lake.note import KeptFilters, Lost, Note, Shape

#: A file as earlier versions wrote it.
EARLIER = """{"version": 7, "shape": [1, "merge", ["id"]], "asked": [1, "merge", ["id"], "delete"],
    "columns": [["id", "int"], ["n", "string"]], "digest": "1f", "invalid": 2, "invalid_digest": "2e",
    "source": [40, -5, 6, 7], "filter": {"files": ["filter-a", "filter-b"], "on": "__ondatra_h2",
    "hashes": ["filter-c"], "rows": 38, "added": 3}, "first": "3d", "changed": 3}"""
KNOWN = Note(
    version=7,
    shape=Shape(1, "merge", ("id",)),
    on_missing="delete",
    columns=(("id", "int"), ("n", "string")),
    digest="1f",
    invalid=2,
    invalid_digest="2e",
    source=Digest(40, -5, 6, 7),
    filters=KeptFilters("filter-a", "filter-b", "__ondatra_h2", ("filter-c",), 38, 3),
    first="3d",
    changed=3,
)


def test_a_note_of_an_earlier_version_is_read() -> None:
    assert Note.of(EARLIER) == KNOWN


def test_a_note_says_what_an_earlier_version_reads() -> None:
    assert json.loads(KNOWN.text) == json.loads(EARLIER)


def test_columns_that_were_lost_on_the_way_are_remembered() -> None:
    note = Note(shape=Shape(1, "table", ()), lost=Lost(3, ("n", "m")))
    assert Note.of(note.text) == note


def test_filters_of_the_time_when_there_was_one_for_each_build_are_none() -> None:
    earlier = json.loads(EARLIER)
    del earlier["filter"]["hashes"]
    assert Note.of(json.dumps(earlier)) == replace(KNOWN, filters=None)


@pytest.mark.parametrize(
    "text", ["", "{", "[]", "7", '{"source": [1, 2]}', '{"shape": [1]}', '{"version": 7, "filter": {"hashes": 1}}']
)
def test_a_note_that_cannot_be_understood_says_nothing(text: str) -> None:
    assert Note.of(text) == Note()


def test_a_digest_less_rows_and_plus_others_is_that_of_what_is_there_then() -> None:
    one, other, third = Digest(1, 5, 9, 3), Digest(1, 6, -9, 4), Digest(2, 7, 1, 8)
    assert one + other - one + third == other + third == Digest(3, 1, -10, 12)


def test_the_text_of_a_digest_stays_what_it_was_so_that_an_upgrade_builds_nothing() -> None:
    assert Digest(40, -5, 6, 7).text == "37ef180cb09cb6b87d7def751d74a5ba23aa8bb637abc553cf6495cb31ad3552"
