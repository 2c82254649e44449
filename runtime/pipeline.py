"""The whole line: plan, build, find changes, stage. Delivery follows in `runtime.deliver`, chunk by chunk.

    SQL model -> plan (can it have changed?) -> build (one commit to its Delta table, only if something changed)
              -> stage (the change feed since the mark becomes chunk files; the mark moves in one transaction)

`Ledger` is the memory of all this: `ondatra_web.ledger` keeps it in the database.
"""
from __future__ import annotations

import logging
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

from runtime import faults, plan, sources
from runtime.errors import BuildError, Cancelled, HeldError, HistoryGone, LeaseLost, said_by_spark
from runtime.lake import quoted
from runtime.model import Column, Model
from runtime.outside import open_table
from runtime.project import Project
from runtime.supervise import watching

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from runtime.kinds import Built
    from runtime.staging import Staged, WaitingChunk

log = logging.getLogger("ondatra.pipeline")
#: Values within messages of Spark and DuckDB.
VALUE = re.compile(r"(convert string to \w+: |invalid or unsupported [A-Z ]+: |spelt |[Vv]alue (?=')|convert string (?=[\"'])|to numerical: )"
                   r"('.*?'(?= )|\".*?\"(?=[ ;]|$)|.*?(?= is not supported|$))", re.S)
#: Bytes that a row which waits from an earlier run is taken for, when the effort of staging is guessed.
ROW = 200


@dataclass(frozen=True)
class Remembered:
    """What is known of a model's table since its last build."""

    fingerprint: str
    version: int | None
    rows: int
    columns: tuple[Column, ...] = ()


@dataclass(frozen=True)
class Result:
    """How one model ended. `action`: built, unchanged, skipped or failed."""

    model: Model
    action: str
    rows: int = 0
    error: str | None = None
    version: int | None = None
    own_from: int | None = None                 # changes of later versions are this run's own
    fingerprint: str = ""
    columns: tuple[Column, ...] = ()
    sql: str = ""
    inputs: tuple[str, ...] = ()
    built: Built | None = None


@dataclass(frozen=True)
class SyncWork:
    """What the ledger knows of a sync whose run has begun."""

    run_id: int
    mark: int | None
    waiting: tuple[WaitingChunk, ...]
    delivered_rows: int
    out_url: str
    confirmed_deletes: int | None = None
    full: bool = False
    baseline: bool = False
    forgo: bool = False                         # the changes since the mark are gone and a person said to go on without them
    fresh: bool = False                         # its kind or key changed and a person said --full or --baseline: the table starts anew


class Ledger(Protocol):
    """The memory of the line."""

    def table_url(self, model: str) -> str: ...
    def writable(self, model: Model, spark: SparkSession) -> None:
        """Before a build: the table at `table_url` may be written from here on."""

    def remembered(self, model: str) -> Remembered | None: ...
    def remember(self, result: Result) -> None:
        """Of a model without a sink, after its commit."""

    def idle(self, model: Model, known: Remembered) -> bool:
        """Whether a sync whose table stays as it is has nothing to do: nothing waits, no run works, nobody asked for more."""
        ...

    def rested(self, results: Sequence[Result]) -> None:
        """The runs of idle syncs, all at once."""

    def begin(self, model: Model) -> SyncWork | None:
        """The sync's run starts; None when it may not (another run works, or a person must decide first)."""

    def staged(self, work: SyncWork, result: Result, staged: Staged | None) -> None:
        """One transaction: chunks, counts, superseded rows, the mark, the fingerprint."""

    def held(self, work: SyncWork, error: HeldError) -> None: ...
    def failed(self, work: SyncWork, error: str) -> None: ...
    def step(self, work: SyncWork, name: str) -> None: ...
    def mark(self, work: SyncWork, result: Result) -> int | None:
        """The table version after which the feed is read; None reads it from the table's first."""
        ...

    def cancelled(self, work: SyncWork) -> bool: ...
    def stopped(self, work: SyncWork) -> None:
        """A cancelled run ends before anything was staged."""

    def thread_ends(self) -> None:
        """The last act of a thread that used the ledger."""


