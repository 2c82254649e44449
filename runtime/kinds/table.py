"""table: if the content changed at all, a delete for every old row and an insert for every new one."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from runtime.columns import H1, H2, ROWID
from runtime.kinds import max_deletes
from runtime.kinds.build import Build
from runtime.kinds.built import Built
from runtime.kinds.counts import Counts

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def make(build: Build) -> Built:
    if build.fresh:
        return build.all_new()

    digest = build.memory.digest()
    counts = Counts(digest.rows, changed=digest.rows, digest=digest)
    old = build.memory.content(build.version) or build.content()
    if old == digest:
        return build.settled(replace(counts, unchanged=digest.rows, changed=0))
    counts = replace(counts, deleted=_deletes(build, old.rows, digest.rows))
    max_deletes.check(build, counts, lambda: _gone(build))
    previous = build.writer.prepare(all_new=True)
    build.writer.insert(build.source.rows, counts.source, mode="overwrite")
    return build.built(counts, previous)


def _deletes(build: Build, rows: int, source: int) -> int:
    """Old rows whose content is not there again; counted only if that can hold the run."""
    if source == 0 or not max_deletes.can_hold(build, rows, source):
        return rows if source == 0 else 0
    return _gone(build).count()


def _gone(build: Build) -> DataFrame:
    return build.target(ROWID, H1, H2).join(build.source.rows.select(H1, H2), [H1, H2], "left_anti").select(ROWID)
