"""One model built and staged in a builder's thread: all that touches Spark, and nothing that touches the database."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Protocol

from runtime import faults
from runtime.errors import BuildError, HeldError, HistoryGone, said_by_spark
from runtime.lake import losses
from runtime.lake.commits import commit_of, disagrees
from runtime.lake.table import quoted
from runtime.model import Column, Model
from runtime.project.check import Project
from runtime.sources import files
from runtime.sources.copies import Copies
from runtime.sources.plans import open_query
from runtime.sql import SqlProblems, kept
from runtime.sql.scalar import spellings

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from runtime.kinds import Built
    from runtime.pipeline.crew import Builder
    from runtime.sql import Translated
    from runtime.staging.chunks import WaitingChunk
    from runtime.staging.request import Staged


log = logging.getLogger("ondatra.pipeline")


@dataclass(frozen=True)
class Remembered:
    """What is known of a model's table since its last build."""

    fingerprint: str
    version: int | None
    rows: int
    columns: tuple[Column, ...] = ()
    commit: str = ""  # the id of the version's commit


@dataclass(frozen=True)
class Result:
    """How one model ended. `action`: built, unchanged, skipped or failed."""

    model: Model
    action: str
    rows: int = 0
    error: str | None = None
    version: int | None = None
    own_from: int | None = None  # changes of later versions are this run's own
    fingerprint: str = ""
    columns: tuple[Column, ...] = ()
    sql: str = ""
    inputs: tuple[str, ...] = ()
    built: Built | None = None
    commit: str = ""  # the id of the version's commit
    severed: bool = False  # the table is another than the one that the mark is of
    lost: tuple[str, ...] = ()  # executors that were gone when it was built


@dataclass(frozen=True)
class SyncWork:
    """What the ledger knows of a sync whose run has begun."""

    run_id: int
    mark: int | None
    waiting: tuple[WaitingChunk, ...]
    delivered_rows: int
    out_url: str
    mark_commit: str = ""  # the id of the mark's commit
    marked: str = ""  # what the mark is, for a sentence: "version 5, which run 3 of 2026-01-15 sent"
    confirmed_deletes: int | None = None
    full: bool = False
    baseline: bool = False
    forgo: bool = False  # the changes since the mark are gone and a person said to go on without them
    fresh: bool = False  # its kind or key changed and a person said --full or --baseline: the table starts anew


class Lake(Protocol):
    """Where the tables lie. Asked from builders' threads, so without the database."""

    def table_url(self, model: str) -> str: ...
    def writable(self, model: Model, spark: SparkSession) -> None:
        """Before a build: the table at `table_url` may be written from here on."""

    def mark(self, work: SyncWork, result: Result) -> int | None:
        """The table version after which the feed is read; None reads it from the table's first."""
        ...


