"""The whole line: plan, build, find changes, stage. Delivery follows in `runtime.delivery.deliver`, chunk by chunk.

    SQL model -> plan (can it have changed?) -> build (one commit to its Delta table, only if something changed)
              -> stage (the change feed since the mark becomes chunk files; the mark moves in one transaction)

Models that do not read one another are built side by side, in threads (`runtime.pipeline.crew`) that do one model each
(`runtime.pipeline.building`). The walk itself is one thread, and it alone writes to `Ledger`, the memory of all this:
`ondatra_web.runs.ledger` keeps it in the database.
"""

from __future__ import annotations

import logging
import re
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Protocol

from runtime.errors import BuildError, Cancelled, HeldError, LeaseLost, said_by_spark
from runtime.model import Model
from runtime.pipeline import fingerprint
from runtime.pipeline.building import Building, Lake, Remembered, Result, SyncWork
from runtime.pipeline.crew import Crew, Said
from runtime.project.check import Project
from runtime.sources import duck
from runtime.sources.copies import Copies
from runtime.threads import LOOK_EVERY, watching

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from runtime.staging.request import Staged

log = logging.getLogger("ondatra.pipeline")
#: Values within messages of Spark and DuckDB.
VALUE = re.compile(
    r"([Vv]alue (?=')|convert string (?=[\"'])|to numerical: )"
    r"('.*?'(?= )|\".*?\"(?=[ ;]|$)|.*?(?= is not supported|$))",
    re.S,
)


class Ledger(Lake, Protocol):
    """The memory of the line. Only `cancelled` and the methods of `Lake` are called from other threads than the
    walk's."""

    def remembered(self, model: str) -> Remembered | None: ...
    def claim(self, model: Model) -> bool:
        """Whether the table of a model without a sink is ours to write, until it is remembered; `remembered` is fresh
        then."""
        ...

    def remember(self, result: Result) -> None:
        """Of a model without a sink, after its commit."""

    def idle(self, model: Model, known: Remembered) -> bool:
        """Whether a sync whose table stays as it is has nothing to do: nothing waits, no run works, nobody asked for
        more."""
        ...

    def rested(self, results: Sequence[Result]) -> None:
        """The runs of idle syncs, all at once."""

    def begin(self, model: Model, since: datetime) -> SyncWork | None:
        """The sync's run starts, or did `since`, when what it reads began to be built; None when it may not (another
        run works, or a person must decide first)."""

    def staged(self, work: SyncWork, result: Result, staged: Staged | None) -> None:
        """One transaction: chunks, counts, superseded rows, the mark, the fingerprint."""

    def held(self, work: SyncWork, error: HeldError) -> None: ...
    def failed(self, work: SyncWork, error: str) -> None: ...
    def step(self, work: SyncWork, name: str) -> None: ...
    def cancelled(self, work: SyncWork) -> bool: ...
    def stopped(self, work: SyncWork) -> None:
        """A cancelled run ends before anything was staged."""

    def thread_ends(self) -> None:
        """The last act of a thread that used the ledger."""


class Watch(Protocol):
    """Whoever waits for the walk. Called in its thread."""

    def begins(self, model: str) -> None: ...
    def step(self, model: str, name: str) -> None: ...
    def done(self, model: str, action: str, rows: int, error: str | None, seconds: float) -> None: ...


