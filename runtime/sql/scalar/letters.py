"""Large and small letters as DuckDB has them, a character for a character: of texts of ASCII Spark's are the same."""

from __future__ import annotations

from functools import cache

from runtime.sql.asking.gate import gate

from .arguments import given

#: Behind it no character has a case.
LAST = 0x20000


@cache
def pairs(name: str) -> dict[str, str]:
    """What `upper` or `lower` makes of each character that it changes, asked of DuckDB."""
    one = f"SELECT chr(i::INTEGER) AS a, {name}(a) AS b FROM range(1, {LAST}) t(i) WHERE i NOT BETWEEN 55296 AND 57343"
    return dict(gate().run(f"SELECT a, b FROM ({one}) WHERE a <> b"))


@cache
def changed(name: str) -> str:
    found = pairs(name)
    exact = f"translate({{0}}, '{''.join(found)}', '{''.join(found.values())}')"
    return f"CASE WHEN char_length({{0}}) = octet_length({{0}}) THEN {name}({{0}}) ELSE {exact} END"


def upper() -> str:
    return changed("upper")


def lower() -> str:
    return changed("lower")


def like_as_it_is(pattern: object) -> str | None:
    """ILIKE where the pattern holds no letter that has a case, which as LIKE reaches the files."""
    small = lowered(pattern)
    return None if small is None or is_cased(small) else f"({{0}} LIKE {given(small)})"


def like(pattern: object) -> str | None:
    small = lowered(pattern)
    return None if small is None else f"({lower()} LIKE {given(small)})"


def unlike_as_it_is(pattern: object) -> str | None:
    return negated(like_as_it_is(pattern))


def unlike(pattern: object) -> str | None:
    return negated(like(pattern))


def negated(text: str | None) -> str | None:
    return None if text is None else f"(NOT {text})"


def lowered(pattern: object) -> str | None:
    """A pattern that Spark reads alike, in small letters."""
    if not isinstance(pattern, str) or "\\" in pattern:
        return None
    return "".join(pairs("lower").get(letter, letter) for letter in pattern)


def is_cased(text: str) -> bool:
    """Whether a character of it has another form, large or small."""
    found = pairs("lower")
    return not {*found, *found.values()}.isdisjoint(text)
