"""What changed in a small table, found by one job: each row of the source beside the table's row of its key, both
whole, so that nothing has to be looked up again for the commit.

`merge.compare` moves keys and hashes and fetches the rows of few of them afterwards. Of little, each further job costs
more than all rows do.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from runtime.columns import H1, H2, KEY, ROWID
from runtime.kinds import groups, in_place
from runtime.kinds.amounts import Amounts
from runtime.kinds.build import Build
from runtime.kinds.counts import Counts
from runtime.kinds.groups import N, S, X, Y
from runtime.kinds.in_place import CHANGE
from runtime.lake import internals
from runtime.lake.table import quoted
from runtime.lake.transactions import FILE, PLACE, Opened

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

#: Rows of a table that one task holds whole.
MOST_ROWS = 50_000
DO, NEW, OLD = "__ondatra_do", "__ondatra_new", "__ondatra_old"
#: All aggregates as one text: each expression that is made here takes a dozen messages to the JVM.
TOLD = "told"
CHANGE_OF = f"CASE {DO} WHEN 'U' THEN 'update_preimage' ELSE 'delete' END"


@dataclass(frozen=True)
class Changes:
    """Lines of the source and of the table that have something to do, computed."""

    opened: Opened
    lines: DataFrame
    counts: Counts
    amounts: Amounts


def fits(build: Build) -> bool:
    """Whether the table is small, and is known to have one row for each key of the source."""
    known = build.note
    little = build.small and not build.fresh and build.memory.before.rows <= MOST_ROWS
    plain = not known.invalid and not build.source.is_outside and build.memory.is_of(build.version)
    return build.model.kind == "merge" and little and plain and build.is_quick


def find(build: Build) -> Changes | None:
    """None where the source has rows without a usable key."""
    build.source.is_read_once = True  # the rows that are committed come out of the lines
    found = _found(build)
    if found is None:
        build.source.read_again()
    return found


def _found(build: Build) -> Changes | None:
    opened = in_place.opened(build)
    lines, told = _lines(build, opened)
    if told is None or told["invalid"] or told["sides"] != told["rows"]:
        return None

    do = {letter: told[f"do_{letter.lower()}"] for letter in "IUD"}
    if do["I"] > 1 and _keys(lines.filter(f"{DO} = 'I'")) < do["I"]:
        return None
    counts = Counts.of(told, changed=do["I"] + do["U"], deleted=do["D"])
    return Changes(opened, lines, counts, Amounts(do["U"], do["I"], do["D"]))


def commit(build: Build, found: Changes) -> None:
    """`build.version` is the commit's version then, and `build.feed` what it tells the change feed."""
    columns, lines = [*map(quoted, build.source.columns)], found.lines
    new = lines.filter(f"{DO} <> 'D'").selectExpr(*[f"{NEW}.{name} AS {name}" for name in columns], ROWID)
    old = lines.filter(f"{DO} <> 'I'").selectExpr(
        *[f"{OLD}.{name} AS {name}" for name in (*columns, FILE, PLACE)], ROWID, f"{CHANGE_OF} AS {CHANGE}"
    )
    in_place.write(build, found.opened, new, old, found.amounts, computed=True)


def _lines(build: Build, opened: Opened) -> tuple[DataFrame, Mapping[str, int] | None]:
    """The lines of interest, held, and aggregates over all lines; None where Spark knew that there is none."""
    from pyspark.sql import Observation
    from pyspark.sql import functions as F

    columns = [*map(quoted, build.source.columns)]
    rows = build.source.rows.selectExpr(
        KEY, f"1L AS {N}", f"{H1} AS {X}", f"{H2} AS {Y}", f"shiftright({H2}, 32) AS {S}", _whole(columns, NEW)
    )
    there = opened.rows([*columns, ROWID]).selectExpr(
        f"{KEY} AS __ondatra_known", H1, H2, ROWID, _whole([*columns, FILE, PLACE], OLD)
    )
    seen, watch = Observation(), Observation()
    there = there.observe(seen, F.expr("to_json(named_struct('rows', count(1)))").alias(TOLD))
    both = rows.join(there.hint("shuffle_hash"), F.expr(f"{KEY} = __ondatra_known"), "full")

    gone = "'D'" if build.model.on_missing == "delete" else "NULL"
    do = f"CASE WHEN {N} IS NULL THEN {gone} WHEN {ROWID} IS NULL THEN 'I' WHEN {X} <> {H1} OR {Y} <> {H2} THEN 'U' END"
    # each row of the table stands in one line exactly if no key of it stands twice in the source
    sides = {"sides": f"sum(if({ROWID} IS NOT NULL, 1, 0))"}
    wanted = groups.totals(KEY, f"{KEY} IS NULL", {**groups.sums(DO, "IUD"), **sides})
    pairs = ", ".join(f"'{name}', {text}" for name, text in wanted.items())
    watched = (
        both.selectExpr("*", f"{do} AS {DO}")
        .observe(watch, F.expr(f"to_json(named_struct({pairs}))").alias(TOLD))
        .filter(f"{DO} IS NOT NULL")
        .selectExpr(KEY, ROWID, DO, NEW, OLD)
    )
    lines = build.keep(watched)
    told = [internals.told_by(build.spark, each) for each in (watch, seen)]
    numbers: defaultdict[str, int] = defaultdict(int)  # a sum over nothing is left out, or null
    for each in told:
        numbers |= {name: n or 0 for name, n in json.loads(each[TOLD]).items()} if each else {}
    return lines, numbers if all(told) else None


def _whole(columns: list[str], name: str) -> str:
    return f"struct({', '.join(columns)}) AS {name}"


def _keys(lines: DataFrame) -> int:
    from pyspark.sql import functions as F

    row = lines.agg(F.expr(f"count(DISTINCT {KEY})")).head()
    assert row is not None
    return int(row[0])
