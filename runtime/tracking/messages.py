"""Messages that differ only in numbers, ids, quoted text and addresses are one group: `no contact ‹n› at ‹address›`."""

from __future__ import annotations

import re
from functools import lru_cache

#: Longer messages are cut before they are compared; a pattern is a heading, not a text.
LONGEST = 2_000
LONGEST_PATTERN = 500
PLACEHOLDERS = ("‹address›", "‹time›", "‹id›", "‹text›", "‹n›")

_PARTS = re.compile(
    r"""(?P<address>\b[a-z][a-z0-9+.-]*://[^\s"'<>]+|[\w.+-]+@[\w-]+(?:\.[\w-]+)*|\b\d{1,3}(?:\.\d{1,3}){3}(?::\d+)?\b)
    |(?P<time>\b\d{4}-\d\d-\d\d(?:[t ]\d\d:\d\d(?::\d\d(?:\.\d+)?)?(?:z|[+-]\d\d:?\d\d)?)?)
    |(?P<id>\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b
        |\b0x[0-9a-f]+\b
        |\b(?=[\w-]{6})(?=[\w-]*\d[\w-]*[a-z])[a-z0-9]+(?:[_-][a-z0-9]+)*\b)
    |(?P<text>"(?:[^"\\]|\\.)*"|`[^`]*`|(?<!\w)'(?:[^'\\]|\\.)*'(?!\w)|“[^”]*”|‘[^’]*’|«[^»]*»)
    |(?P<n>(?:(?<!\w)[+-])?\d+(?:[.,:]\d+)*%?)""",
    re.IGNORECASE | re.VERBOSE,
)


@lru_cache(maxsize=65_536)
def pattern(message: str) -> str:
    """What a message has in common with others of its sort."""
    said = _PARTS.sub(lambda m: f"‹{m.lastgroup}›", " ".join(message[:LONGEST].replace("\0", " ").split()))
    return said if len(said) <= LONGEST_PATTERN else said[: LONGEST_PATTERN - 1] + "…"


def like(said: str) -> str:
    r"""A LIKE pattern (escape `\`) that the messages of a group match."""
    text = re.sub(r"([\\%_])", r"\\\1", said.removesuffix("…"))
    for placeholder in PLACEHOLDERS:
        text = text.replace(placeholder, "%")
    return re.sub(r"\s+", "%", text) + ("%" if said.endswith("…") else "")
