"""Secrets are removed by value from text, by name from headers."""

from __future__ import annotations

import base64
import json
from urllib.parse import quote, quote_plus

import pytest

from runtime.custody.redact import Redactor

SECRET = 'p@ss "w/ö+rd\\'


@pytest.fixture
def redactor() -> Redactor:
    made = Redactor()
    made.add(SECRET)
    return made


@pytest.mark.parametrize(
    "form",
    [
        SECRET,
        quote(SECRET),
        quote(SECRET, safe=""),
        quote_plus(SECRET),
        json.dumps(SECRET)[1:-1],
        json.dumps(SECRET, ensure_ascii=False)[1:-1],
        base64.b64encode(SECRET.encode()).decode(),
    ],
)
def test_each_form_of_a_secret_is_removed(redactor: Redactor, form: str) -> None:
    assert redactor.text(f"a {form} b {form}") == "a *** b ***"


def test_the_header_that_basic_makes_of_a_password_is_removed() -> None:
    redactor = Redactor()
    redactor.add_basic("me", "word-of-mine")
    assert redactor.text("Basic " + base64.b64encode(b"me:word-of-mine").decode()) == "Basic ***"


def test_the_longer_of_two_secrets_goes_first(redactor: Redactor) -> None:
    redactor.add("abc")
    redactor.add("abcdef")
    assert redactor.text("abcdef abc") == "*** ***"


def test_an_empty_secret_removes_nothing() -> None:
    redactor = Redactor()
    redactor.add("")
    assert redactor.text("text") == "text"


def test_headers_lose_their_value_by_name_and_others_by_value(redactor: Redactor) -> None:
    hidden = [
        "Authorization",
        "Cookie",
        "Set-Cookie",
        "X-Api-Key",
        "x-auth-user",
        "X-Token",
        "My-Secret",
        "X-Signature",
    ]
    assert redactor.headers({**dict.fromkeys(hidden, "v"), "X-Echo": SECRET, "Accept": "*/*"}) == {
        **dict.fromkeys(hidden, "***"),
        "X-Echo": "***",
        "Accept": "*/*",
    }


def test_a_body_is_cut_at_64_kib_of_bytes(redactor: Redactor) -> None:
    assert [len(redactor.body(text).encode()) for text in ("x" * 70_000, "é" * 40_000, "short")] == [65536, 65536, 5]


def test_a_secret_across_the_cut_leaves_nothing_of_itself(redactor: Redactor) -> None:
    assert redactor.body("x" * 65_534 + SECRET + "y") == "x" * 65_534 + "**"
