"""Threads that build models side by side, each with a Spark session of its own: settings, temporary views and the run's
id in commits are a session's."""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from types import TracebackType
from typing import TYPE_CHECKING, Any

from runtime.lake import spark
from runtime.threads import LOOK_EVERY

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

#: Seconds for which work is waited for whose jobs are being ended because the walk broke off.
GRACE = 5.0


@dataclass(frozen=True)
class Said:
    """What came of a piece of work: `step` where it goes on, else its value or its error."""

    name: str
    step: str = ""
    value: Any = None
    error: BaseException | None = None


class Builder:
    """What a piece of work sees of its thread."""

    def __init__(self, crew: Crew, number: int) -> None:
        self._crew, self._number = crew, number
        self._spark: SparkSession | None = None
        self._name = ""

    @property
    def spark(self) -> SparkSession:
        """The thread's session, opened at the first need."""
        if self._spark is None:
            self._spark = self._crew.session()
            spark.settle(self._spark, pool=f"builder-{self._number}")
            spark.name_jobs(self._spark, self._crew.busy.get(self._name))
        return self._spark

    def say(self, step: str) -> None:
        """Tells whoever waits how far the work is."""
        self._crew.heard.put(Said(self._name, step=step))

    def work(self) -> None:
        """The life of the thread."""
        while (task := self._crew.tasks.get()) is not None:
            self._name, act = task
            self._crew.heard.put(self._done(act))

    def _done(self, act: Callable[[Builder], Any]) -> Said:
        try:
            if self._spark is not None:
                spark.name_jobs(self._spark, self._crew.busy.get(self._name))
            return Said(self._name, value=act(self))
        except BaseException as error:  # raised where it is heard
            return Said(self._name, error=error)

    def end_jobs(self, group: str) -> bool:
        """Ends the Spark jobs of that group; whether there is an engine to ask."""
        if self._spark is not None:
            self._spark.sparkContext.cancelJobGroup(group)
        return self._spark is not None


class Crew:
    """At most so many pieces of work at once, named by their starter. Its methods are for one thread, but for
    `end_jobs`.

    Leaving the block while work goes on ends its Spark jobs again and again, and leaves behind what does not end even
    so.
    """

    def __init__(self, most: int, session: Callable[[], SparkSession]) -> None:
        self.most, self.session = most, session
        self.busy: dict[str, str] = {}  # the Spark job group of each piece of work
        self.tasks: queue.SimpleQueue[tuple[str, Callable[[Builder], Any]] | None] = queue.SimpleQueue()
        self.heard: queue.SimpleQueue[Said] = queue.SimpleQueue()
        self._crew: list[tuple[Builder, threading.Thread]] = []

    @property
    def has_room(self) -> bool:
        return len(self.busy) < self.most

    def start(self, name: str, group: str, act: Callable[[Builder], Any]) -> None:
        """Should be called while there is room. `act` runs in a thread; its Spark jobs belong to the group."""
        self.busy[name] = group
        if len(self._crew) < len(self.busy):
            builder = Builder(self, len(self._crew))
            self._crew.append(
                (builder, threading.Thread(target=builder.work, name=f"builder-{len(self._crew)}", daemon=True))
            )
            self._crew[-1][1].start()
        self.tasks.put((name, act))

    def wait(self) -> Said:
        """The next thing that any of them says."""
        said = None
        while said is None:  # no longer at once: an exception that is meant for this thread waits for it
            with suppress(queue.Empty):
                said = self.heard.get(timeout=LOOK_EVERY)
        if not said.step:
            del self.busy[said.name]
        return said

    def end_jobs(self, name: str) -> None:
        """Ends the Spark jobs of that piece of work, from any thread. It may start others: call it again until the work
        has ended."""
        group = self.busy.get(name)
        if group:
            any(builder.end_jobs(group) for builder, _ in self._crew)

    def __enter__(self) -> Crew:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for _ in self._crew:
            self.tasks.put(None)
        if self.busy:
            ending = threading.Thread(target=self._end_all, name="ending builders", daemon=True)
            ending.start()
            ending.join(GRACE)

    def _end_all(self) -> None:
        while any(thread.is_alive() for _, thread in self._crew):
            for name in self.busy:
                self.end_jobs(name)
            time.sleep(LOOK_EVERY)
