"""One build while it runs: what it has to work with, and the steps that all kinds share.

A build has a source (`source`), what the last one remembered of it (`memory`), and the table that it writes
(`writer`); the kinds say in which order.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from runtime.columns import H1, H2, ROWID
from runtime.kinds import in_place
from runtime.kinds.amounts import Amounts
from runtime.kinds.built import BuildOptions, Built, Feed
from runtime.kinds.counts import Counts
from runtime.kinds.invalid import invalid_rows
from runtime.kinds.memory import Memory
from runtime.kinds.source import Source
from runtime.kinds.writer import Writer, broadcast
from runtime.lake import effort, internals, losses, note, proof, reading
from runtime.lake.digest import Digest, row_digests
from runtime.lake.note import KeptFilters, Note
from runtime.lake.table import LakeTable, ddl, quoted
from runtime.model import Model

if TYPE_CHECKING:
    from pyspark.sql import Column as SparkColumn
    from pyspark.sql import DataFrame, SparkSession


@dataclass(frozen=True)
class Asked:
    """What a build is made of and for; `integers` are decimals of the lake that DuckDB calls whole numbers."""

    spark: SparkSession
    model: Model
    table: LakeTable
    given: DataFrame
    run_id: int
    options: BuildOptions
    delivered_rows: int
    ordered: bool
    integers: frozenset[str] = frozenset()


class Build:
    """Made where it begins, `close` ends it. Not `quick`, it does without private parts of Spark and Delta."""

    def __init__(self, asked: Asked, *, quick: bool = True) -> None:
        self.spark, self.model, self.table = asked.spark, asked.model, asked.table
        self.options, self.delivered_rows, self.ordered = asked.options, asked.delivered_rows, asked.ordered
        self.filters: KeptFilters | None = None  # those of the table as this build leaves it
        self.feed: Feed | None = None  # what the data commit adds to the change feed, where that is at hand

        exists = self._is_comparable(asked)
        version = self.table.version(self.spark) if exists else -1
        self.fresh = version < 0 or (version == 0 and self.table.is_new(self.spark))

        known = note.read(self.spark, self.table).read if exists else None
        self.reads = effort.size(asked.given, effort.UNKNOWN if known is None else known)
        self._usual = effort.change(self.spark, effort.fitting(self.spark, self._size))
        self.small = self._size < effort.LITTLE

        self._may_be_quick = quick
        chained = quick and not self.small and proof.hashes(self.spark)
        self.source = Source(self.model, asked.given, asked.integers, chained=chained)
        self.memory = Memory(self.spark, self.table, self.source, exists=exists)
        self.writer = Writer(
            self.spark,
            self.table,
            self.source,
            self.memory,
            asked.run_id,
            version,
            fresh=self.fresh,
            small=self.small,
            at_once=quick and proof.reads(self.spark),
        )

    @property
    def _size(self) -> int:
        return self.reads + (0 if self.fresh else self.table.size())

    def fit(self) -> None:
        """What another database tells was taken to be as much as last time, or a lot: from here on it is what it is."""
        if not self.source.is_outside:
            return
        self.memory.digest()  # the rows are there
        told = self.source.told
        if told is None:
            return
        self.reads = effort.size(self.source.given, told)
        self.small = self.writer.small = self._size < effort.LITTLE
        self.set(effort.fitting(self.spark, self._size))

    def _is_comparable(self, asked: Asked) -> bool:
        """Whether there is a table to compare with; one of another kind or key goes."""
        if not self.table.exists(self.spark):
            return False
        wanted = Source(self.model, asked.given, asked.integers, chained=False).shape
        if self.options.full or note.read(self.spark, self.table).shape not in (None, wanted):
            self.table.remove(self.spark)
            return False
        return True

    def close(self) -> None:
        """Nothing that was computed or set on the way stays behind."""
        effort.change(self.spark, self._usual)
        self.source.release()

    def set(self, settings: Mapping[str, str]) -> None:
        """Session settings until the build ends."""
        self._usual = {**effort.change(self.spark, settings), **self._usual}

    @cached_property
    def is_quick(self) -> bool:
        """Whether private parts of Spark and Delta find and write the changes."""
        return self._may_be_quick and proof.works(self.spark, self.table)

    @property
    def may_be_made_again(self) -> bool:
        """Whether a build that failed used private parts and wrote nothing."""
        used = self.source.chained or self.writer.at_once or self.__dict__.get("is_quick", False)
        if not used or self.writer.is_committing:
            return False
        now = self.table.version(self.spark) if self.table.exists(self.spark) else -1
        return now == self.writer.began or (self.fresh and now == 0 and self.table.is_new(self.spark))

    @property
    def version(self) -> int:
        """The newest one of the table."""
        return self.writer.version

    @property
    def note(self) -> Note:
        return self.memory.note

    # how it ends

    def unchanged(self) -> Built | None:
        """Nothing to do if the source is what the newest version was built from."""
        counts = self.memory.unchanged(self.version)
        return self._built("unchanged", counts, self.version) if counts else None

    def built(self, counts: Counts, previous: int) -> Built:
        """The end of a build that wrote, or found an empty source for a new table."""
        self.writer.create()
        self._remember(counts)
        if self.fresh and counts.changed and self.model.sink:
            self.feed = Feed(self._as_inserted(), {"insert": counts.changed}, 0)
        return self._built("built", counts, previous)

    def _as_inserted(self) -> DataFrame:
        return reading.read(self.spark, self.table, self.version).selectExpr("*", "'insert' AS _change_type")

    def settled(self, counts: Counts) -> Built:
        """The end of a build whose source says nothing new, though it may say it in other types."""
        before = self.version
        self.filters = self.filters or self.note.filters
        self.writer.prepare()
        self._remember(counts)
        return self._built("unchanged", counts, before)

    def _remember(self, counts: Counts) -> None:
        changed = 0 if self.fresh else counts.changed + counts.deleted
        self.memory.remember(self.version, counts, self.filters, changed, self.reads)

    def _built(self, action: str, counts: Counts, previous: int) -> Built:
        known = counts.invalid and self.model.kind == "append" and not self.fresh
        before = self.table.read(self.spark, previous) if known else None
        return Built(
            action,
            self.version,
            previous,
            counts.source,
            counts.source,
            counts.invalid,
            counts.invalid_digest,
            invalid_rows(self.source, before) if counts.invalid else None,
            counts.deleted,
            self.feed,
        )

    # steps

    def all_new(self) -> Built:
        """A table without rows gets all of the source: what is nowhere kept is read once, and counted where it was
        written."""
        previous = self.writer.prepare()
        digest = self.memory.seen
        if digest is None:
            digest = self._insert_unseen()
        elif digest.rows:
            self.writer.insert(self.source.rows, digest.rows)
        return self.built(Counts(digest.rows, changed=digest.rows, digest=digest), previous)

    def _insert_unseen(self) -> Digest:
        from pyspark.sql import Observation

        self.source.is_read_once = True
        watch = Observation() if self.small and self.writer.at_once else None
        rows = self.source.rows.observe(watch, *row_digests()) if watch else self.source.rows
        try:
            self.writer.insert(rows, None)
        except Exception as error:
            if "TASK_WRITE_FAILED" in str(error):  # a scan says what is wrong with a row, not with a file
                self.memory.digest()
            raise
        told = internals.told_by(self.spark, watch) if watch else None
        return Digest.of(told) if told else self.content()

    def content(self) -> Digest:
        """Of all rows of the table before the data commit."""
        row = self.target(H1, H2).agg(*row_digests()).head()
        assert row is not None
        return Digest.of(row)

    def merge(self, rows: DataFrame, amounts: Amounts, update: Mapping[str, str] | None = None) -> None:
        """Commits a change set with `__ondatra_do`: D takes the row id's row away, U gives it new values (expressions
        over `s`, the change set, and `t`, the table), and what has no row id is inserted."""
        # a commit in place takes the table's columns as they are
        if self.memory.is_of(self.version) and effort.are_few(amounts.all) and self.is_quick:
            in_place.merge(self, rows, amounts, update or {})
        else:
            self.writer.merge(rows, amounts, update)

    def keep(self, frame: DataFrame) -> DataFrame:
        """Computed now, once; what follows is planned quickly, because the plan behind it is forgotten."""
        return losses.kept(frame)

    def target(self, *columns: str | SparkColumn, where: str | None = None) -> DataFrame:
        """The table before the data commit, only these columns."""
        frame = reading.read(self.spark, self.table, self.version)
        return (frame.filter(where) if where else frame).select(*columns)

    def same_key(self, left: str, right: str) -> SparkColumn:
        """The condition under which two key texts mean the same key: in a list, 1 and "1" do."""
        from pyspark.sql import functions as F

        was, is_now = ({n.lower(): kind for n, kind in c} for c in (self.note.columns, self.source.signature))
        if len(self.model.key) == 1 or all(was.get(n) == is_now[n] for n in map(str.lower, self.model.key)):
            return F.col(left) == F.col(right)
        bare = "regexp_replace({}, '\"(-?[0-9][0-9.]*|true|false)\"', '$1')"
        return F.expr(bare.format(left)) == F.expr(bare.format(right))

    def chosen(self, changes: DataFrame, number: int, on: str) -> DataFrame:
        """The source's rows whose key stands in `changes`, with its columns; only these are hashed."""
        return self.source.hashed(self.source.plain.join(broadcast(changes, number), on))

    def both(self, rows: DataFrame | None, old: DataFrame | None) -> DataFrame:
        """The change set of a MERGE, computed once: new rows and the row ids of old ones."""
        if rows is not None:
            for name, kind in ((ROWID, "BIGINT"), ("__ondatra_do", "STRING")):
                rows = rows if name in rows.columns else rows.selectExpr("*", f"CAST(NULL AS {kind}) AS {name}")
            rows = rows.selectExpr(*map(quoted, self.source.columns), ROWID, "__ondatra_do")

        if rows is None or old is None:
            found = rows if rows is not None else old
        else:
            found = rows.unionByName(old, allowMissingColumns=True)
        assert found is not None

        types = {**{name: ddl(kind) for name, kind in self.source.types.items()}, **dict(self.source.extras)}
        missing = [f"CAST(NULL AS {types[n]}) AS {quoted(n)}" for n in self.source.columns if n not in found.columns]
        whole = found.selectExpr("*", *missing)
        return self.keep(whole.coalesce(1) if self.small else whole)
