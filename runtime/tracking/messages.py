"""Messages that tell of one cause are one group: `422: field "year" is required`, `no contact ‹n› at ‹address›`.

What a message has in common with others of its sort, its pattern, keeps what tells causes apart (status codes, error
codes, keys, names of fields) and loses what differs from row to row: the values of the row itself, numbers, ids,
moments, addresses, quoted text. A JSON answer is read for the fields that say what went wrong, not for its shape.

A pattern is made by a few replacements in order. They are regular expressions of RE2, which takes linear time: pyarrow
runs them where records are written, and DuckDB where a group is looked at, so that a group's filter finds exactly the
records that were counted.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import islice

import orjson
import pyarrow as pa
import pyarrow.compute as pc

#: So many characters of a message are looked at; a pattern is a heading, not a text.
LOOKED_AT = 8_192
LONGEST_PATTERN = 500
PLACEHOLDERS = ("‹address›", "‹time›", "‹id›", "‹text›", "‹n›")
#: Values of a row that may stand in its message: shorter ones are words by chance.
SHORTEST_VALUE = 3
#: So many things that a JSON answer says make its pattern.
MOST_SAID = 8

#: Around a word of six letters or more while it is looked at; no text has these four after the first step.
_OPEN, _CLOSE = "\x01", "\x02"
#: Before digits that stay, and around quoted names that stay.
_STAYS, _NAME, _END = "\x03", "\x04", "\x05"
#: What stands for these until the end, when they are written so.
_APART = {"\x06": "‹address›", "\x07": "‹time›", "\x08": "‹id›"}
_ADDRESS, _TIME, _ID = _APART
_CLEAN = (
    # white space, and what PostgreSQL has no text for
    (r"[\x00-\x20]*[\x00-\x1f][\x00-\x20]*| {2,}", " "),
    (r"^ | $", ""),
)
# before the values of a row are left out: an error of a whole call names one row's address to all of them, and part of
# it, a first name or a domain, may be a value of any of them
_FIRST = (
    (
        r"""\b[A-Za-z][A-Za-z0-9+.-]*://[^ "'<>\\]+"""
        r"""|[\w.+-]+@[\w-]+(?:\.[\w-]+)*"""
        r"""|\b\d{1,3}(?:\.\d{1,3}){3}(?::\d+)?\b""",
        _ADDRESS,
    ),
    (r"\b\d{4}-\d\d-\d\d(?:[Tt ]\d\d:\d\d(?::\d\d(?:\.\d+)?)?(?:[Zz]|[+-]\d\d:?\d\d)?)?", _TIME),
    (r"\b[0-9A-Fa-f]{8}(?:-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12}\b|\b0[Xx][0-9A-Fa-f]+\b", _ID),
)
_NUMBER = r"\d+(?:[.,:]\d+)*%?"
_STEPS = (
    (r" {2,}", " "),
    (r"^ | $", ""),
    (r"^([1-5]\d\d)\b", rf"{_STAYS}\1"),
    (r"((?:HTTP|http|[Ss]tatus|[Cc]ode|[Ee]rror|returned|answered)(?: code)?[ :=]+)([1-5]\d\d)\b", rf"\1{_STAYS}\2"),
    (r"\b((?:E|ERR|ERROR|CODE|SQLSTATE|ORA|AADSTS|INVALID)[-_ ]?)(\d{2,6})\b", rf"\1{_STAYS}\2"),
    # a word with a letter somewhere behind a digit is an id, if it is not as short as 30s or 4xx
    (r"\b([A-Za-z0-9][\w-]{5,})\b", rf"{_OPEN}\1{_CLOSE}"),
    (r"\x01[\w-]*\d[\w-]*[A-Za-z][\w-]*\x02", "‹id›"),
    (r"[\x01\x02]", ""),
    # a quoted name stays, as names of fields are: "year", 'address_2', `user.email`
    (r"""(?:"|`|\B')([A-Za-z_$][A-Za-z_.$\[\]-]{0,60}_)(\d{1,2})(?:"|`|'\B)""", rf"{_NAME}\1{_STAYS}\2{_END}"),
    (r"""(?:"|`|\B')([A-Za-z_$][A-Za-z_.$\[\]-]{0,60})(?:"|`|'\B)""", rf"{_NAME}\1{_END}"),
    (
        r'''"(?:[^"\\]|\\.)*"'''
        r"""|`[^`]*`"""
        r"""|\B'(?:[^'\\]|\\.)*'\B"""
        r"""|“[^”]*”|‘[^’]*’|«[^»]*»""",
        "‹text›",
    ),
    (rf"(^|[^\x03\w])[+-]?{_NUMBER}", r"\1‹n›"),
    (rf"([A-Za-z_]){_NUMBER}", r"\1‹n›"),
    (r"\x03", ""),
    (r"[\x04\x05]", '"'),
    *_APART.items(),
)

