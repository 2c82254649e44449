"""scd2: a changed key gets a new version, and the version before it is closed; a vanished key stays open."""

from __future__ import annotations

from typing import TYPE_CHECKING

from runtime.columns import KEY, ROWID
from runtime.kinds import groups, merge
from runtime.kinds.amounts import Amounts
from runtime.kinds.build import Build
from runtime.kinds.built import Built

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def make(build: Build) -> Built:
    if build.fresh:
        counts, rows = groups.check_source(build, KEY, merge.INVALID)
        build.writer.create()  # its rows tell the number of their commit, and the first is 1
        previous = build.writer.prepare()
        if counts.changed:
            build.writer.insert(_opened(rows, previous + 1), counts.changed)
        return build.built(counts, previous)
    changes, counts, row = merge.compare(build, "is_current", newest="max(valid_from_snapshot)")
    if not counts.changed:
        return build.settled(counts)
    previous = build.writer.prepare(changes)
    # the number of the commit that writes it; the clone of a dry run counts from 0, and yet it only ever grows
    snapshot = max(previous, int(row["newest"] or 0)) + 1
    rows = _opened(build.chosen(changes.select(KEY), counts.changed, KEY), snapshot)
    if row["do_u"]:
        old = changes.filter("__ondatra_do = 'U'").select(ROWID, "__ondatra_do")
        updated = int(row["do_u"])
        build.merge(
            build.both(rows, old),
            Amounts(updated=updated, inserted=counts.changed),
            {"valid_to_snapshot": f"{snapshot}L", "is_current": "false"},
        )
    else:
        build.writer.insert(rows, counts.changed)
    return build.built(counts, previous)


def _opened(rows: DataFrame, snapshot: int) -> DataFrame:
    from pyspark.sql import functions as F

    return rows.withColumns(
        {
            "valid_from_snapshot": F.lit(snapshot).cast("bigint"),
            "valid_to_snapshot": F.lit(None).cast("bigint"),
            "is_current": F.lit(True),
        }
    )
