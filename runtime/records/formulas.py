"""Cells of CSV that a spreadsheet would run: they get an apostrophe."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

from runtime.records.duck import quoted

#: What a spreadsheet would take for a formula, unless it is a number. All of it comes before the letters, and beside
#: the digits.
_FORMULA = "'=', '+', '-', '@', chr(9), chr(13)"
_NUMBER = "^[+-]?([0-9]+[.]?[0-9]*|[.][0-9]+)([eE][+-]?[0-9]+)?$"


def safe(name: str) -> str:
    """SQL of the text, with an apostrophe before what would be run. What begins with a digit, a letter or beyond is
    passed at a glance."""
    return (
        f"CASE WHEN {name} >= 'A' OR ({name} >= '0' AND {name} < ':') THEN {name} "
        f"WHEN left({name}, 1) IN ({_FORMULA}) AND NOT regexp_matches({name}, {quoted(_NUMBER)}) "
        f"THEN '''' || {name} ELSE {name} END"
    )


def without(place: Path) -> frozenset[str]:
    """The columns of a record file in which nothing can be one, as its bounds tell."""
    return _without(place, place.stat().st_mtime_ns)


@lru_cache(maxsize=1_024)
def _without(place: Path, changed: int) -> frozenset[str]:
    said = pq.read_metadata(place)
    groups = [said.row_group(n) for n in range(said.num_row_groups)]
    columns = enumerate(said.schema.names)
    return frozenset(name for at, name in columns if all(_is_harmless(group.column(at)) for group in groups))


def _is_harmless(column: Any) -> bool:
    bounds = column.statistics if column.is_stats_set else None
    if bounds is None:
        return False
    if bounds.has_null_count and bounds.null_count == column.num_values:
        return True
    if not bounds.has_min_max or not isinstance(bounds.min, str):
        return False
    return bool(bounds.min >= "A" or bounds.min >= "0" and bounds.max < ":")
