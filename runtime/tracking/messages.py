"""Messages that differ only in numbers, ids, quoted text and addresses are one group: `no contact ‹n› at ‹address›`.

What a message has in common with others of its sort, its pattern, is made by a few replacements in order. They are
regular expressions of RE2, which takes linear time: pyarrow runs them where records are written, and DuckDB where a
group is looked at, so that a group's filter finds exactly the messages that were counted.
"""

from __future__ import annotations

import re

import pyarrow as pa
import pyarrow.compute as pc

#: So many characters of a message are looked at; a pattern is a heading, not a text.
LOOKED_AT = 8_192
LONGEST_PATTERN = 500
PLACEHOLDERS = ("‹address›", "‹time›", "‹id›", "‹text›", "‹n›")

#: Around a word while it is looked at; no text has them after the first step.
_OPEN, _CLOSE = "\x01", "\x02"
_STEPS = (
    # white space, and what PostgreSQL has no text for
    (r"[\x00-\x20]*[\x00-\x1f][\x00-\x20]*| {2,}", " "),
    (r"^ | $", ""),
    (
        r"""\b[A-Za-z][A-Za-z0-9+.-]*://[^ "'<>]+"""
        r"""|[\w.+-]+@[\w-]+(?:\.[\w-]+)*"""
        r"""|\b\d{1,3}(?:\.\d{1,3}){3}(?::\d+)?\b""",
        "‹address›",
    ),
    (r"\b\d{4}-\d\d-\d\d(?:[Tt ]\d\d:\d\d(?::\d\d(?:\.\d+)?)?(?:[Zz]|[+-]\d\d:?\d\d)?)?", "‹time›"),
    (r"\b[0-9A-Fa-f]{8}(?:-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12}\b|\b0[Xx][0-9A-Fa-f]+\b", "‹id›"),
    # a word with a letter somewhere behind a digit is an id, if it is not as short as 30s or 4xx
    (r"\b([\w-]*\d[\w-]*[A-Za-z][\w-]*)\b", rf"{_OPEN}\1{_CLOSE}"),
    (r"\x01[\w-]{6,}\x02", "‹id›"),
    (r"[\x01\x02]", ""),
    (
        r'''"(?:[^"\\]|\\.)*"'''
        r"""|`[^`]*`"""
        r"""|\B'(?:[^'\\]|\\.)*'\B"""
        r"""|“[^”]*”|‘[^’]*’|«[^»]*»""",
        "‹text›",
    ),
    (r"(?:\B[+-])?\d+(?:[.,:]\d+)*%?", "‹n›"),
)


def patterns(messages: pa.Array) -> pa.Array:
    """The pattern of each message; null for none."""
    said = pc.utf8_slice_codeunits(messages, 0, LOOKED_AT)
    for expression, written in _STEPS:
        said = pc.replace_substring_regex(said, expression, written)

    short = pc.binary_join_element_wise(pc.utf8_slice_codeunits(said, 0, LONGEST_PATTERN - 1), "…", "")
    return pc.if_else(pc.greater(pc.utf8_length(said), LONGEST_PATTERN), short, said)


def has_pattern(column: str, pattern: str) -> str:
    """The condition, in DuckDB's SQL, that the messages of a column have this pattern, which is bound as $pattern."""
    said = f"left({column}, {LOOKED_AT})"
    for expression, written in _STEPS:
        said = f"regexp_replace({said}, {_literal(expression)}, {_literal(written)}, 'g')"

    if len(pattern) == LONGEST_PATTERN:
        said = f"if(length({said}) > {LONGEST_PATTERN}, left({said}, {LONGEST_PATTERN - 1}) || '…', {said})"
    return f"{said} = $pattern"


def like(said: str) -> str:
    r"""A LIKE pattern (escape `\`) that all messages of a group match, and others too: for a quick look."""
    text = re.sub(r"([\\%_])", r"\\\1", said.removesuffix("…"))
    for placeholder in (*PLACEHOLDERS, " "):
        text = text.replace(placeholder, "%")

    return f"%{text}%"


def _literal(text: str) -> str:
    parts = ("'" + part.replace("'", "''") + "'" for part in re.split(r"([\x01\x02])", text) if part)
    return " || ".join(f"chr({ord(part[1])})" if part[1] in (_OPEN, _CLOSE) else part for part in parts) or "''"
