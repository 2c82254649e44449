"""merge: one row a key; new keys are inserted, changed rows updated, and vanished ones deleted if `@on_missing` says so."""
from __future__ import annotations

from typing import TYPE_CHECKING, Any

from runtime.kinds import groups, limits
from runtime.kinds.base import Built, Counts, Job
from runtime.kinds.groups import N, X, Y
from runtime.lake import H1, H2, KEY, ROWID

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

INVALID = f"{KEY} IS NULL OR {N} > 1"


def build(job: Job) -> Built:
    if job.fresh:
        counts, rows = groups.check_source(job, KEY, INVALID)
        previous = job.prepare()
        if counts.changed:
            job.insert(rows)
        return job.built(counts, previous)
    changes, counts, row = compare(job)
    updated = int(row["do_u"] or 0)
    if not counts.changed and not counts.deleted:
        return job.settled(counts)
    limits.check(job, counts)
    previous = job.prepare(changes)
    if updated or counts.deleted:
        _merge(job, changes, counts)
    else:
        job.insert(job.chosen(changes, counts.changed, KEY))
    return job.built(counts, previous)


def compare(job: Job, where: str | None = None, **watched: str) -> tuple[DataFrame, Counts, dict[str, Any]]:
    """The keys with something to do (`__do`: I, U or D), the counts, and the aggregates they come from with those `watched` besides."""
    from pyspark.sql import functions as F

    more = ["valid_from_snapshot"] if job.model.kind == "scd2" else []
    old = job.target(F.col(KEY).alias("__key"), H1, H2, ROWID, *more, where=where)
    new = groups.grouped(job.source.select(KEY, H1, H2), KEY)
    gone = "'D'" if job.model.on_missing == "delete" else "NULL"
    do = (f"CASE WHEN {N} IS NULL THEN {gone} WHEN {INVALID} THEN NULL WHEN {ROWID} IS NULL THEN 'I' "
          f"WHEN {X} <> {H1} OR {Y} <> {H2} THEN 'U' END")
    lines = new.join(old, job.same_key(KEY, "__key"), "full").withColumn("__do", F.expr(do))
    aggregates = groups.totals(KEY, INVALID, groups.sums("__do", "IUD") | watched)
    changes, row = groups.observed(job, lines, aggregates, only="__do IS NOT NULL", columns=[KEY, ROWID, "__do"])
    changed = int(row["do_i"] or 0) + int(row["do_u"] or 0)
    return changes, Counts.of(row, changed=changed, deleted=int(row["do_d"] or 0)), row


def _merge(job: Job, changes: DataFrame, counts: Counts) -> None:
    rows = job.chosen(changes.filter("__do <> 'D'"), counts.changed, KEY) if counts.changed else None
    gone = changes.filter("__do = 'D'") if counts.deleted else None
    job.merge(job.both(rows, gone), {c: f"s.`{c.replace('`', '``')}`" for c in job.columns})
