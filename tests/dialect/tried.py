"""The part of docs/dialect.md that the generator's whole run writes: which functions work, and why others do not."""

from __future__ import annotations

from collections.abc import Collection

import generated
from against import Found

from runtime.sql import supported
from runtime.sql.asking.gate import gate
from runtime.sql.grouping import aggregates
from runtime.sql.scalar import functions

ON_PURPOSE = "tells of the session, the machine or DuckDB itself, or changes it"


def section(found: Found) -> str:
    scalars = {n for n in supported.scalars() | functions.REFUSED & gate().scalars if generated.is_named(n)}
    rows = [_row("scalar functions", scalars, found), _row("aggregates", gate().aggregates, found)]
    why: dict[str, list[str]] = {}
    for name in sorted(scalars | gate().aggregates):
        if (told := verdict(name, found)) != "works":
            why.setdefault(told, []).append(f"`{name}`")
    return "\n".join(
        [
            supported.TRIED,
            "Written by `python bench/dialect.py --all`, which makes expressions of DuckDB's own list of functions, "
            "operators, casts and aggregates over values at the edges of their types, and compares the answers.",
            "",
            f"Of {found.said()}.",
            "",
            "| | DuckDB has | work | of those not refused on purpose |",
            "|---|---|---|---|",
            *rows,
            "",
            "| does not work | why |",
            "|---|---|",
            *(f"| {', '.join(names)} | {told} |" for told, names in sorted(why.items())),
            "",
        ]
    )


def verdict(name: str, found: Found) -> str:
    """`works`, or why a function does not: one of its expressions is right, and none differs."""
    tried = found.names.get(name, {})
    if name in functions.REFUSED | aggregates.REFUSED:
        return ON_PURPOSE
    if not tried:
        return "not tried: DuckDB takes none of the expressions made for it"
    if "different" in tried.values():
        return "differs"
    return "works" if "" in tried.values() else next(iter(tried.values())).partition("; rewrite it")[0]


def _row(kind: str, names: Collection[str], found: Found) -> str:
    works = sum(verdict(name, found) == "works" for name in names)
    meant = sum(verdict(name, found) != ON_PURPOSE for name in names)
    return f"| {kind} | {len(names)} | {works} ({works / len(names):.0%}) | {works / meant:.0%} |"


def written(page: str, before: str, found: Found | None = None) -> str:
    """The whole of docs/dialect.md; without a run its last part is as it was before."""
    last = section(found) if found else supported.TRIED + before.partition(supported.TRIED)[2]
    return page + "\n" + last
