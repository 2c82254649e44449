"""The files of sealed deliveries, written in a thread of their own while the next chunk is pushed.

The thread touches files only. Numbers are reserved and deliveries closed in the thread that uses a Filing, so that a
delivery is closed, and its run can end, only when its files are written or known to wait. Until then it is sealed:
whoever takes over from a process that died writes them from the recorded answers.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from types import TracebackType

from runtime import faults
from runtime.delivery.outbox import Claim, Closing, Outbox
from runtime.errors import LeaseLost

log = logging.getLogger("ondatra.filing")
Reserve = Callable[[str], int]


@dataclass(frozen=True)
class Sealed:
    """A delivery whose answers are frozen. `write` makes its files, with numbers from a Reserve, and says how the
    delivery is closed; it catches what only holds the files up. `batch_types` are those of which it needs a number."""

    claim: Claim
    batch_types: Sequence[str]
    write: Callable[[Reserve], Closing]

    def close(self, outbox: Outbox) -> None:
        """Writes and closes here and now."""
        _close(self.claim, self.write(outbox.reserve(self.claim)), outbox)


class Filing:
    """Holds at most one delivery, so that memory does not grow where files take longer than calls. For use as a context
    manager, by one thread; at its end all is closed. What another process took over is left to it; `give_back` gets a
    claim that could not be closed."""

    def __init__(self, outbox: Outbox, give_back: Callable[[Claim], None]) -> None:
        self.outbox, self.give_back = outbox, give_back
        self._now: _Writing | None = None
        self._error: BaseException | None = None

    def add(self, sealed: Sealed) -> None:
        """Begins to write, once the delivery before is closed. Raises what kept that from it."""
        self._settle()
        reserve = self.outbox.reserve(sealed.claim)
        self._now = _Writing(sealed, {kind: reserve(kind) for kind in sealed.batch_types})

    def look(self) -> None:
        """Closes what is written by now; an error waits for `add` or the end, because the thread that calls has other
        work."""
        if self._now is not None and self._now.is_done:
            try:
                self._end()
            except Exception as error:
                self._error = error

    def _settle(self) -> None:
        if self._now is not None:
            self._end()
        error, self._error = self._error, None
        if error is not None:
            raise error

    def _end(self) -> None:
        """Waits for the files and closes their delivery."""
        writing, self._now = self._now, None
        assert writing is not None
        try:
            try:
                closing = writing.closing()
            except _Taken:  # a file of something else has that number: rare enough to be written anew here
                closing = writing.sealed.write(self.outbox.reserve(writing.sealed.claim))
            _close(writing.sealed.claim, closing, self.outbox)
        except LeaseLost as lost:
            log.warning("%s", lost)
        except BaseException:
            self.give_back(writing.sealed.claim)
            raise

    def __enter__(self) -> Filing:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if error is None:
            self._settle()
            return
        try:
            self._settle()
        except Exception:  # the error that came first is the one to tell
            log.exception("while the files of an earlier chunk were closed")


class _Taken(Exception):
    """The reserved number is not enough."""


class _Writing:
    """The thread of one delivery. A daemon: Ctrl-C at its worst moment leaves a sealed delivery."""

    def __init__(self, sealed: Sealed, numbers: dict[str, int]) -> None:
        self.sealed = sealed
        self._numbers = numbers
        self._closing: Closing | None = None
        self._error: BaseException | None = None
        self._thread = threading.Thread(target=self._run, name="filing", daemon=True)
        self._thread.start()

    @property
    def is_done(self) -> bool:
        return not self._thread.is_alive()

    def closing(self) -> Closing:
        """Waits; raises what was raised in the thread."""
        self._thread.join()
        if self._error is not None:
            raise self._error
        assert self._closing is not None
        return self._closing

    def _run(self) -> None:
        try:
            self._closing = self.sealed.write(self._number)
        except BaseException as error:  # raised in the thread that waits
            self._error = error

    def _number(self, batch_type: str) -> int:
        """Each number once."""
        try:
            return self._numbers.pop(batch_type)
        except KeyError:
            raise _Taken from None


def _close(claim: Claim, closing: Closing, outbox: Outbox) -> None:
    faults.point("after_files")
    outbox.close(claim, closing)
