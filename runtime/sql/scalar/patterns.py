"""Regular expressions that RE2, which is DuckDB's, and Java's, which is Spark's, read alike: characters and classes of
ASCII, each perhaps repeated, in groups that are not.

RE2 takes a time in proportion to the text whatever the pattern; Java goes back and tries again. So a pattern is taken
only if its tries are few: without a bound at most one part repeats, and nothing has to follow it unless the pattern
begins where the text does.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

#: Of a pattern at most: characters that its bounded parts match, parts of them whose number varies, and groups.
LONGEST, VARIED, GROUPS = 64, 2, 8
_IN_CLASS = r"(?:[A-Za-z0-9]-[A-Za-z0-9]|[A-Za-z0-9_ .,:;@#%/=+]|\\[dw.+*?/-])"
_PART = re.compile(
    rf"(?P<one>\\[dDwW]|\\[!-/:-@\[-`{{-~]|\[\^?{_IN_CLASS}+\]|[^\\^$.|?*+()\[\]{{}}\0-\x1f\x7f])"
    r"(?P<times>[*+?]|\{\d{1,2}(?:,\d{0,2})?\})?"
)


@dataclass(frozen=True)
class Pattern:
    """In Java's spelling; `begins`: it matches at the begin of a text alone; `before`: a match begins with the first
    character that is not of that class, empty where more has to be looked at."""

    java: str
    groups: int
    begins: bool
    before: str = ""


def read(text: str) -> Pattern | None:
    """None for one that the two may read differently, that may match nothing, or may take Java long."""
    begins, ends = text.startswith("^"), text.endswith("$") and not text.endswith("\\$")
    at, end = int(begins), len(text) - ends
    spelt, opened, groups = [r"\A" if begins else ""], False, 0
    least = most = varied = endless = 0

    while at < end:
        if text[at] in "()":
            if (text[at] == "(") == opened or text[at : at + 2] in ("(?", "()"):
                return None
            opened = not opened
            groups += opened
            spelt.append(text[at])
            at += 1
            continue
        part = _PART.match(text, at, end)
        low, high = _times((part and part["times"]) or "{1}")
        if not part or endless and not begins or not _ascends(part["one"]) or high is not None and high < low:
            return None
        least, most = least + low, most + (low if high is None else max(low, high))
        varied, endless = varied + (high not in (low, None)), endless + (high is None)
        spelt.append(_spelt(part["one"]) + (part["times"] or ""))
        at = part.end()

    few = most <= LONGEST and varied <= VARIED and endless <= 1 and groups <= GROUPS
    if opened or not least or not few or endless and ends and not begins:
        return None
    alone = _PART.fullmatch(text)
    before = _negated(alone["one"]) if alone and _times(alone["times"] or "{1}")[0] == 1 else ""
    return Pattern("".join(spelt) + (r"\z" if ends else ""), groups, begins, before)


def _negated(one: str) -> str:
    if one[0] == "[":
        return f"[{one[2:]}" if one[1] == "^" else f"[^{one[1:]}"
    return one.swapcase() if one in (r"\d", r"\D", r"\w", r"\W") else f"[^{_spelt(one)}]"


def _times(text: str) -> tuple[int, int | None]:
    if text in ("*", "+", "?"):
        return {"*": (0, None), "+": (1, None), "?": (0, 1)}[text]
    low, comma, high = text[1:-1].partition(",")
    return int(low), (int(high) if high else None) if comma else int(low)


def _ascends(one: str) -> bool:
    """Whether the ranges of a class go up, and stay within digits, large or small letters."""
    kinds = (str.isdigit, str.islower, str.isupper)
    ranges = re.findall(r"([A-Za-z0-9])-([A-Za-z0-9])", one) if one[0] == "[" else []
    return all(a <= b and any(kind(a) and kind(b) for kind in kinds) for a, b in ranges)


def _spelt(one: str) -> str:
    """A character that means something to Java alone stands for itself."""
    return "\\" + one if one in "#&-~" else one
