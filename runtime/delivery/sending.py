"""The calls of one chunk: cut at units, announced, made in order or side by side, tried again in halves; jobs polled.

A unit (the rows of one key, for kinds that have one) is never cut: it goes into one call, is tried again whole, and
counts as the worst of its answers.
"""

from __future__ import annotations

import itertools
import threading
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from operator import itemgetter
from typing import Any, cast

import numpy as np

from runtime.custody.masks import Masker
from runtime.delivery import answers as codes
from runtime.delivery.answers import Answers, Entry
from runtime.delivery.calls import Pace, cut_calls
from runtime.delivery.outbox import Claim, OpenJob, Outbox
from runtime.delivery.recorder import Recorder
from runtime.errors import Cancelled
from runtime.model import Model
from runtime.push.backoff import backoff
from runtime.push.call import CallContext, CallResult, PollResult, PushCall
from runtime.push.function import PushFunction
from runtime.push.statuses import OK, Outcome
from runtime.staging import states, values
from runtime.staging.chunks import read_chunk
from runtime.staging.units import unit_starts
from runtime.store.base import Store
from runtime.threads import side_by_side, sleep
from runtime.tracking.files import RunInfo

#: A job is asked for the first time after so many seconds, or after poll_interval if that is shorter.
FIRST_POLL = 1.0
#: Calls without a failure that are kept of each chunk under `api_calls: all`.
KEPT_CALLS = 1_000
#: Rows of a chunk that become dicts together: few calls take less than so many, and a column at a time is quick with
#: many only.
ROWS_AT_ONCE = 2_000


@dataclass(frozen=True)
class DeliveryRun:
    """What all chunks of one run share."""

    info: RunInfo
    model: Model
    push: PushFunction
    context: CallContext
    masker: Masker
    store: Store
    log: list[tuple[str, str]] = field(default_factory=list)


@dataclass
class Progress:
    """Why a delivery ended before its last row; both empty when it did not."""

    stopped: str = ""
    cancelled: bool = False


