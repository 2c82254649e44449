"""Secrets are removed by value from text, by name from headers."""

from __future__ import annotations

import base64
import html
import json
import time
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
        json.dumps(SECRET)[1:-1].replace("/", r"\/"),
        json.dumps(json.dumps(SECRET))[3:-3],
        quote(json.dumps(SECRET)[1:-1]),
        quote(SECRET, safe="").lower().replace("%c3%b6", "%C3%b6"),
        quote(quote(SECRET, safe="")),
        "".join(f"%{byte:02x}" for byte in SECRET.encode()),
        "".join(f"\\u{ord(c):04X}" for c in SECRET),
        html.escape(SECRET),
        "".join(f"&#x{ord(c):x};" for c in SECRET),
        SECRET.encode().hex(),
        SECRET.encode().hex().upper(),
        base64.b64encode(SECRET.encode()).decode(),
        base64.urlsafe_b64encode(SECRET.encode()).decode(),
        json.dumps(base64.b64encode(SECRET.encode()).decode())[1:-1].replace("/", r"\/"),
    ],
)
def test_each_form_of_a_secret_is_removed(redactor: Redactor, form: str) -> None:
    assert redactor.text(f"a {form} b {form}") == "a *** b ***"


@pytest.mark.parametrize("before", ["user:", "a", "ab", "abc", "Ω: "])
@pytest.mark.parametrize("after", ["", "x", "xy", " and more"])
def test_base64_of_a_text_that_holds_a_secret_is_removed(before: str, after: str) -> None:
    redactor = Redactor()
    redactor.add("ab/cd+ef")
    data = f"{before}ab/cd+ef{after}".encode()
    for encoded in (base64.b64encode(data).decode(), base64.urlsafe_b64encode(data).decode()):
        assert redactor.text(f"Basic {encoded}, {quote(encoded, safe='')}.") == "Basic ***, ***."


def test_what_only_looks_alike_stays(redactor: Redactor) -> None:
    text = r'C:\new %41 100% &amp; {"a": "\u00e9\/"} ' + base64.b64encode(b"something else").decode()
    assert redactor.text(text) == text


def test_large_texts_with_many_escapes_are_looked_through_quickly(redactor: Redactor) -> None:
    began = time.thread_time()
    for text in ("\\" * 32_000, "%25" * 21_000, "&amp;" * 13_000, "QUJD" * 16_000, json.dumps("é\n" * 8_000)):
        redactor.body(text)
    assert time.thread_time() - began < 2


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
