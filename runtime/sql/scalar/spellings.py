"""Casts of texts that are spelt as their values are written: Spark's, which takes a third of DuckDB's time.

A text from which the value is read and which is the value's own text means that value to DuckDB too. Any other, `' 7'`
or `'1e3'`, ends the build, which is then made with DuckDB's casts; from then on this model has them at once.
"""

from __future__ import annotations

#: Within Spark's error where a text is spelt otherwise.
UNUSUAL = "ondatra: a text is spelt unlike its value"


def cast(*others: str) -> str:
    """The form of such a cast of {0} to {to}. `others`: what else is true of a usual text, and of NULL."""
    usual = " AND ".join(("CAST(try_cast({0} AS {to}) AS STRING) <=> {0}", *others))
    return f"coalesce(IF({usual}, NULL, raise_error('{UNUSUAL}')), try_cast({{0}} AS {{to}}))"


def is_met(error: BaseException) -> bool:
    """Whether a text of another spelling ended it."""
    seen: BaseException | None = error
    while seen is not None:
        if UNUSUAL in str(seen):
            return True
        seen = seen.__cause__
    return False
