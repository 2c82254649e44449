"""How a text that is looked for in any case can be looked for without lowering the texts that may hold it.

To lower a payload or a message costs several times what it costs to look into it. A part of what is looked for that has
few cases (`4711`, `@x`) and stands in few of them leaves most of them out at once; where it stands in many of them as
it was given, or in small letters, those are found at once. A sample tells which is so.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import product

#: Letters whose lower case DuckDB gives to letters beyond ASCII as well: i to İ, k to the sign of Kelvin.
_OF_OTHERS = frozenset("ik")
#: Of a long text so many characters are looked at; parts with letters are so long at most.
_LOOKED_AT, _LONGEST, _MOST_LETTERS = 40, 4, 2
#: Of the sample so many have to hold a form that is looked for first.
_OFTEN = 0.2
#: What it costs to lower a payload and look into that, in looks for one form of a part.
_LOWERING = 7


def part_of(text: str, sample: Sequence[str]) -> tuple[str, ...]:
    """The forms, one of which every payload holds that holds the text in any case; empty where it is as cheap to look
    for the text itself."""
    lowered = [payload.lower() for payload in sample]
    if not lowered:
        return ()

    def cost(part: str) -> float:
        passed = sum(part in payload for payload in lowered) / len(lowered)
        stops = sum(payload.count(part[0]) for payload in lowered) / len(lowered)  # where a look begins anew
        return 2 ** _letters(part) * (1 + stops) + _LOWERING * passed

    best = min(set(_parts(text.lower()[:_LOOKED_AT])), key=lambda part: (cost(part), -len(part), part), default="")
    return _forms(best) if best and cost(best) < _LOWERING - 1 else ()


def direct(text: str, sample: Sequence[str]) -> str | None:
    """The form of the text in which much of the sample holds it; None where nothing does."""
    told = {form: sum(form in one for one in sample) for form in (text, text.lower(), text.capitalize())}
    best = max(told, key=lambda form: told[form])
    return best if told[best] > _OFTEN * len(sample) else None


def _parts(text: str) -> Iterator[str]:
    for at in range(len(text)):
        for end in range(at + 1, len(text) + 1):
            part = text[at:end]
            if not part.isascii() or _OF_OTHERS & set(part) or _letters(part) > _MOST_LETTERS:
                break
            if not _letters(part) or len(part) <= _LONGEST:
                yield part


def _letters(part: str) -> int:
    return sum(map(str.isalpha, part))


def _forms(part: str) -> tuple[str, ...]:
    """In each case that its letters have."""
    return tuple("".join(one) for one in product(*(sorted({c, c.upper()}) for c in part)))
