"""The part of a text that is looked for first: what holds the text holds the part, in whatever case."""

from __future__ import annotations

import duckdb
import pytest

from runtime.records import rarity, searching

PAYLOADS = ['{"id": 1, "email": "ada@example.com"}', '{"id": 2, "email": "BOB@example.com"}']


@pytest.mark.parametrize(
    ("text", "forms"),
    [
        ("person4711@example", ("4711@",)),  # no case at all, and in none
        ("such words", ("H ", "h ")),  # a few cases
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


TEXTS = [
    '{"name":"Ada Lovelace","city":"İstanbul"}',
    '{"name":"ADA LOVELACE","unit":"\u212a"}',  # the sign of Kelvin, whose lower case is k
    '{"name":"bob 4711@example.com"}',
    '{"name":"straße \\"x\\" 50%"}',
    "",
]


@pytest.mark.parametrize(
    "text", ["ada", "ADA L", "4711@E", "istanbul", "k", "xyz", 'e "X', "50%", "ß", "{", "lovelace", "name", "É"]
)
@pytest.mark.parametrize("within", ["message", "payload"])
def test_a_sample_changes_nothing_of_what_is_found(text: str, within: str) -> None:
    def found(sample: list[str]) -> list[tuple[str]]:
        sql, values = searching.condition(text, within, "anywhere", sample)
        table = f"(SELECT unnest($texts) AS {searching.COLUMNS[within]})"
        return duckdb.execute(f"SELECT * FROM {table} WHERE {sql}", {"texts": TEXTS, **values}).fetchall()

    assert all(found(sample) == found([]) for sample in (TEXTS, TEXTS[:1], TEXTS[1:3], PAYLOADS))
