"""The narrow side of change detection: one line for each key of the source, joined with the table's.

Of a key that stands once, `x` and `y` are the row's two hashes; of several rows they are order-free digests.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from runtime.columns import H1, H2
from runtime.kinds.build import Build
from runtime.kinds.counts import Counts

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

N, X, Y, S = "__ondatra_n", "__ondatra_x", "__ondatra_y", "__ondatra_s"
#: What a group's rows come to.
CONTENT = {N: "count(1)", X: f"bit_xor({H1})", Y: f"bit_xor({H2})", S: f"sum(shiftright({H2}, 32))"}
#: Group lines of rows that have no usable key.
INVALID = "__ondatra_invalid"
TOLD, LINES = "__ondatra_told", "__ondatra_lines"


def grouped(rows: DataFrame, key: str) -> DataFrame:
    """A line for each key, the rows without one included."""
    from pyspark.sql import functions as F

    return rows.groupBy(key).agg(*[F.expr(text).alias(name) for name, text in CONTENT.items()])


def content_text() -> str:
    """The content of a group as text of 64 hexadecimal digits."""
    return (
        f"lower(concat(lpad(hex({X}), 16, '0'), lpad(hex({Y}), 16, '0'), lpad(hex({S}), 16, '0'), lpad(hex({N}), "
        f"16, '0')))"
    )


def totals(key: str, invalid: str, extra: dict[str, str]) -> dict[str, str]:
    """Aggregates over the joined lines; `invalid` says which lines of the source have no usable key."""
    there, bad = f"{N} IS NOT NULL", f"({N} IS NOT NULL AND ({invalid}))"
    mixed = f"xxhash64({key}, {N}, {X}, {Y}, {S})"
    return {
        "source": f"sum({N})",
        "invalid": f"sum(if({bad}, {N}, 0))",
        "d_n": f"sum({N})",
        "d_x": f"bit_xor(if({there}, {X}, 0))",
        "d_y": f"bit_xor(if({there}, {Y}, 0))",
        "d_s": f"sum({S})",
        "i_n": f"sum(if({bad}, {N}, 0))",
        "i_x": f"bit_xor(if({bad}, {mixed}, 0))",
        "i_y": f"bit_xor(if({bad}, xxhash64(1, {mixed}, {Y}), 0))",
        "i_s": f"sum(if({bad}, shiftright({mixed}, 32), 0))",
        **extra,
    }


def sums(do: str, letters: str, amount: str = "1") -> dict[str, str]:
    """How many lines (or rows of them) each letter of `do` has."""
    return {f"do_{letter.lower()}": f"sum(if({do} = '{letter}', {amount}, 0))" for letter in letters}


def observed(
    build: Build, lines: DataFrame, aggregates: dict[str, str], *, only: str, columns: list[str]
) -> tuple[DataFrame, dict[str, Any]]:
    """The lines of interest, held, and the aggregates (sum, max and bit_xor) over all lines, from one pass.

    Equal lines of interest come out as one where there are many lines, with their number as LINES.
    """
    from pyspark.sql import Observation
    from pyspark.sql import functions as F

    if build.small:
        watch = Observation()
        held = build.keep(
            lines.observe(watch, *[F.expr(text).alias(name) for name, text in aggregates.items()])
            .filter(only)
            .selectExpr(*columns)
        )
        return held, dict(watch.get)
    # An observation is interpreted, row by row; a GROUP BY is compiled. Lines without interest fall into one group of
    # each task.
    names = lines.selectExpr(*columns).columns
    kept = [
        F.expr(f"CASE WHEN {only} THEN {column.split(' AS ')[0]} END").alias(name)
        for column, name in zip(columns, names, strict=True)
    ]
    found = lines.groupBy(F.expr(f"coalesce({only}, false)").alias(TOLD), *kept).agg(
        F.count(F.lit(1)).alias(LINES),
        *[F.expr(text).alias(f"__ondatra_of_{name}") for name, text in aggregates.items()],
    )
    held = build.keep(found)
    row = held.agg(
        *[F.expr(f"{text.split('(')[0]}(__ondatra_of_{name})").alias(name) for name, text in aggregates.items()]
    ).head()
    assert row is not None
    return held.filter(TOLD).select(*names, LINES), row.asDict()


def check_source(build: Build, key: str, invalid: str) -> tuple[Counts, DataFrame]:
    """For a table without rows: the counts of the source, and its valid rows, all of which are new."""
    from pyspark.sql import functions as F

    lines = grouped(build.source.rows.select(key, H1, H2), key)
    wanted = totals(key, invalid, {"nobody": f"sum(if({key} IS NULL, {N}, 0))"})
    row = lines.agg(*[F.expr(text).alias(name) for name, text in wanted.items()]).head()
    assert row is not None
    counts = Counts.of(row, changed=int(row["source"] or 0) - int(row["invalid"] or 0))
    rows = build.source.rows
    if counts.invalid:
        rows = rows.filter(F.col(key).isNotNull())
    if counts.invalid > int(row["nobody"] or 0):
        rows = rows.join(lines.filter(invalid).filter(F.col(key).isNotNull()).select(key), key, "left_anti")
    return counts, rows