# What a JSON answer says: the fields that name an error, and fields that have a list of complaints or one of their own.
_KEYS = (
    "error|errors|error_code|errorCode|error_type|error_message|errorMessage|error_description|code|status|statusCode"
    "|status_code|type|title|message|messages|msg|detail|details|description|reason|field|param|parameter|pointer|path"
)
_GAP = r"[\t\n\f\r ]*"
_TEXT = r'"(?:[^"\\]|\\[\S\s])*"'
_SAID = (
    rf'"(?:{_KEYS})"{_GAP}:{_GAP}\[?{_GAP}(?:{_TEXT}|-?\d+)'
    rf'|"[A-Za-z_][\w.-]*"{_GAP}:{_GAP}\[{_GAP}{_TEXT}'
    rf'|"[A-Za-z_][\w.-]*"{_GAP}:{_GAP}\{{{_GAP}"(?:code|message|error|type|msg)"{_GAP}:{_GAP}{_TEXT}'
)
#: Each thing said: its escaped quotes, the digits of a code, the keys that only say what it is, its punctuation.
_THING = (
    (r'\\"', "'"),
    (
        rf'^("(?:code|error_code|errorCode|status|statusCode|status_code|type)"{_GAP}:{_GAP}"?[^"\d]*)(\d+)',
        rf"\1{_STAYS}\2",
    ),
    (rf'^"(?:{_KEYS})"{_GAP}:{_GAP}\[?\{{?{_GAP}', ""),
    (rf'^"(?:{_KEYS})"{_GAP}:{_GAP}\[?{_GAP}', ""),
    (r'["\t\n\f\r :\[{]+', " "),
    (r"^ +| +$", ""),
)
_BEFORE, _JSON = r"^[^{\[]*", r"[{\[][\S\s]*"
_JOINED = " · "


def patterns(messages: pa.Array, payloads: pa.Array | None = None) -> pa.Array:
    """The pattern of each message; null for none. `payloads` are the rows that the messages are about, as JSON."""
    told = _replaced(pc.utf8_slice_codeunits(messages, 0, LOOKED_AT), *_CLEAN, *_FIRST)
    rows = payloads if payloads is not None else pa.nulls(len(told), pa.string())
    said = pa.array(_without_rows(told, rows), pa.string()).dictionary_encode()
    words = _replaced(said.dictionary, *_STEPS)  # many rows say one thing

    short = pc.binary_join_element_wise(pc.utf8_slice_codeunits(words, 0, LONGEST_PATTERN - 1), "…", "")
    return pc.if_else(pc.greater(pc.utf8_length(words), LONGEST_PATTERN), short, words).take(said.indices)


def _replaced(texts: pa.Array, *steps: tuple[str, str]) -> pa.Array:
    for expression, written in steps:
        texts = pc.replace_substring_regex(texts, expression, written)
    return texts


def _without_rows(messages: pa.Array, payloads: pa.Array) -> Iterator[str | None]:
    """The messages without the values of their rows, and of JSON only what it says."""
    rows = [_texts(payload) for payload in payloads.to_pylist()]
    values = iter(_replaced(pa.array([v for row in rows for v in row], pa.string()), *_FIRST).to_pylist())
    for message, row in zip(messages.to_pylist(), rows, strict=True):
        own = set(islice(values, len(row)))
        if message is None:
            yield None
            continue

        worth = [v for v in own if len(v) >= SHORTEST_VALUE and any(map(str.isalpha, v))]
        for value in sorted(worth, key=lambda v: (-len(v), v)):
            message = message.replace(value, "‹text›")
        yield _said_by_json(message)


