"""table: if the content changed at all, a delete for every old row and an insert for every new one."""

from __future__ import annotations

from runtime.kinds import max_deletes
from runtime.kinds.build import Counts, Job
from runtime.kinds.built import Built
from runtime.lake.digest import Digest, row_digests
from runtime.lake.table import H1, H2


def build(job: Job) -> Built:
    row = job.source.agg(*row_digests()).head()
    assert row is not None
    counts = Counts.of(row, changed=int(row["source"]))
    if job.fresh:
        previous = job.prepare()
        if counts.source:
            job.insert(job.source)
        return job.built(counts, previous)
    old = job.target(H1, H2).agg(*row_digests()).head()
    assert old is not None
    if Digest.of(old) == counts.digest:
        return job.settled(Counts(counts.source, counts.source, digest=counts.digest))
    counts = Counts(counts.source, 0, 0, counts.source, _deletes(job, int(old["source"]), counts.source), counts.digest)
    max_deletes.check(job, counts)
    previous = job.prepare(all_new=True)
    job.insert(job.source, mode="overwrite")
    return job.built(counts, previous)


def _deletes(job: Job, rows: int, source: int) -> int:
    """Old rows whose content is not there again; counted only if that can hold the run."""
    if source == 0 or not max_deletes.can_hold(job, rows, source):
        return rows if source == 0 else 0
    return job.target(H1, H2).join(job.source.select(H1, H2), [H1, H2], "left_anti").count()