@dataclass
class Line:
    """One walk over a project's models, at most `builds` of them at once."""

    project: Project
    ledger: Ledger
    session: Callable[[], SparkSession]  # a new one each time, at the first need: a run with nothing to do needs none
    rebuild: bool = False
    builds: int = 1
    watch: Watch | None = None
    results: dict[str, Result] = field(default_factory=dict)  # in the line's order once the walk is over
    _since: dict[str, datetime] = field(default_factory=dict)  # when work began on a built model or on what it reads
    _clock: dict[str, float] = field(default_factory=dict)  # when each was looked at
    _idle: list[Result] = field(default_factory=list)
    _begun: dict[str, tuple[Model, SyncWork | None]] = field(default_factory=dict)

    def run(self) -> dict[str, Result]:
        """Every model of the project, inputs first. A model that fails skips what reads it and nothing else."""
        left = list(self.project.order)
        with (
            Copies(self.project.translated.values(), self.project.connections, self.project.columns) as self._copies,
            Crew(self.builds, self.session) as self._crew,
            watching(lambda: bool(self._begun), self._end_cancelled, ends=self.ledger.thread_ends),
        ):
            while left or self._begun:
                left = self._advance(left)
                if self._begun:
                    self._hear(self._crew.wait())
                elif left:  # another process writes what is to be built next
                    time.sleep(LOOK_EVERY)
        self.results = {name: self.results[name] for name in self.project.order}
        self.ledger.rested(sorted(self._idle, key=lambda r: self.project.order.index(r.model.name)))
        return self.results

    def _advance(self, left: Sequence[str]) -> list[str]:
        """Begins whatever can begin now, in the line's order; the rest."""
        waits: list[str] = []
        for at, name in enumerate(left):
            if not self._crew.has_room:
                return [*waits, *left[at:]]
            if not all(i in self.results for i in self.project.inputs[name]) or not self._begin(
                self.project.models[name]
            ):
                waits.append(name)
        return waits

    def _begin(self, model: Model) -> bool:
        """False where the model has to wait until another process has written its table."""
        broken = [i for i in self.project.inputs[model.name] if self.results[i].action in ("failed", "skipped")]
        if broken:
            self._done(Result(model, "skipped", error=f"its input {broken[0]} {self.results[broken[0]].action}"))
            self.ledger.remember(self.results[model.name])
        elif model.sink and (same := self._same(model)) and self.ledger.idle(model, same[0]):
            self._done(same[1])
            self._idle.append(same[1])
        elif model.sink:
            self._sync(model)
        elif same := self._same(model):
            self._ended(model, None, same[1], None)
        elif self.ledger.claim(model):
            self._start(model, None)
        else:
            return False
        return True

    def _same(self, model: Model, print_: str | None = None) -> tuple[Remembered, Result] | None:
        """What is known of a model whose result cannot have changed; `print_` is its fingerprint, where that is
        known."""
        known, print_ = self.ledger.remembered(model.name), self._print(model) if print_ is None else print_
        if self.rebuild or known is None or known.version is None or not print_ or known.fingerprint != print_:
            return None
        return known, Result(
            model,
            "unchanged",
            known.rows,
            version=known.version,
            own_from=known.version,
            fingerprint=print_,
            columns=known.columns,
            sql=self.project.translated[model.name].spark_sql,
            inputs=self.project.inputs[model.name],
            commit=known.commit,
        )

    def _print(self, model: Model) -> str:
        return fingerprint.fingerprint(
            model,
            self.project.translated[model.name],
            {i: self.results[i].commit or self.results[i].version for i in self.project.inputs[model.name]},
        )

    def _sync(self, model: Model) -> None:
        work = self.ledger.begin(model, self._since_when(model))
        if work is not None:
            self._start(model, work)
            return
        known = self.ledger.remembered(model.name)  # not ours to write; readers see the table as it is
        if known is None or known.version is None:
            self._done(Result(model, "skipped", error="another run of this sync is working"))
        else:
            self._done(
                Result(
                    model, "unchanged", known.rows, version=known.version, columns=known.columns, commit=known.commit
                )
            )

    def _since_when(self, model: Model) -> datetime:
        """When work began that had to be done for it: on itself, or on the first of what it reads that was built."""
        return min((self._since[i] for i in self.project.inputs[model.name] if i in self._since), default=_now())

    def _done(self, result: Result) -> None:
        name = result.model.name
        self.results[name] = result
        if result.action != "built":
            self._since.pop(name, None)
        if self.watch:
            seconds = time.monotonic() - self._clock.get(name, time.monotonic())
            self.watch.done(name, result.action, result.rows, result.error, seconds)

    def _start(self, model: Model, work: SyncWork | None) -> None:
        """Hands the model to a builder, unless there is nothing to build or to stage."""
        self._clock[model.name] = time.monotonic()
        try:
            asked = work and (work.confirmed_deletes is not None or work.fresh)
            print_ = self._print(model)  # before the files are read
            same = None if asked else self._same(model, print_)
            if work:
                self.ledger.step(work, "build")
            for name in (model.name, *self.project.inputs[model.name]):
                self.ledger.table_url(name)  # known from here on without the database
            building = Building(
                self.project,
                self._copies,
                self.ledger,
                model,
                work,
                self.ledger.remembered(model.name),
                print_,
                {i: self.results[i] for i in self.project.inputs[model.name]},
                same[1] if same else None,
            )
        except Exception as error:
            self._failed(model, work, error)
            return
        if same and work is None:
            self._ended(model, None, same[1], None)
            return
        self._begun[model.name] = model, work
        self._since[model.name] = self._since_when(model)
        if self.watch:
            self.watch.begins(model.name)
        self._crew.start(
            model.name, f"ondatra-run-{work.run_id}" if work else f"ondatra-{id(self)}-{model.name}", building.make
        )

    def _hear(self, said: Said) -> None:
        model, work = self._begun[said.name]
        if said.step:
            if work:
                self.ledger.step(work, said.step)
            if self.watch:
                self.watch.step(said.name, said.step)
            return
        del self._begun[said.name]
        if said.error is not None:
            self._failed(model, work, said.error)
        else:
            self._ended(model, work, *said.value)

    def _ended(self, model: Model, work: SyncWork | None, result: Result, staged: Staged | None) -> None:
        if work is None:
            self.ledger.remember(result)
        else:
            try:
                self.ledger.staged(work, result, staged)
            except Exception as error:
                self._failed(model, work, error)
                return
        self._done(result)

    def _failed(self, model: Model, work: SyncWork | None, error: BaseException) -> None:
        """What a model that did not come through means for its run. Raises what ends the whole walk."""
        if work and isinstance(error, HeldError):
            self.ledger.held(work, error)
            self._done(Result(model, "skipped", error=str(error)))
            return
        if isinstance(error, LeaseLost | Cancelled) or not isinstance(error, Exception):
            raise error
        if work and self.ledger.cancelled(work):
            self.ledger.stopped(work)
            self._done(Result(model, "skipped", error=f"run {work.run_id} was cancelled"))
            return
        reason = self._reason(model, error)
        if work:
            self.ledger.failed(work, reason)
        self._done(Result(model, "failed", error=reason))
        self.ledger.remember(self.results[model.name])
        log.debug("%s failed", model.name, exc_info=error)

    def _end_cancelled(self) -> None:
        """Ends the Spark jobs of cancelled runs, in a thread of its own."""
        try:
            for name, (_, work) in list(self._begun.items()):
                if work and self.ledger.cancelled(work):
                    self._crew.end_jobs(name)
        except Exception as error:  # a database that is away for a moment must not end the watch
            log.warning("whether runs were cancelled is asked again: %s", error)
            self.ledger.thread_ends()

    def _reason(self, model: Model, error: Exception) -> str:
        translated = self.project.translated.get(model.name)
        calls = [call for one in (translated, translated and translated.exact) if one for call in one.calls]
        if found := duck.said(error, calls, hidden=bool(model.masks)):
            text = f"{model.file}, line {model.sql_line + found[0] - 1}: {found[1]}"
        else:
            text = str(error) if isinstance(error, BuildError) else said_by_spark(error)
        if model.masks:  # a value that could not be converted may be one that nobody is to see
            text = VALUE.sub(r"\1***", text)
        for connection in self.project.connections.values():
            text = connection.scrub(text)
        return text


def _now() -> datetime:
    return datetime.now(UTC)
