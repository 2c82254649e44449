"""The calls that are out, and their answers: heard until the run gives the calls up."""

from __future__ import annotations

import threading
from typing import Any

from runtime.delivery import entries
from runtime.delivery.answers import Answers, Entry
from runtime.delivery.chunk import Index
from runtime.delivery.outbox import Claim, Outbox
from runtime.delivery.recorder import Recorder
from runtime.errors import Cancelled

UNANSWERED = "the run was cancelled before push() had answered"


class Flights:
    """For any number of threads; of one number one call is out. An answer is added to `answers` and on its way to the
    database together; after `give_up` none is."""

    def __init__(self, claim: Claim, answers: Answers, recorder: Recorder, outbox: Outbox) -> None:
        self.claim, self.answers, self.recorder, self.outbox = claim, answers, recorder, outbox
        self._lock = threading.Lock()
        self._given_up = False
        self._out: dict[int, tuple[int, Index]] = {}  # call -> attempt, rows

    def take_off(self, number: int, attempt: int, index: Index) -> None:
        """A call of push() is about to begin. Raises Cancelled."""
        with self._lock:
            if self._given_up:
                raise Cancelled("the run was cancelled")
            self._out[number] = attempt, index

    def land(self, number: int) -> None:
        """The call has ended, and what it said was heard."""
        with self._lock:
            self._out.pop(number, None)

    def hear(self, entry: Entry) -> None:
        """Raises Cancelled where the call was given up meanwhile."""
        with self._lock:
            self._still_heard()
            self._record(entry)

    def open_job(self, entry: Entry, ref: dict[str, Any]) -> None:
        """A call began a job: durable when this returns. Raises Cancelled."""
        self.recorder.flush()
        with self._lock:
            self._still_heard()
            self.outbox.open_job(self.claim, entry, ref)
            self.answers.add(entry)

    def note(self, entry: Entry) -> None:
        """What the database knows already."""
        with self._lock:
            self.answers.add(entry)

    def give_up(self) -> None:
        """The run was cancelled and its calls do not end: what they say later is not heard, so nobody knows whether
        their rows arrived."""
        with self._lock:
            self._given_up = True
            for number, (attempt, index) in self._out.items():
                self._record(entries.unknown(number, attempt, index, UNANSWERED))

    def _still_heard(self) -> None:
        if self._given_up:
            raise Cancelled(UNANSWERED)

    def _record(self, entry: Entry) -> None:
        self.answers.add(entry)
        self.recorder.add(entry)
