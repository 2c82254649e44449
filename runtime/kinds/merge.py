"""merge: one row a key; new keys are inserted, changed rows updated, and vanished ones deleted if `@on_missing` says
so."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from runtime.columns import H1, H2, KEY, ROWID
from runtime.kinds import groups, max_deletes, one_pass
from runtime.kinds.amounts import Amounts
from runtime.kinds.aside import aside
from runtime.kinds.build import Build
from runtime.kinds.built import Built
from runtime.kinds.counts import Counts
from runtime.kinds.groups import LINES, N, S, X, Y
from runtime.kinds.one_pass import Changes
from runtime.kinds.sieve import commit, filters, find
from runtime.kinds.sieve.found import Found
from runtime.lake import effort
from runtime.lake.table import quoted

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

INVALID = f"{KEY} IS NULL OR {N} > 1"


def make(build: Build) -> Built:
    if build.fresh:
        counts, rows = groups.check_source(build, KEY, INVALID)
        previous = build.writer.prepare()
        if counts.changed:
            build.writer.insert(rows, counts.changed)
            filters.begin(build, counts.changed)
        return build.built(counts, previous)
    if one_pass.fits(build) and (few := one_pass.find(build)) is not None:
        return _commit_few(build, few)
    found = find.find(build)
    if found is not None:
        return _commit(build, found)
    changes, counts, row = compare(build)
    updated = int(row["do_u"] or 0)
    if not counts.changed and not counts.deleted:
        return build.settled(counts)
    max_deletes.check(build, counts, lambda: changes.filter("__ondatra_do = 'D'").select(ROWID))
    build.filters = None  # what follows is in none
    previous = build.writer.prepare(changes)
    if updated or counts.deleted:
        _merge(build, changes, counts, int(row["do_i"] or 0))
    else:
        build.writer.insert(build.chosen(changes, counts.changed, KEY), counts.changed)
    return build.built(counts, previous)


def compare(build: Build, where: str | None = None, **watched: str) -> tuple[DataFrame, Counts, dict[str, Any]]:
    """The keys with something to do (`__ondatra_do`: I, U or D), the counts, and the aggregates they come from with
    those `watched` besides."""
    if not build.small and not build.note.invalid:
        found = _by_row(build, where, watched)
        if found is not None:
            return found
    new = groups.grouped(build.source.rows.select(KEY, H1, H2), KEY)
    return _joined(build, new, _old(build, where), watched)


def _old(build: Build, where: str | None) -> DataFrame:
    from pyspark.sql import functions as F

    more = ["valid_from_snapshot"] if build.model.kind == "scd2" else []
    return build.target(F.col(KEY).alias("__ondatra_known"), H1, H2, ROWID, *more, where=where)


def _joined(
    build: Build, new: DataFrame, old: DataFrame, watched: Mapping[str, str]
) -> tuple[DataFrame, Counts, dict[str, Any]]:
    from pyspark.sql import functions as F

    gone = "'D'" if build.model.on_missing == "delete" else "NULL"
    do = (
        f"CASE WHEN {N} IS NULL THEN {gone} WHEN {INVALID} THEN NULL WHEN {ROWID} IS NULL THEN 'I' "
        f"WHEN {X} <> {H1} OR {Y} <> {H2} THEN 'U' END"
    )
    # a table of one task fits into a hash table; sorting by the key's first bytes is what a large one costs least by
    lines = new.join(
        old.hint("shuffle_hash" if build.small else "merge"), build.same_key(KEY, "__ondatra_known"), "full"
    ).withColumn("__ondatra_do", F.expr(do))
    aggregates = groups.totals(KEY, INVALID, {**groups.sums("__ondatra_do", "IUD"), **watched})
    changes, row = groups.observed(
        build, lines, aggregates, only="__ondatra_do IS NOT NULL", columns=[KEY, ROWID, "__ondatra_do"]
    )
    changed = int(row["do_i"] or 0) + int(row["do_u"] or 0)
    return changes, Counts.of(row, changed=changed, deleted=int(row["do_d"] or 0)), row


def _by_row(
    build: Build, where: str | None, watched: Mapping[str, str]
) -> tuple[DataFrame, Counts, dict[str, Any]] | None:
    """The same without grouping the source first; None if it turns out to have rows without a usable key.

    No key stands twice if none of the changed ones does, and the rows that match one of the table are as many as the
    rows of the table that are matched.
    """
    from pyspark.sql import functions as F

    new = build.source.rows.select(
        KEY,
        F.lit(1).cast("bigint").alias(N),
        F.col(H1).alias(X),
        F.col(H2).alias(Y),
        F.expr(f"shiftright({H2}, 32)").alias(S),
    )
    old = _old(build, where)
    rows = old.count()
    matched = {
        "matched": f"sum(if({N} IS NOT NULL AND {ROWID} IS NOT NULL, 1, 0))",
        "missing": f"sum(if({N} IS NULL, 1, 0))",
    }
    changes, counts, row = _joined(build, new, old, {**watched, **matched})
    if counts.invalid or int(row["matched"] or 0) != rows - int(row["missing"] or 0):
        return None
    twice = (
        changes.filter("__ondatra_do <> 'D'")
        .groupBy(KEY)
        .agg(F.sum(LINES).alias("lines"))
        .filter("lines > 1")
        .limit(1)
        .count()
        if counts.changed
        else 0
    )
    return None if twice else (changes, counts, row)


def _commit(build: Build, found: Found) -> Built:
    if not found.counts.changed and not found.counts.deleted:
        return build.settled(found.counts)
    gone = found.gone
    max_deletes.check(build, found.counts, lambda: gone.select(ROWID) if gone else build.target(ROWID).limit(0))
    previous = build.version
    if effort.are_few(2 * found.counts.changed + found.counts.deleted):
        build.set(effort.settings(0))
    with aside(build.spark, lambda: filters.add(build, found.new, found.counts.changed)):
        if found.updated or found.counts.deleted:
            commit.write(build, found)
        else:
            build.writer.insert(found.new, found.counts.changed, computed=True)
    return build.built(found.counts, previous)


def _commit_few(build: Build, found: Changes) -> Built:
    if not found.amounts.all:
        return build.settled(found.counts)
    max_deletes.check(build, found.counts, lambda: found.lines.filter("__ondatra_do = 'D'").select(ROWID))
    build.filters = None  # what follows is in none
    previous = build.version
    one_pass.commit(build, found)
    return build.built(found.counts, previous)


def _merge(build: Build, changes: DataFrame, counts: Counts, inserted: int) -> None:
    rows = build.chosen(changes.filter("__ondatra_do <> 'D'"), counts.changed, KEY) if counts.changed else None
    gone = changes.filter("__ondatra_do = 'D'") if counts.deleted else None
    build.merge(
        build.both(rows, gone),
        Amounts(counts.changed - inserted, inserted, counts.deleted),
        {c: f"s.{quoted(c)}" for c in build.source.columns},
    )