class Sending:
    """The sending half of a delivery; `runtime.delivery.deliver` closes it."""

    def __init__(self, claim: Claim, run: DeliveryRun, outbox: Outbox) -> None:
        self.claim, self.run, self.outbox = claim, run, outbox
        self.api = run.push.api
        self.table = read_chunk(claim.url, claim.selected)
        self.n = self.table.num_rows
        self.starts = unit_starts(self.table, run.model.kind)
        self.ends = np.append(self.starts[1:], self.n)
        self.answers = Answers(self.n, claim.answered)
        self.in_flight = self.answers.in_flight(self.starts)  # when an earlier process died: they may have arrived
        self.states = claim.states[claim.selected]
        self.selected_all = bool(claim.selected.all())
        self.rows: list[dict[str, Any] | None] = [None] * self.n
        self.calls: list[Any] = []
        self.kept_good = 0
        self.log: list[tuple[str, str]] = []
        self.push_seconds = self.http_seconds = 0.0
        self.lock = threading.Lock()
        self.progress = Progress()
        self.abandoned = False
        self.flying: dict[
            int, tuple[int, int, np.ndarray[Any, Any]]
        ] = {}  # thread -> call, attempt, rows of the push() that is out

    # pushing

    def _segments(self) -> Iterator[tuple[int, list[int]]]:
        """Calls with their numbers. Rows that failed in an earlier run never share a call with new ones."""
        open_rows = ~self.answers.answered()
        if not self.n:
            return
        open_units = np.logical_or.reduceat(open_rows, self.starts)
        old = np.logical_or.reduceat(self.states != states.UNTRIED, self.starts)
        number = self.claim.first_call
        if self.answers.call.any():
            number = int(self.answers.call.max()) + 1
        wanted = [open_units & ~old, open_units & old]
        if self.run.model.kind == "append":  # keeps its order, whatever failed before
            wanted = [open_units]
        for part in wanted:
            for call in cut_calls(self.starts, self.n, part, self.api.push.batch_size):
                yield number, call
                number += 1

    def _announced(self, recorder: Recorder) -> Iterator[tuple[int, list[int]]]:
        """The calls, each only after it is durable that it may have begun: after a crash no other row counts as
        unknown."""
        calls, pace = self._segments(), Pace(self.claim.slots)
        while some := list(itertools.islice(calls, pace.next(time.monotonic()))):
            now = round(time.time() * 1_000_000)
            index = np.concatenate([self._index(units) for _, units in some])
            recorder.begin(Entry(some[0][0], 0, now, now, _plain(index), codes.BEGUN * len(index)))
            yield from some

    def _stop(self, recorder: Recorder) -> bool:
        if self.progress.stopped or self.progress.cancelled:
            return True
        limit = self.api.push.max_failed_batches
        if recorder.failed_in_row >= limit:
            self.progress.stopped = (
                f"{limit} calls in a row failed (push.max_failed_batches); the rest was not tried and stays due"
            )
        elif self.outbox.cancelled(self.claim.run_id):
            self.progress.cancelled = True
        return bool(self.progress.stopped or self.progress.cancelled)

    def _push_all(self, recorder: Recorder) -> None:
        try:
            self._push_calls(recorder)
        except Cancelled:
            self.progress.cancelled = True

    def _push_calls(self, recorder: Recorder) -> None:
        for job in self.claim.jobs:  # open jobs are asked before anything is sent
            self._resume(job, recorder)
        calls = self._announced(recorder)
        if self.claim.slots <= 1:
            for number, units in calls:
                if self._stop(recorder):
                    return
                self._send(number, units, recorder)
            return
        side_by_side(
            self.claim.slots,
            (
                partial(self._send, *call, recorder)
                for call in itertools.takewhile(lambda _: not self._stop(recorder), calls)
            ),
            ends=self.outbox.thread_ends,
        )

    def _cancelled(self) -> bool:
        return self.outbox.cancelled(self.claim.run_id)

    def _abandon(self, recorder: Recorder) -> None:
        """The run was cancelled and its calls do not end: what they say later is not heard, so nobody knows whether
        their rows arrived."""
        now = round(time.time() * 1_000_000)
        with self.lock:
            self.abandoned = self.progress.cancelled = True
            for number, attempt, index in self.flying.values():
                self._record(
                    Entry(
                        number,
                        attempt,
                        now,
                        now,
                        _plain(index),
                        codes.UNKNOWN * len(index),
                        dict.fromkeys(range(len(index)), "the run was cancelled before push() had answered"),
                    ),
                    recorder,
                )

    def _record(self, entry: Entry, recorder: Recorder) -> None:
        """Should be called with the lock."""
        self.answers.add(entry)
        recorder.add(entry)

    def _heard(self, entry: Entry, recorder: Recorder) -> None:
        """Raises Cancelled where the call was given up meanwhile."""
        with self.lock:
            if self.abandoned:
                raise Cancelled("the run was cancelled before push() had answered")
            self._record(entry, recorder)

    def _send(self, number: int, units: list[int], recorder: Recorder) -> None:
        """One call with its further attempts: what failed as a whole is halved, so that a bad row ends alone."""
        queue = [(0.0, units, 1)]  # not before, what, its attempt: all wait at the same time
        try:
            while queue:
                queue.sort(key=itemgetter(0))
                due, batch, attempt = queue.pop(0)
                if not self._wait(due - time.monotonic()):
                    break
                failed = self._attempt(number, batch, attempt, recorder)
                if failed and attempt < self.api.push.attempts:
                    due = time.monotonic() + backoff(self.api.backoff, attempt)
                    half = (len(failed) + 1) // 2
                    whole = len(failed) == len(batch) > 1
                    queue += [
                        (due, part, attempt + 1) for part in ((failed[:half], failed[half:]) if whole else (failed,))
                    ]
        except Cancelled:
            self.progress.cancelled = True
            return
        index = self._index(units)
        recorder.call_ended(failed=bool(self.answers.failed(index).all()))

    def _landed(self) -> None:
        with self.lock:
            self.flying.pop(threading.get_ident(), None)

    def _index(self, units: Sequence[int]) -> np.ndarray[Any, Any]:
        """The rows of these units, in order."""
        if units[-1] - units[0] + 1 == len(units):
            return np.arange(self.starts[units[0]], self.ends[units[-1]])
        return np.concatenate([np.arange(self.starts[u], self.ends[u]) for u in units])

    def _rows(self, index: np.ndarray[Any, Any]) -> list[dict[str, Any]]:
        if len(index) == self.n and all(self.rows):  # no row is an empty dict
            return cast("list[dict[str, Any]]", self.rows)
        if len(index) and index[-1] - index[0] + 1 == len(index) and all(some := self.rows[index[0] : index[-1] + 1]):
            return cast("list[dict[str, Any]]", some)
        places = index.tolist()
        for i in places:
            if self.rows[i] is None:
                self.rows[i : i + ROWS_AT_ONCE] = values.to_rows(self.table.slice(i, ROWS_AT_ONCE), self.claim.columns)
        return [row for i in places if (row := self.rows[i]) is not None]

    def _attempt(self, number: int, units: list[int], attempt: int, recorder: Recorder) -> list[int]:
        """One push() call; the units that are to be tried again."""
        index = self._index(units)
        picked = index if self.selected_all else np.flatnonzero(self.claim.selected)[index]
        call = PushCall(
            rows=self._rows(index),
            batch_number=number,
            kind=self.run.model.kind,
            key_columns=list(self.run.model.key),
            columns=self.claim.columns,
            run_id=self.claim.run_id,
            attempt=attempt,
            args=self.run.model.sink.args if self.run.model.sink else (),
            change_ids=[f"{self.claim.chunk_id}:{p}" for p in picked.tolist()],
        )
        self.outbox.make_sure(self.claim)
        with self.lock:
            if self.abandoned:
                raise Cancelled("the run was cancelled")
            self.flying[threading.get_ident()] = number, attempt, index
        try:
            result = self.run.push.push(call, self.run.context)
        except Cancelled:
            self._landed()
            raise
        self._keep(result, index)
        if result.job_ref is not None:
            return self._follow(number, units, index, attempt, result, recorder)
        entry = Entry(
            number,
            attempt,
            _micros(result.started_at),
            _micros(result.ended_at),
            _plain(index),
            _codes(result.outcomes),
            {i: o.message for i, o in enumerate(result.outcomes) if o.message},
        )
        self._heard(entry, recorder)
        self._landed()
        return self._failed(units, index)

    def _failed(self, units: list[int], index: np.ndarray[Any, Any]) -> list[int]:
        """Those of a call's units that ended in error; `index` are their rows."""
        bad = self.answers.failed(index)
        if not bad.any():
            return []
        failed = set(index[bad].tolist())
        return [u for u in units if not failed.isdisjoint(range(self.starts[u], self.ends[u]))]

    # jobs

    def _follow(
        self,
        number: int,
        units: list[int],
        index: np.ndarray[Any, Any],
        attempt: int,
        result: CallResult,
        recorder: Recorder,
    ) -> list[int]:
        """A call that began a job: its reference is saved, then it is polled."""
        assert result.job_ref is not None
        entry = Entry(
            number, attempt, _micros(result.started_at), _micros(result.ended_at), _plain(index), codes.JOB * len(index)
        )
        recorder.flush()
        with self.lock:
            if self.abandoned:
                raise Cancelled("the run was cancelled before push() had answered")
            self.outbox.open_job(self.claim, entry, result.job_ref)
            self.answers.add(entry)
        self._landed()
        self._wait(min(self.api.push.poll_interval, FIRST_POLL))
        self._poll(result.job_ref, index, number, attempt, entry.started, recorder)
        return self._failed(units, index)

    def _resume(self, job: OpenJob, recorder: Recorder) -> None:
        """A job of an earlier process or run: asked at once, or forgotten when it is too old."""
        index = job.rows[np.isin(self.answers.codes[job.rows], (codes.NO_ANSWER, codes.JOB))]
        if not len(index):
            return
        now = round(time.time() * 1_000_000)
        entry = Entry(job.batch_number, 1, now, now, _plain(index), codes.JOB * len(index))
        if job.age > self.api.push.job_max_age:
            entry = replace(
                entry,
                codes=codes.UNKNOWN * len(index),
                messages=dict.fromkeys(
                    range(len(index)),
                    (
                        f"the job was still open after {self.api.push.job_max_age / 86400:g} days (push.job_max_age) "
                        f"and is forgotten; its rows are due again"
                    ),
                ),
            )
            recorder.add(entry)
        with self.lock:
            self.answers.add(entry)
        if job.age <= self.api.push.job_max_age:
            self._poll(job.ref, index, job.batch_number, 1, now, recorder)

    def _poll(
        self,
        ref: dict[str, Any],
        index: np.ndarray[Any, Any],
        number: int,
        attempt: int,
        started: int,
        recorder: Recorder,
    ) -> None:
        """Asks until the job has ended, poll_timeout is over or the run is cancelled; an open job keeps its rows
        blocked."""
        end = time.monotonic() + self.api.push.poll_timeout
        args = self.run.model.sink.args if self.run.model.sink else ()
        while True:
            result = self.run.push.poll(
                ref, self._rows(index), self.run.context, args=args, key_columns=list(self.run.model.key)
            )
            self._keep(result, index)
            if result.outcomes is not None:
                entry = Entry(
                    number,
                    attempt,
                    started,
                    _micros(result.ended_at),
                    _plain(index),
                    _codes(result.outcomes),
                    {i: o.message for i, o in enumerate(result.outcomes) if o.message},
                )
                self._heard(entry, recorder)
                return
            if time.monotonic() + self.api.push.poll_interval > end or not self._wait(self.api.push.poll_interval):
                return

    def _wait(self, seconds: float) -> bool:
        """Waits; False as soon as the run is cancelled."""
        if sleep(seconds, self._cancelled):
            return True
        self.progress.cancelled = True
        return False

    def _keep(self, result: CallResult | PollResult, index: np.ndarray[Any, Any]) -> None:
        """Remembers the requests, prints and times of a call. Masked values leave the log here, requests when they are
        written."""
        scrub = self.run.masker.scrubber(self._rows(index) if result.prints or result.warnings else ())
        with self.lock:
            self.push_seconds += (result.ended_at - result.started_at).total_seconds()
            self.http_seconds += result.http_seconds
            self.log += [("print", scrub(line)) for line in result.prints] + [
                ("warning", scrub(line)) for line in result.warnings
            ]
            if self.api.api_calls == "off" or self.abandoned:
                return
            row_failed = any(o.kind in ("error", "reject") for o in result.outcomes or () if o is not OK)
            bad = set(range(len(result.calls)) if row_failed else result.calls.failed())
            room = KEPT_CALLS - self.kept_good if self.api.api_calls == "all" else 0
            good = [i for i in range(len(result.calls)) if i not in bad][:room] if room > 0 else []
            self.kept_good += len(good)
            self.calls += [result.calls[i] for i in sorted([*bad, *good])]


def _codes(outcomes: Sequence[Outcome]) -> str:
    """One letter a row."""
    if all(o is OK for o in outcomes):
        return codes.OK * len(outcomes)
    return "".join(map(_code, outcomes))


def _code(outcome: Outcome) -> str:
    if outcome.kind == "error":
        return codes.ERROR if outcome.known else codes.UNKNOWN
    return {"ok": codes.OK, "warn": codes.WARN, "reject": codes.REJECT}[outcome.kind]


def _micros(moment: Any) -> int:
    return round(moment.timestamp() * 1_000_000)


def _plain(index: np.ndarray[Any, Any]) -> Sequence[int]:
    """A range where the rows stand together, for a small entry."""
    first, last = int(index[0]), int(index[-1])
    return range(first, last + 1) if last - first + 1 == len(index) else index.tolist()
