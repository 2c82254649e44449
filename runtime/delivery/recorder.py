"""Answers on their way to the database: committed at the latest 200 ms or 1,000 rows after they came."""

from __future__ import annotations

import threading
import time

from runtime.delivery.answers import Entry
from runtime.delivery.outbox import Claim, Outbox

MOST_ROWS = 1_000
#: Less than a third of what is promised, so that a slow commit on a busy machine still keeps it. A little more than the
#: time between two announcements of quick calls (`calls.Pace`), which take the answers with them: then the thread here
#: has nothing to do, and does not ask for Python's lock.
LONGEST_WAIT = 0.06
#: The same number of failed calls in a row is written again after so many seconds: another worker may have written its
#: own.
TELL_EVERY = 1.0


class Recorder:
    """Collects the answers of one delivery. A thread commits them while the next call is still out."""

    def __init__(self, outbox: Outbox, claim: Claim, failed_in_row: int) -> None:
        self.outbox, self.claim = outbox, claim
        self._failed_in_row = failed_in_row
        self._told, self._told_at = failed_in_row, time.monotonic()
        self._waiting: list[Entry] = []
        self._rows = 0
        self._oldest = 0.0  # when the first that waits came
        self._error: BaseException | None = None
        self._changed = threading.Condition()
        self._commit = threading.Lock()
        self._closed = threading.Event()
        self._thread = threading.Thread(target=self._run, name="recorder", daemon=True)
        self._thread.start()

    @property
    def failed_in_row(self) -> int:
        return self._failed_in_row

    def call_ended(self, *, failed: bool) -> None:
        """Counts failed calls in a row; committed with the next answers."""
        with self._changed:
            self._failed_in_row = self._failed_in_row + 1 if failed else 0

    def begin(self, entry: Entry) -> None:
        """Says durably that calls with these rows may begin, with the answers that wait. Raises what went wrong at an
        earlier commit."""
        with self._changed:
            if self._error:
                raise self._error
            self._waiting.append(entry)
        self.flush()

    def add(self, entry: Entry) -> None:
        """Raises what went wrong at an earlier commit."""
        with self._changed:
            if self._error:
                raise self._error
            if not self._waiting:
                self._oldest = time.monotonic()
            self._waiting.append(entry)
            self._rows += len(entry.index)
            full = self._rows >= MOST_ROWS
            self._changed.notify()
        if full:
            self.flush()

    def flush(self) -> None:
        """Commits what waits; when it returns, it is durable."""
        with self._commit:
            with self._changed:
                entries, self._waiting, self._rows = self._waiting, [], 0
                failed = self._failed_in_row
            if entries:
                now = time.monotonic()
                news = failed != self._told or now - self._told_at > TELL_EVERY
                self.outbox.record(self.claim, entries, failed_in_row=failed if news else None)
                self._told, self._told_at = failed, now if news else self._told_at

    def close(self) -> None:
        """The last commit; raises what went wrong in the thread."""
        with self._changed:
            self._closed.set()
            self._changed.notify()
        self._thread.join()
        if self._error:
            raise self._error
        self.flush()

    def _run(self) -> None:
        try:
            while not self._closed.is_set():
                with self._changed:
                    self._changed.wait_for(lambda: self._waiting or self._closed.is_set())
                    left = self._oldest + LONGEST_WAIT - time.monotonic()
                if left > 0:
                    self._closed.wait(left)  # then another look: what waited may be committed by now
                else:
                    self.flush()
        except BaseException as error:  # handed to the thread that pushes, which stops at its next answer
            self._error = error
        finally:
            self.outbox.thread_ends()
