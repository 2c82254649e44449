"""Sends the rows of one claim: its open jobs are asked, its calls made in order or side by side, and tried again in
halves.

A unit (the rows of one key, for kinds that have one) is never cut: it goes into one call, is tried again whole, and
counts as the worst of its answers.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import takewhile
from operator import itemgetter
from typing import Any

from runtime.delivery import entries
from runtime.delivery.ahead import Ahead, Attempt
from runtime.delivery.answers import Answers
from runtime.delivery.calls import Call, announced, numbered
from runtime.delivery.chunk import Chunk, Index
from runtime.delivery.flights import Flights
from runtime.delivery.heard import Heard
from runtime.delivery.jobs import Jobs
from runtime.delivery.outbox import Claim, Outbox
from runtime.delivery.recorder import Recorder
from runtime.delivery.run import DeliveryRun, Progress
from runtime.errors import Cancelled
from runtime.push.backoff import backoff
from runtime.push.call import CallResult, PushCall
from runtime.threads import side_by_side, sleep, supervised


@dataclass(frozen=True)
class Sent:
    """A claim after its last call: every answer is in `answers` and durable. `in_flight` masks the rows whose call an
    earlier process began and did not hear."""

    claim: Claim
    chunk: Chunk
    answers: Answers
    in_flight: Index
    calls: Sequence[Any] = ()  # push.http.requester.ApiCall
    log: Sequence[tuple[str, str]] = ()  # level, text
    push_seconds: float = 0.0
    http_seconds: float = 0.0
    progress: Progress = Progress()


def as_recorded(claim: Claim, kind: str) -> Sent:
    """What the database knows of a claim that another process held; nothing is sent."""
    chunk = Chunk(claim, kind)
    answers = Answers(chunk.n, claim.answered)
    return Sent(claim, chunk, answers, answers.in_flight(chunk.starts))


class Sending:
    """Used once: `run`."""

    def __init__(self, claim: Claim, run: DeliveryRun, outbox: Outbox) -> None:
        self.before = as_recorded(claim, run.model.kind)
        self.claim, self.shared, self.outbox = claim, run, outbox
        self.chunk, self.answers, self.options = self.before.chunk, self.before.answers, run.api.push
        self.stopped, self.cancelled = "", False

        self.recorder = Recorder(outbox, claim, outbox.failed_in_row(claim.run_id))
        self.flights = Flights(claim, self.answers, self.recorder, outbox)
        self.heard = Heard(self.chunk, run.masker, run.api.api_calls)
        self.jobs = Jobs(run, self.chunk, self.flights, self.heard, self._wait)

    def run(self, meanwhile: Callable[[], None]) -> Sent:
        """Makes the calls until none is left, the run is cancelled or too many fail in a row. `meanwhile` is called
        every half second. Raises LeaseLost, and what kept answers from being recorded."""
        try:
            supervised(
                self._make_calls,
                self._is_cancelled,
                abandon=self._abandon,
                ends=self.outbox.thread_ends,
                meanwhile=meanwhile,
            )
        finally:
            self.recorder.close()

        heard = self.heard
        return Sent(
            self.claim,
            self.chunk,
            self.answers,
            self.before.in_flight,
            calls=heard.calls,
            log=heard.log,
            push_seconds=heard.push_seconds,
            http_seconds=heard.http_seconds,
            progress=Progress(self.stopped, self.cancelled),
        )

    # when to stop

    def _is_cancelled(self) -> bool:
        return self.outbox.cancelled(self.claim.run_id)

    def _is_over(self) -> bool:
        """Whether no further call may begin."""
        if self.stopped or self.cancelled:
            return True

        limit = self.options.max_failed_batches
        if self.recorder.failed_in_row >= limit:
            self.stopped = (
                f"{limit} calls in a row failed (push.max_failed_batches); the rest was not tried and stays due"
            )
        elif self._is_cancelled():
            self.cancelled = True
        return bool(self.stopped or self.cancelled)

    def _wait(self, seconds: float) -> bool:
        """Waits; false as soon as the run is cancelled."""
        if sleep(seconds, self._is_cancelled):
            return True
        self.cancelled = True
        return False

    def _abandon(self) -> None:
        self.cancelled = True
        self.flights.give_up()
        self.heard.close()

    # calls

    def _make_calls(self) -> None:
        try:
            for job in self.claim.jobs:  # open jobs are asked before anything is sent
                self.jobs.resume(job)
            self._call_all(self._due())
        except Cancelled:
            self.cancelled = True

    def _due(self) -> Iterator[Call]:
        in_order = self.shared.model.kind == "append"
        calls = numbered(self.chunk, self.answers, in_order=in_order, batch_size=self.options.batch_size)
        return announced(calls, self.chunk, self.recorder.begin)

    def _call_all(self, calls: Iterator[Call]) -> None:
        if self.claim.slots <= 1:
            self._call_in_order(Ahead(calls, self._first, self._begin, self._is_over))
        else:
            due = takewhile(lambda _: not self._is_over(), calls)
            side_by_side(self.claim.slots, (partial(self._call, call) for call in due), ends=self.outbox.thread_ends)

    def _call_in_order(self, ahead: Ahead) -> None:
        try:
            while attempt := ahead.take():
                self._with_retries(attempt, ahead)
        finally:
            ahead.settle()

    def _call(self, call: Call) -> None:
        self._with_retries(self._first(call), None)

    def _with_retries(self, first: Attempt, ahead: Ahead | None) -> None:
        """One call with its further attempts."""
        try:
            self._attempts(first, ahead)
        except Cancelled:
            self.cancelled = True
            return
        self.recorder.call_ended(failed=bool(self.answers.failed(first.index).all()))

    def _attempts(self, first: Attempt, ahead: Ahead | None) -> None:
        """What failed as a whole is halved, so that a bad row ends alone."""
        queue = [(0.0, first)]  # not before, what: all wait at the same time
        while queue:
            queue.sort(key=itemgetter(0))
            due, call = queue.pop(0)
            if not self._wait(due - time.monotonic()):
                return

            failed = self._attempt(call, ahead if call is first else None)
            if failed and call.attempt < self.options.attempts:
                due = time.monotonic() + backoff(self.shared.api.backoff, call.attempt)
                whole = len(failed) == len(call.units) > 1
                parts = _halves(failed) if whole else (failed,)
                queue += [(due, self._ready(call.number, call.attempt + 1, part)) for part in parts]

    def _first(self, call: Call) -> Attempt:
        return self._ready(call.number, 1, call.units)

    def _ready(self, number: int, attempt: int, units: list[int]) -> Attempt:
        index = self.chunk.rows_of(units)
        call = self._push_call(number, attempt, index)
        return Attempt(number, attempt, units, index, self.shared.push.prepared(call, self.shared.context))

    def _begin(self, call: Attempt) -> None:
        if not call.out:
            self.outbox.make_sure(self.claim)
            self.flights.take_off(call.number, call.attempt, call.index)
            call.out = True
            call.push.begin()

    def _attempt(self, call: Attempt, ahead: Ahead | None = None) -> list[int]:
        """One push() call; the units that are to be tried again."""
        self._begin(call)
        if ahead:
            ahead.look()
        try:
            result = call.push.result()
        except Cancelled:
            self.flights.land(call.number)
            raise

        if ahead:
            ahead.follow(result)
        self.heard.add(result, call.index)
        self._hear(call, result)
        return self.chunk.units_with(call.index[self.answers.failed(call.index)], call.units)

    def _hear(self, call: Attempt, result: CallResult) -> None:
        number, attempt, index = call.number, call.attempt, call.index
        if result.job_ref is not None:
            self.jobs.follow(number, attempt, result, index)
            return
        started = entries.micros(result.started_at)
        self.flights.hear(entries.answered(number, attempt, started, result.ended_at, result.outcomes, index))
        self.flights.land(number)

    def _push_call(self, number: int, attempt: int, index: Index) -> PushCall:
        return PushCall(
            rows=self.chunk.dicts(index),
            batch_number=number,
            kind=self.shared.model.kind,
            key_columns=list(self.shared.model.key),
            columns=self.claim.columns,
            run_id=self.claim.run_id,
            attempt=attempt,
            args=self.shared.sink_args,
            change_ids=self.chunk.change_ids(index),
        )


def _halves(units: list[int]) -> tuple[list[int], list[int]]:
    middle = (len(units) + 1) // 2
    return units[:middle], units[middle:]