@dataclass
class Line:
    """One walk over a project's models."""

    project: Project
    ledger: Ledger
    session: Callable[[], SparkSession]         # started at the first need: a run with nothing to do needs none
    rebuild: bool = False
    results: dict[str, Result] = field(default_factory=dict)
    _spark: SparkSession | None = None
    _group: str | None = None

    def run(self) -> dict[str, Result]:
        """Every model of the project, inputs first. A model that fails skips what reads it and nothing else."""
        idle = []
        for name in self.project.order:
            model = self.project.models[name]
            broken = [i for i in self.project.inputs[name] if self.results[i].action in ("failed", "skipped")]
            if broken:
                self.results[name] = Result(model, "skipped", error=f"its input {broken[0]} {self.results[broken[0]].action}")
                self.ledger.remember(self.results[name])
            elif model.sink and (same := self._same(model)) and self.ledger.idle(model, same[0]):
                self.results[name] = same[1]
                idle.append(same[1])
            elif model.sink:
                self.results[name] = self._sync(model)
            else:
                self.results[name] = self._plain(model)
        self.ledger.rested(idle)
        return self.results

    def _same(self, model: Model) -> tuple[Remembered, Result] | None:
        """What is known of a model whose result cannot have changed."""
        known, print_ = self.ledger.remembered(model.name), self._print(model)
        if self.rebuild or known is None or known.version is None or not print_ or known.fingerprint != print_:
            return None
        return known, Result(model, "unchanged", known.rows, version=known.version, own_from=known.version, fingerprint=print_, columns=known.columns,
                             sql=self.project.translated[model.name].spark_sql, inputs=self.project.inputs[model.name])

    def _print(self, model: Model) -> str:
        return plan.fingerprint(model, self.project.translated[model.name], {i: self.results[i].version for i in self.project.inputs[model.name]})

    def _plain(self, model: Model) -> Result:
        try:
            result = self._build(model, None)
        except (LeaseLost, Cancelled):
            raise
        except Exception as error:
            result = Result(model, "failed", error=self._reason(model, error))
            log.debug("%s failed", model.name, exc_info=True)
        self.ledger.remember(result)
        return result

    def _sync(self, model: Model) -> Result:
        work = self.ledger.begin(model)
        if work is None:                        # not ours to write; readers see the table as it is
            known = self.ledger.remembered(model.name)
            if known is None or known.version is None:
                return Result(model, "skipped", error="another run of this sync is working")
            return Result(model, "unchanged", known.rows, version=known.version, columns=known.columns)
        try:
            return self._built_and_staged(model, work)
        except HeldError as error:
            self.ledger.held(work, error)
            return Result(model, "skipped", error=str(error))
        except (LeaseLost, Cancelled):
            raise
        except Exception as error:
            if self.ledger.cancelled(work):
                self.ledger.stopped(work)
                return Result(model, "skipped", error=f"run {work.run_id} was cancelled")
            self.ledger.failed(work, self._reason(model, error))
            result = Result(model, "failed", error=self._reason(model, error))
            self.ledger.remember(result)
            log.debug("%s failed", model.name, exc_info=True)
            return result

    def _built_and_staged(self, model: Model, work: SyncWork) -> Result:
        with watching(lambda: self.ledger.cancelled(work), self._end_jobs, ends=self.ledger.thread_ends):
            self._name_jobs(f"ondatra-run-{work.run_id}")
            try:
                self.ledger.step(work, "build")
                result = self._build(model, work)
                faults.point("after_commit")
                self.ledger.step(work, "changes")
                staged = self._stage(work, result)
            except HistoryGone as error:
                raise held_without_history(result, error) from error
            finally:
                self._name_jobs(None)
        self.ledger.staged(work, result, staged)
        return result

    def _name_jobs(self, group: str | None) -> None:
        """Spark jobs of this thread belong to the group, so that a cancel ends them."""
        self._group = group
        if self._spark is not None:
            self._spark.sparkContext.setLocalProperty("spark.jobGroup.id", group)       # type: ignore[arg-type]  # None takes it away
            self._spark.sparkContext.setLocalProperty("spark.job.interruptOnCancel", "true" if group else None)    # type: ignore[arg-type]

    def _end_jobs(self) -> None:
        if self._spark is not None and self._group:
            self._spark.sparkContext.cancelJobGroup(self._group)

    def _reason(self, model: Model, error: Exception) -> str:
        text = str(error) if isinstance(error, BuildError) else said_by_spark(error)
        if model.masks:                         # a value that could not be converted may be one that nobody is to see
            text = VALUE.sub(r"\1***", text)
        for connection in self.project.connections.values():
            text = connection.scrub(text)
        return text

    # build

    def _build(self, model: Model, work: SyncWork | None) -> Result:
        asked = work and (work.confirmed_deletes is not None or work.fresh)
        if not asked and (same := self._same(model)):
            return same[1]
        from runtime import kinds
        from runtime.lake import LakeTable

        translated, print_ = self.project.translated[model.name], self._print(model)        # before the files are read
        known = self.ledger.remembered(model.name)
        frame, columns = self._frame(model)
        if known and columns != known.columns and [c.name for c in columns] == [c.name for c in known.columns] and frame.isEmpty():
            # a file without rows tells no types: what was delivered keeps its own, so that its deletes carry its values
            columns = known.columns
            frame = self.spark.createDataFrame([], ", ".join(f"`{c.name.replace('`', '``')}` {c.spark_type}" for c in columns))
        frame = stored(frame, columns)
        self.ledger.writable(model, self.spark)
        table = LakeTable(self.ledger.table_url(model.name))
        options = kinds.BuildOptions(confirmed_deletes=work.confirmed_deletes if work else None, full=bool(work and work.fresh))
        built = kinds.build(self.spark, model, table, frame, columns=columns, ordered=translated.ordered, run_id=work.run_id if work else 0,
                            options=options, delivered_rows=work.delivered_rows if work else 0)
        own_from = built.version if built.action == "unchanged" else built.previous_version
        return Result(model, built.action, built.rows, version=built.version, own_from=own_from, fingerprint=print_, columns=columns,
                      sql=translated.spark_sql, inputs=self.project.inputs[model.name], built=built)

    @property
    def spark(self) -> SparkSession:
        if self._spark is None:
            self._spark = self.session()
            self._name_jobs(self._group)
        return self._spark

    def _frame(self, model: Model) -> tuple[DataFrame, tuple[Column, ...]]:
        """The model's result, not yet computed: its inputs and files stand as temporary views of the session."""
        from runtime.analyse import columns_of
        from runtime.lake import LakeTable

        translated = self.project.translated[model.name]
        for name in self.project.inputs[model.name]:
            result = self.results[name]
            table = LakeTable(self.ledger.table_url(name)).read(self.spark, result.version)
            table.selectExpr(*map(read_back, result.columns)).createOrReplaceTempView(name.replace(".", "__"))
        for name in translated.tables:
            if name not in self.project.models:
                connection = self.project.connections[name.split(".")[0]]
                open_table(self.spark, connection, name).createOrReplaceTempView(name.replace(".", "__"))
        for file in translated.files:
            sources.open_file(self.spark, file).createOrReplaceTempView(file.view)
        frame = self.spark.sql(translated.spark_sql)
        return frame, translated.columns or columns_of(frame.schema)

    # stage

    def _stage(self, work: SyncWork, result: Result) -> Staged | None:
        """The chunks of what changed since the mark; None when the table stands at the mark and nothing else is asked."""
        from runtime.kinds import effort
        from runtime.lake import LakeTable
        from runtime.staging import StageRequest, needs_stage, stage

        at_mark = result.version == self.ledger.mark(work, result) and not needs_stage(work.waiting)
        if work.baseline or result.version is None or (at_mark and not work.full):
            return None
        table = LakeTable(self.ledger.table_url(result.model.name))
        request = StageRequest(
            model=result.model, table=table, mark=self.ledger.mark(work, result), version=result.version,
            own_from=result.own_from if result.own_from is not None else -1, waiting=work.waiting, out_url=work.out_url, full=work.full,
            forgo=work.forgo, columns=result.columns)
        with effort.fit(self.spark, table.size() + ROW * sum(len(c.states) for c in work.waiting)):
            return stage(self.spark, request)


def held_without_history(result: Result, error: HistoryGone) -> HeldError:
    """What changed since the mark cannot be known; the table stays built and the mark where it is until a person decides."""
    held, built = HeldError(str(error)), result.built
    held.gone = True
    held.source, held.invalid = (built.source, built.invalid_rows) if built else (result.rows, 0)
    held.changed = held.source - held.invalid
    return held


def stored(frame: DataFrame, columns: tuple[Column, ...]) -> DataFrame:
    """The frame as Delta can hold it: it has no type for a time of day, which therefore lies there as text."""
    if not any(c.duckdb_type == "TIME" for c in columns):
        return frame
    return frame.selectExpr(*[f"CAST({quoted(c.name)} AS STRING) AS {quoted(c.name)}" if c.duckdb_type == "TIME" else quoted(c.name) for c in columns])


def read_back(column: Column) -> str:
    """A stored column as the model that reads it sees it."""
    return f"CAST({quoted(column.name)} AS {column.spark_type}) AS {quoted(column.name)}" if column.duckdb_type == "TIME" else quoted(column.name)
