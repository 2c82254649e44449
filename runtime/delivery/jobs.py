"""Asynchronous jobs: their references are saved before the first poll, then they are asked until they end."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np

from runtime.delivery import answers as codes
from runtime.delivery import entries
from runtime.delivery.chunk import Chunk, Index
from runtime.delivery.flights import Flights
from runtime.delivery.heard import Heard
from runtime.delivery.outbox import OpenJob
from runtime.delivery.run import DeliveryRun
from runtime.push.call import CallResult

#: A job is asked for the first time after so many seconds, or after poll_interval if that is shorter.
FIRST_POLL = 1.0


class Jobs:
    """The jobs of one delivery. `wait` sleeps so many seconds, and is false as soon as the run is cancelled."""

    def __init__(
        self, run: DeliveryRun, chunk: Chunk, flights: Flights, heard: Heard, wait: Callable[[float], bool]
    ) -> None:
        self.run, self.chunk, self.flights, self.heard, self.wait = run, chunk, flights, heard, wait
        self.options = run.api.push

    def follow(self, number: int, attempt: int, result: CallResult, index: Index) -> None:
        """A call that began a job: its reference is saved, then it is polled."""
        assert result.job_ref is not None
        entry = entries.job(number, attempt, result, index)
        self.flights.open_job(entry, result.job_ref)
        self.flights.land(number)

        self.wait(min(self.options.poll_interval, FIRST_POLL))
        self._poll(result.job_ref, index, number, attempt, entry.started)

    def resume(self, job: OpenJob) -> None:
        """A job of an earlier process or run: asked at once, or forgotten when it is too old."""
        said = self.flights.answers.codes[job.rows]
        index = job.rows[np.isin(said, (codes.NO_ANSWER, codes.JOB))]
        if not len(index):
            return

        if job.age > self.options.job_max_age:
            self.flights.hear(entries.unknown(job.batch_number, 1, index, self._too_old()))
            return
        entry = entries.open_job(job.batch_number, index)
        self.flights.note(entry)
        self._poll(job.ref, index, job.batch_number, 1, entry.started)

    def _too_old(self) -> str:
        days = self.options.job_max_age / 86400
        return f"the job was still open after {days:g} days (push.job_max_age) and is forgotten; its rows are due again"

    def _poll(self, ref: dict[str, Any], index: Index, number: int, attempt: int, started: int) -> None:
        """Asks until the job has ended, poll_timeout is over or the run is cancelled; an open job keeps its rows
        blocked."""
        end = time.monotonic() + self.options.poll_timeout
        keys = list(self.run.model.key)
        while True:
            rows = self.chunk.dicts(index)
            result = self.run.push.poll(ref, rows, self.run.context, args=self.run.sink_args, key_columns=keys)
            self.heard.add(result, index)
            if result.outcomes is not None:
                ended = result.ended_at
                self.flights.hear(entries.answered(number, attempt, started, ended, result.outcomes, index))
                return

            is_over = time.monotonic() + self.options.poll_interval > end
            if is_over or not self.wait(self.options.poll_interval):
                return
