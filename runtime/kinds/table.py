"""table: if the content changed at all, a delete for every old row and an insert for every new one."""

from __future__ import annotations

from runtime.columns import H1, H2
from runtime.kinds import max_deletes
from runtime.kinds.build import Build
from runtime.kinds.built import Built
from runtime.kinds.counts import Counts
from runtime.lake.digest import Digest, row_digests


def make(build: Build) -> Built:
    row = build.source.rows.agg(*row_digests()).head()
    assert row is not None
    counts = Counts.of(row, changed=int(row["source"]))
    if build.fresh:
        previous = build.writer.prepare()
        if counts.source:
            build.writer.insert(build.source.rows, counts.source)
        return build.built(counts, previous)
    old = build.target(H1, H2).agg(*row_digests()).head()
    assert old is not None
    if Digest.of(old) == counts.digest:
        return build.settled(Counts(counts.source, counts.source, digest=counts.digest))
    counts = Counts(
        counts.source, 0, 0, counts.source, _deletes(build, int(old["source"]), counts.source), counts.digest
    )
    max_deletes.check(build, counts)
    previous = build.writer.prepare(all_new=True)
    build.writer.insert(build.source.rows, counts.source, mode="overwrite")
    return build.built(counts, previous)


def _deletes(build: Build, rows: int, source: int) -> int:
    """Old rows whose content is not there again; counted only if that can hold the run."""
    if source == 0 or not max_deletes.can_hold(build, rows, source):
        return rows if source == 0 else 0
    return build.target(H1, H2).join(build.source.rows.select(H1, H2), [H1, H2], "left_anti").count()