@dataclass(frozen=True)
class Building:
    """What a builder needs to know of one model. `inputs` are the results of the models that it reads, `same` its own
    if it cannot have changed."""

    project: Project
    copies: Copies
    lake: Lake
    model: Model
    work: SyncWork | None
    known: Remembered | None
    fingerprint: str
    inputs: Mapping[str, Result]
    same: Result | None

    def make(self, builder: Builder) -> tuple[Result, Staged | None]:
        """Builds the table and, for a sync, stages what changed. Says "changes" between the two."""
        severed = self._is_severed(builder)
        result = self.same or self._built(builder)
        if self.work is None:
            return result, None

        faults.point("after_commit")
        builder.say("changes")
        result = replace(result, severed=severed)
        try:
            return result, self._stage(builder, self.work, result)
        except HistoryGone as error:
            raise held_without_history(result, error) from error

    def _built(self, builder: Builder) -> Result:
        """Once more where an executor was lost on the way. What the first time committed is then unchanged, and staged
        as what an earlier run left."""
        there = losses.executors(builder.spark)
        try:
            result = self._computed(builder.spark)
        except Exception as error:
            if not losses.is_loss(error):
                raise
            log.warning("%s is built again, for an executor was lost: %s", self.model.name, said_by_spark(error))
            result = self._computed(builder.spark)
        return replace(result, lost=tuple(sorted(there - losses.executors(builder.spark))))

    def _computed(self, spark: SparkSession) -> Result:
        """Once more, and from then on, with DuckDB's casts where a text is not spelt as its value is written."""
        usual = self.project.translated[self.model.name]
        translated = kept.chosen(usual)
        try:
            return self._build(spark, translated)
        except Exception as error:
            if translated.exact is None or not spellings.is_met(error):
                raise
            log.info("%s casts texts of unusual spelling and is built with DuckDB's casts", self.model.name)
            kept.choose_exact(usual)
            return self._build(spark, translated.exact)

    def _is_severed(self, builder: Builder) -> bool:
        """Whether the table is not the one that the mark is of: what changed since cannot be known from it. Raises
        HeldError before anything is written, unless a person has decided."""
        from runtime.lake.table import LakeTable

        work = self.work
        if work is None or work.mark is None or work.fresh:
            return False
        table = LakeTable(self.lake.table_url(self.model.name))
        why = disagrees(table, work.mark, work.mark_commit, lambda: builder.spark)
        if why and not (work.full or work.baseline):
            held = HeldError(
                f"the table of {self.model.name} {why} {work.marked}: the lake was restored from a copy, or a part of "
                f"it was lost. What changed since cannot be known: run with --full to send every row again, or "
                f"--baseline to take the table as delivered"
            )
            held.gone = True
            raise held
        return bool(why)

    def _build(self, spark: SparkSession, translated: Translated) -> Result:
        from runtime import kinds
        from runtime.lake.table import LakeTable
        from runtime.sources.columns import empty

        model, work, known = self.model, self.work, self.known
        frame, columns = self._frame(spark, translated)
        if (
            known
            and columns != known.columns
            and [c.name for c in columns] == [c.name for c in known.columns]
            and frame.isEmpty()
        ):
            # a file without rows tells no types: what was delivered keeps its own, so that its deletes carry its values
            columns = known.columns
            frame = empty(spark, columns)
        frame = stored(frame, columns)
        self.lake.writable(model, spark)
        table = LakeTable(self.lake.table_url(model.name))
        options = kinds.BuildOptions(
            confirmed_deletes=work.confirmed_deletes if work else None, full=bool(work and work.fresh)
        )
        built = kinds.build_model(
            spark,
            model,
            table,
            frame,
            columns=columns,
            ordered=translated.ordered,
            run_id=work.run_id if work else 0,
            options=options,
            delivered_rows=work.delivered_rows if work else 0,
        )
        commit = commit_of(table, built.version, lambda: spark)
        own_from = built.version if built.action == "unchanged" else built.previous_version
        return Result(
            model,
            built.action,
            built.rows,
            version=built.version,
            own_from=own_from,
            fingerprint=self.fingerprint,
            columns=columns,
            sql=self.project.translated[model.name].spark_sql,
            inputs=tuple(self.inputs),
            built=built,
            commit=commit.id if commit else "",
        )

    def _frame(self, spark: SparkSession, translated: Translated) -> tuple[DataFrame, tuple[Column, ...]]:
        """The model's result, not yet computed: its inputs and files stand as temporary views of the session."""
        from runtime.lake import reading
        from runtime.lake.table import LakeTable
        from runtime.sources.columns import columns_of

        outside = {name: self.copies.open(spark, name) for name in translated.tables if name not in self.project.models}
        for name, result in self.inputs.items():
            assert result.version is not None
            table = reading.read(spark, LakeTable(self.lake.table_url(name)), result.version)
            table.selectExpr(*map(read_back, result.columns)).createOrReplaceTempView(name.replace(".", "__"))
        for name, table in outside.items():
            table.createOrReplaceTempView(name.replace(".", "__"))
        for file in translated.files:
            files.open_file(spark, file).createOrReplaceTempView(file.view)
        try:
            frame = open_query(spark, translated)
        except SqlProblems as error:
            raise BuildError(error.problems[0][1]) from None
        return frame, translated.columns or columns_of(frame.schema)

    def _stage(self, builder: Builder, work: SyncWork, result: Result) -> Staged | None:
        """The chunks of what changed since the mark; None when the table stands at the mark and nothing else is
        asked."""
        from runtime.lake.table import LakeTable
        from runtime.staging.request import StageRequest
        from runtime.staging.stage import stage
        from runtime.staging.units import KEYED
        from runtime.staging.waiting import needs_stage

        mark = self.lake.mark(work, result)
        at_mark = result.version == mark and not needs_stage(work.waiting)
        if work.baseline or result.version is None or (at_mark and not work.full):
            return None
        table = LakeTable(self.lake.table_url(result.model.name))
        # rows that wait of a table that is gone have the row ids of others by now
        waiting = () if result.severed and result.model.kind not in KEYED else work.waiting
        request = StageRequest(
            model=result.model,
            table=table,
            mark=mark,
            version=result.version,
            own_from=result.own_from if result.own_from is not None else -1,
            waiting=waiting,
            out_url=work.out_url,
            full=work.full,
            forgo=work.forgo or result.severed,
            columns=result.columns,
            made=result.built.feed if result.built else None,
        )
        return stage(builder.spark, request)


def held_without_history(result: Result, error: HistoryGone) -> HeldError:
    """What changed since the mark cannot be known; the table stays built and the mark where it is until a person
    decides."""
    built = result.built
    source, invalid = (built.source, built.invalid_rows) if built else (result.rows, 0)
    return HeldError(str(error), source=source, invalid=invalid, changed=source - invalid, gone=True)


def stored(frame: DataFrame, columns: tuple[Column, ...]) -> DataFrame:
    """The frame as Delta can hold it: it has no type for a time of day, which therefore lies there as text."""
    if not any(c.duckdb_type == "TIME" for c in columns):
        return frame
    return frame.selectExpr(
        *[
            f"CAST({quoted(c.name)} AS STRING) AS {quoted(c.name)}" if c.duckdb_type == "TIME" else quoted(c.name)
            for c in columns
        ]
    )


def read_back(column: Column) -> str:
    """A stored column as the model that reads it sees it."""
    return (
        f"CAST({quoted(column.name)} AS {column.spark_type}) AS {quoted(column.name)}"
        if column.duckdb_type == "TIME"
        else quoted(column.name)
    )