def _texts(payload: str | None) -> list[str]:
    """Those of a row, in JSON."""
    try:
        row = orjson.loads(payload or "null")
    except orjson.JSONDecodeError:
        return []
    return [v for v in row.values() if isinstance(v, str)] if isinstance(row, dict) else []


def _said_by_json(message: str) -> str:
    json = re.search(_JSON, message)
    things = re.findall(_SAID, json[0], re.ASCII) if json else []
    if not json or not things:
        return message

    for expression, written in _THING:
        things = [re.sub(expression, written, thing, flags=re.ASCII) for thing in things]
    return f"{message[: json.start()]} " + _JOINED.join(list(dict.fromkeys(things))[:MOST_SAID])


def has_pattern(column: str, pattern: str, payload: str = "NULL") -> str:
    """The condition, in DuckDB's SQL, that the messages of a column have this pattern, which is bound as $pattern.
    `payload` is the column of the rows that they are about."""
    told = _sql_replaced(f"left({column}, {LOOKED_AT})", *_CLEAN, *_FIRST)
    said = _sql_without_rows(told, payload)
    things = f"regexp_extract_all(regexp_extract(m, {_literal(_JSON)}), {_literal(_SAID)})"
    thing = _sql_replaced("t", *_THING)
    apart = f"list_filter(l, lambda x, i: list_position(l, x) = i)[:{MOST_SAID}]"
    once = f"list_transform([list_transform({things}, lambda t: {thing})], lambda l: {apart})[1]"
    joined = f"array_to_string({once}, {_literal(_JOINED)})"
    read = f"if(len({things}) = 0, m, regexp_extract(m, {_literal(_BEFORE)}) || ' ' || {joined})"
    said = _sql_replaced(f"list_transform([{said}], lambda m: {read})[1]", *_STEPS)

    if len(pattern) == LONGEST_PATTERN:
        said = f"if(length({said}) > {LONGEST_PATTERN}, left({said}, {LONGEST_PATTERN - 1}) || '…', {said})"
    return f"{said} = $pattern"


def _sql_replaced(text: str, *steps: tuple[str, str]) -> str:
    for expression, written in steps:
        text = f"regexp_replace({text}, {_literal(expression)}, {_literal(written)}, 'g')"
    return text


def _sql_without_rows(told: str, payload: str) -> str:
    """DuckDB's SQL for a message without the values of its row."""
    if payload == "NULL":
        return told
    texts = f"list_filter(json_extract(try_cast({payload} AS JSON), '$.*'), lambda v: json_type(v) = 'VARCHAR')"
    own = _sql_replaced("(v ->> '$')", *_FIRST)
    plain = f"list_distinct(list_transform({texts}, lambda v: {own}))"
    worth = f"list_filter({plain}, lambda v: length(v) >= {SHORTEST_VALUE} AND regexp_matches(v, '\\p{{L}}'))"
    ordered = f"list_sort(list_transform({worth}, lambda v: {{'n': -length(v), 'v': v}}))"
    values = f"list_transform({ordered}, lambda s: s.v)"
    return f"list_reduce(list_prepend({told}, coalesce({values}, [])), lambda a, v: replace(a, v, '‹text›'))"


def like(said: str) -> str:
    r"""A LIKE pattern (escape `\`) that all messages of a group match, and others too: for a quick look."""
    text = said.removesuffix("…")
    for placeholder in PLACEHOLDERS:
        text = text.replace(placeholder, "%")
    # what a JSON answer says stands between punctuation, and escaped quotes were written plain
    words = [re.sub(r"([\\_])", r"\\\1", word) for word in re.split(r"[^\w]+", text) if word]
    return f"%{'%'.join(words)}%" if words else "%"


def _literal(text: str) -> str:
    parts = ("'" + part.replace("'", "''") + "'" for part in re.split(r"([\x01-\x08])", text) if part)
    return " || ".join(f"chr({ord(part[1])})" if "\x01" <= part[1] <= "\x08" else part for part in parts) or "''"
