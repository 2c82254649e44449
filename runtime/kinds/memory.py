"""What the last build remembered, held against the source of this one: an unchanged source is cheap by it."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

from runtime.kinds.counts import Counts
from runtime.kinds.source import Source
from runtime.lake import effort, note
from runtime.lake.digest import Digest, row_digests
from runtime.lake.note import KeptFilters, Lost, Note
from runtime.lake.table import LakeTable

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


class Memory:
    """Of one table. `seen` is the digest of this build's source, once a scan has told it."""

    def __init__(self, spark: SparkSession, table: LakeTable, source: Source, *, exists: bool) -> None:
        self.spark, self.table, self.source, self.exists = spark, table, source, exists
        self.seen: Digest | None = None

    @cached_property
    def note(self) -> Note:
        return note.read(self.spark, self.table) if self.exists else Note()

    @property
    def before(self) -> Digest:
        """All rows that the table was built from."""
        return self.note.source or Digest()

    def digest(self) -> Digest:
        """Of the source: one scan, however often it is asked for."""
        if self.seen is None:
            row = self.source.rows.agg(*row_digests()).head()
            assert row is not None
            self.seen = Digest.of(row)
        return self.seen

    def content(self, version: int) -> Digest | None:
        """Of all rows that the table has in this version, where every row of a source becomes one; None where that is
        not remembered."""
        known = self.note
        return known.source if (known.version, known.shape) == (version, self.source.shape) else None

    def is_of(self, version: int) -> bool:
        """Whether it remembers this version, and that the source had the columns that it has now."""
        return (self.note.version, self.note.columns) == (version, self.source.signature)

    def unchanged(self, version: int) -> Counts | None:
        """Nothing to do if the source is what this version was built from: one scan of the source, none of the
        table."""
        known, model = self.note, self.source.model
        if not self.is_of(version) or (known.shape, known.on_missing) != (self.source.shape, model.on_missing):
            return None
        seen = self.digest()
        if seen.text != known.digest:
            return None
        return Counts(seen.rows, seen.rows - known.invalid, known.invalid, 0, 0, seen, known.invalid_digest)

    def remember(self, version: int, counts: Counts, filters: KeptFilters | None, changed: int, read: int) -> None:
        """At the end of a build, whatever it did."""
        is_sieved = self.source.model.kind == "merge" and self.source.chained
        fresh = Note(
            version=version,
            shape=self.source.shape,
            on_missing=self.source.model.on_missing,
            columns=self.source.signature,
            digest=counts.digest.text,
            invalid=counts.invalid,
            invalid_digest=counts.invalid_digest,
            source=counts.digest,
            filters=filters,
            first=self.source.first if is_sieved else "",
            changed=changed,
            read=read if read < effort.UNKNOWN else None,
        )
        note.write(self.spark, self.table, fresh)

    def remember_lost(self, lost: Lost) -> None:
        """Before the values of columns are taken away."""
        note.write(self.spark, self.table, Note(shape=self.source.shape, lost=lost))
