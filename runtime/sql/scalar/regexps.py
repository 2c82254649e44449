"""Functions of a regular expression that DuckDB and Spark read alike (see patterns.py)."""

from __future__ import annotations

from . import patterns
from .arguments import given


def matches(pattern: object) -> str | None:
    found = _read(pattern)
    return f"({{0}} RLIKE {given(found.java)})" if found else None


def matches_whole(pattern: object) -> str | None:
    found = _read(f"^{pattern}$") if isinstance(pattern, str) and not pattern.startswith("^") else None
    return f"({{0}} RLIKE {given(found.java)})" if found else None


def extracted(pattern: object, group: object = 0) -> str | None:
    found = _read(pattern)
    if not found or type(group) is not int or not 0 <= group <= found.groups:
        return None
    return f"regexp_extract({{0}}, {given(found.java)}, {group})"


def replaced(pattern: object, by: object, options: object = "") -> str | None:
    """Only the first match, unless told otherwise: what stands before it is kept."""
    found = _read(pattern)
    if not found or not isinstance(by, str) or "\\" in by or "$" in by or options not in ("", "g"):
        return None
    if options or found.begins:
        return f"regexp_replace({{0}}, {given(found.java)}, {given(by)})"
    before = f"{found.before}*+" if found.before else ".*?"
    first = given(rf"(?s)\A({before}){found.java}")
    return f"regexp_replace({{0}}, {first}, {given('$1' + by)})"


def _read(pattern: object) -> patterns.Pattern | None:
    return patterns.read(pattern) if isinstance(pattern, str) else None
