"""merge: one row a key; new keys are inserted, changed rows updated, and vanished ones deleted if `@on_missing` says
so."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from runtime.kinds import groups, max_deletes
from runtime.kinds.build import Counts, Job
from runtime.kinds.built import Built
from runtime.kinds.groups import LINES, N, S, X, Y
from runtime.kinds.sieve import commit, filters, find
from runtime.kinds.sieve.aside import aside
from runtime.lake import effort
from runtime.lake.table import H1, H2, KEY, ROWID, quoted

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

INVALID = f"{KEY} IS NULL OR {N} > 1"


def build(job: Job) -> Built:
    if job.fresh:
        counts, rows = groups.check_source(job, KEY, INVALID)
        previous = job.prepare()
        if counts.changed:
            job.insert(rows)
            filters.begin(job, counts.changed)
        return job.built(counts, previous)
    found = find.find(job)
    if found is not None:
        return _commit(job, found)
    changes, counts, row = compare(job)
    updated = int(row["do_u"] or 0)
    if not counts.changed and not counts.deleted:
        return job.settled(counts)
    max_deletes.check(job, counts)
    job.filters = None  # what follows is in none
    previous = job.prepare(changes)
    if updated or counts.deleted:
        _merge(job, changes, counts, int(row["do_i"] or 0))
    else:
        job.insert(job.chosen(changes, counts.changed, KEY))
    return job.built(counts, previous)


def compare(job: Job, where: str | None = None, **watched: str) -> tuple[DataFrame, Counts, dict[str, Any]]:
    """The keys with something to do (`__do`: I, U or D), the counts, and the aggregates they come from with those
    `watched` besides."""
    if not job.small and not job.note.invalid:
        found = _by_row(job, where, watched)
        if found is not None:
            return found
    new = groups.grouped(job.source.select(KEY, H1, H2), KEY)
    return _joined(job, new, _old(job, where), watched)


def _old(job: Job, where: str | None) -> DataFrame:
    from pyspark.sql import functions as F

    more = ["valid_from_snapshot"] if job.model.kind == "scd2" else []
    return job.target(F.col(KEY).alias("__key"), H1, H2, ROWID, *more, where=where)


def _joined(
    job: Job, new: DataFrame, old: DataFrame, watched: Mapping[str, str]
) -> tuple[DataFrame, Counts, dict[str, Any]]:
    from pyspark.sql import functions as F

    gone = "'D'" if job.model.on_missing == "delete" else "NULL"
    do = (
        f"CASE WHEN {N} IS NULL THEN {gone} WHEN {INVALID} THEN NULL WHEN {ROWID} IS NULL THEN 'I' "
        f"WHEN {X} <> {H1} OR {Y} <> {H2} THEN 'U' END"
    )
    # a table of one task fits into a hash table; sorting by the key's first bytes is what a large one costs least by
    lines = new.join(old.hint("shuffle_hash" if job.small else "merge"), job.same_key(KEY, "__key"), "full").withColumn(
        "__do", F.expr(do)
    )
    aggregates = groups.totals(KEY, INVALID, {**groups.sums("__do", "IUD"), **watched})
    changes, row = groups.observed(job, lines, aggregates, only="__do IS NOT NULL", columns=[KEY, ROWID, "__do"])
    changed = int(row["do_i"] or 0) + int(row["do_u"] or 0)
    return changes, Counts.of(row, changed=changed, deleted=int(row["do_d"] or 0)), row


def _by_row(job: Job, where: str | None, watched: Mapping[str, str]) -> tuple[DataFrame, Counts, dict[str, Any]] | None:
    """The same without grouping the source first; None if it turns out to have rows without a usable key.

    No key stands twice if none of the changed ones does, and the rows that match one of the table are as many as the
    rows of the table that are matched.
    """
    from pyspark.sql import functions as F

    new = job.source.select(
        KEY,
        F.lit(1).cast("bigint").alias(N),
        F.col(H1).alias(X),
        F.col(H2).alias(Y),
        F.expr(f"shiftright({H2}, 32)").alias(S),
    )
    old = _old(job, where)
    rows = old.count()
    matched = {
        "matched": f"sum(if({N} IS NOT NULL AND {ROWID} IS NOT NULL, 1, 0))",
        "missing": f"sum(if({N} IS NULL, 1, 0))",
    }
    changes, counts, row = _joined(job, new, old, {**watched, **matched})
    if counts.invalid or int(row["matched"] or 0) != rows - int(row["missing"] or 0):
        return None
    twice = (
        changes.filter("__do <> 'D'").groupBy(KEY).agg(F.sum(LINES).alias("lines")).filter("lines > 1").limit(1).count()
        if counts.changed
        else 0
    )
    return None if twice else (changes, counts, row)


def _commit(job: Job, found: find.Found) -> Built:
    if not found.counts.changed and not found.counts.deleted:
        return job.settled(found.counts)
    max_deletes.check(job, found.counts)
    previous = job.version
    if effort.are_few(2 * found.counts.changed + found.counts.deleted):
        job.set(effort.settings(0))
    with aside(job.spark, lambda: filters.add(job, found.new, found.counts.changed)):
        if found.updated or found.counts.deleted:
            commit.write(job, found)
        else:
            job.insert(found.new)
    return job.built(found.counts, previous)


def _merge(job: Job, changes: DataFrame, counts: Counts, inserted: int) -> None:
    rows = job.chosen(changes.filter("__do <> 'D'"), counts.changed, KEY) if counts.changed else None
    gone = changes.filter("__do = 'D'") if counts.deleted else None
    job.merge(
        job.both(rows, gone),
        counts.changed + counts.deleted,
        {c: f"s.{quoted(c)}" for c in job.columns},
        inserts=inserted > 0,
    )
