"""scd2: a changed key gets a new version, and the version before it is closed; a vanished key stays open."""

from __future__ import annotations

from typing import TYPE_CHECKING

from runtime.kinds import groups, merge
from runtime.kinds.build import Job
from runtime.kinds.built import Built
from runtime.lake.table import KEY, ROWID

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def build(job: Job) -> Built:
    if job.fresh:
        counts, rows = groups.check_source(job, KEY, merge.INVALID)
        previous = job.prepare()
        if counts.changed:
            job.insert(_opened(rows, previous + 1))
        return job.built(counts, previous)
    changes, counts, row = merge.compare(job, "is_current", newest="max(valid_from_snapshot)")
    if not counts.changed:
        return job.settled(counts)
    previous = job.prepare(changes)
    # the number of the commit that writes it; the clone of a dry run counts from 0, and yet it only ever grows
    snapshot = max(previous, int(row["newest"] or 0)) + 1
    rows = _opened(job.chosen(changes.select(KEY), counts.changed, KEY), snapshot)
    if row["do_u"]:
        old = changes.filter("__do = 'U'").select(ROWID, "__do")
        job.merge(job.both(rows, old), 2 * counts.changed, {"valid_to_snapshot": f"{snapshot}", "is_current": "false"})
    else:
        job.insert(rows)
    return job.built(counts, previous)


def _opened(rows: DataFrame, snapshot: int) -> DataFrame:
    from pyspark.sql import functions as F

    return rows.withColumns(
        {
            "valid_from_snapshot": F.lit(snapshot).cast("bigint"),
            "valid_to_snapshot": F.lit(None).cast("bigint"),
            "is_current": F.lit(True),
        }
    )
