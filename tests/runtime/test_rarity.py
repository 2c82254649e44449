"""The part of a text that is looked for first: what holds the text holds the part, in whatever case."""

from __future__ import annotations

import pytest

from runtime.records import rarity

PAYLOADS = ['{"id": 1, "email": "ada@example.com"}', '{"id": 2, "email": "BOB@example.com"}']


@pytest.mark.parametrize(
    ("text", "forms"),
    [
        ("person4711@example", ("4711@",)),  # no case at all, and in none
        ("such words", (" W", " w")),  # a few cases
        ("email", ()),  # in all of them
        ("kik", ()),  # letters that are also the lower case of others
        ("é", ()),
        ("", ()),
    ],
)
def test_what_is_rare_and_has_few_cases_is_looked_for_first(text: str, forms: tuple[str, ...]) -> None:
    found = rarity.part_of(text, PAYLOADS)
    assert sorted(found) == sorted(forms) or not forms and found == ()


def test_without_a_sample_nothing_is_guessed() -> None:
    assert rarity.part_of("4711", []) == ()
