"""strftime of a constant format. Spark writes the years of four digits, and of the others all but the year."""

from __future__ import annotations

import re

from .arguments import DATE, MOMENT, given

#: DuckDB's codes as Spark's letters, for days and for moments.
DAYS = {
    "Y": "yyyy",
    "m": "MM",
    "-m": "M",
    "d": "dd",
    "-d": "d",
    "j": "DDD",
    "B": "MMMM",
    "b": "MMM",
    "A": "EEEE",
    "a": "EEE",
}
MOMENTS = {**DAYS, "H": "HH", "M": "mm", "S": "ss"}
#: The calendar is the same again after so many days, where Spark makes a moment of each.
_NEAR = "date_from_unix_date(pmod(unix_date({0}), 146097))"


def of_day(format: object) -> str | None:
    return _written(format, DAYS, "DATE", DATE, _NEAR)


def of_moment(format: object) -> str | None:
    return _written(format, MOMENTS, "TIMESTAMP_NTZ", MOMENT, "{0}")


def _written(format: object, codes: dict[str, str], kind: str, finite: str, near: str) -> str | None:
    """What stands around each year, in Spark's letters."""
    found = re.findall(r"%(-?.)|([^%]+)|(%)$", format, re.S) if isinstance(format, str) else []
    if not any(code for code, _, _ in found) or any(code not in codes for code, plain, _ in found if not plain):
        return None
    spelt = [codes[code] if code else "'" + plain.replace("'", "''") + "'" for code, plain, _ in found]
    if any(one[-1] == other[0] for one, other in zip(spelt, spelt[1:])):  # MM and M would be a name
        return None
    around = [""]
    for one in spelt:
        if one == codes["Y"]:
            around.append("")
        else:
            around[-1] += one

    parts = [f"date_format({near}, {given(text)})" if text else "''" for text in around]
    far = ", CAST(year({0}) AS STRING), ".join(parts)
    return (
        f"CASE WHEN {{0}} >= {kind}'0000-01-01' AND {{0}} < {kind}'+10000-01-01' "
        f"THEN date_format({{0}}, {given(codes['Y'].join(around))}) "
        f"WHEN {finite} THEN concat({far}) WHEN {{0}} > {kind}'1970-01-01' THEN 'infinity' "
        f"WHEN {{0}} < {kind}'1970-01-01' THEN '-infinity' END"
    )
