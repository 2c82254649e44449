"""Masks: in columns, and by value wherever else the value stands."""

from __future__ import annotations

import hashlib
import hmac

import pytest

from runtime.custody.masks import Masker
from runtime.model import Mask

KEY = "ab" * 32
MASKER = Masker([Mask("email", "hash"), Mask("phone", "last4"), Mask("name", "redact")], KEY)


def hashed(text):
    return hmac.new(bytes.fromhex(KEY), text.encode(), hashlib.sha256).hexdigest()


@pytest.mark.parametrize(
    ("column", "value", "shown"),
    [
        ("email", "ada@example.com", hashed("ada@example.com")),
        ("EMAIL", 17, hashed("17")),
        ("email", None, None),
        ("phone", "+46 70 123 45 67", "***5 67"),
        ("phone", "1234567", "***"),
        ("phone", 46701234567, "***4567"),
        ("name", "Ada", "***"),
        ("name", "", "***"),
        ("name", None, None),
        ("other", "Ada", "Ada"),
        ("name", {"a": 1}, "***"),
        ("email", 2**70, hashed(str(2**70))),
    ],
)
def test_a_value_is_shown_as_its_mask_says(column, value, shown):
    assert MASKER.value(column, value) == shown


def test_a_row_is_masked_in_its_columns_and_in_the_text_of_the_others():
    row = {
        "id": 1,
        "email": "ada@example.com",
        "name": "Ada Lovelace",
        "note": "Ada Lovelace wrote",
        "more": [{"by": "ada@example.com"}],
        "n": 5,
    }
    hidden = hashed("ada@example.com")
    assert MASKER.row(row) == {
        "id": 1,
        "email": hidden,
        "name": "***",
        "note": "*** wrote",
        "more": [{"by": hidden}],
        "n": 5,
    }


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("no Ada Lovelace here", "no *** here"),
        ("?name=Ada%20Lovelace&x", "?name=***&x"),
        ("?name=Ada+Lovelace&x", "?name=***&x"),
        ('{"say": "\\"Ace\\""}', '{"say": "***"}'),
        ("{\\u00c5sa Ek}", "{***}"),
        ("%C3%85sa%20Ek", "***"),
        ("nothing", "nothing"),
        ("", ""),
    ],
)
def test_values_are_found_plain_escaped_and_encoded(text, shown):
    rows = [{"name": "Ada Lovelace"}, {"name": '"Ace"'}, {"name": "Åsa Ek"}]
    assert MASKER.scrubber(rows)(text) == shown


def test_short_values_are_left_in_free_text():
    assert MASKER.scrubber([{"name": "Ada"}])("Ada met Bob") == "Ada met Bob"


def test_a_longer_value_wins_over_one_that_it_contains():
    assert MASKER.scrubber([{"name": "ada@"}, {"email": "ada@example.com"}])("ada@example.com") == hashed(
        "ada@example.com"
    )


def test_what_was_put_in_is_not_searched_again():
    digits = hashed("ada@example.com")[:4]
    assert MASKER.scrubber([{"email": "ada@example.com"}, {"name": digits}])("ada@example.com") == hashed(
        "ada@example.com"
    )


def test_half_a_value_at_the_end_of_a_cut_text_is_taken_away():
    scrub = MASKER.scrubber([{"name": "Ada Lovelace"}])
    assert (scrub("by Ada Lov", cut=True), scrub("by Ada Lov")) == ("by …", "by Ada Lov")


def test_without_masks_nothing_changes():
    row = {"name": "Ada Lovelace"}
    plain = Masker([], KEY)
    assert (bool(plain), plain.row(row), plain.scrubber([row])("Ada Lovelace")) == (False, row, "Ada Lovelace")
