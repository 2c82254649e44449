"""What delivery needs from the database, and the values that pass between them.

`ondatra_web.runs.outbox` does it with Django's tables. Every write names the lease under which the work was claimed and
raises LeaseLost where another process holds a newer one.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np

from runtime.delivery.answers import Entry
from runtime.model import Column


@dataclass(frozen=True)
class OpenJob:
    """A job at the destination that was not ended when it was last asked; `rows` are indexes within the delivery."""

    id: int
    ref: dict[str, Any]
    rows: np.ndarray[Any, Any]
    batch_number: int
    age: float  # seconds


@dataclass(frozen=True)
class Claim:
    """One chunk, or what waits of it, taken for delivery in one run."""

    delivery_id: int
    run_id: int
    chunk_id: int
    lease: int
    url: str
    states: np.ndarray[Any, Any]  # uint8, one a row of the chunk file
    selected: np.ndarray[Any, Any]  # bool, the rows that this run delivers
    columns: tuple[Column, ...]
    first_call: int
    answered: tuple[Entry, ...] = ()  # of an earlier process that held this claim
    runs_failed: np.ndarray[Any, Any] | None = None
    sealed_digest: str = ""  # the answers are frozen: only files and close are left
    slots: int = 1
    jobs: tuple[OpenJob, ...] = ()


@dataclass(frozen=True)
class RecordCounts:
    """Records of one delivery by their end; `companions_due` are old images that ended in error."""

    succeeded: int = 0
    warned: int = 0
    rejected: int = 0
    retrying: int = 0
    not_tried: int = 0
    companions_due: int = 0


@dataclass(frozen=True)
class Closing:
    """All that one delivery leaves behind, written in one transaction."""

    states: np.ndarray[Any, Any]  # of the whole chunk
    runs_failed: np.ndarray[Any, Any] | None
    counts: RecordCounts
    files: Sequence[Any] = ()  # tracking.WrittenFile
    calls_file: tuple[str, int] | None = None  # url, calls
    log: Sequence[tuple[str, str]] = field(default_factory=tuple)  # level, text
    push_ms: int = 0
    http_ms: int = 0
    files_pending: bool = False  # the store is down: states and counts now, files when it is back


class Outbox(Protocol):
    """The database as delivery sees it."""

    def record(self, claim: Claim, entries: Sequence[Entry], *, failed_in_row: int | None) -> None:
        """Commits answers; they survive any crash from here on."""

    def open_job(self, claim: Claim, entry: Entry, ref: dict[str, Any]) -> int:
        """Saves a job's reference with the answer that says so, in one transaction, before the first poll."""

    def make_sure(self, claim: Claim) -> None:
        """Before each call: raises LeaseLost where this process was stopped for so long that another one has the
        claim."""

    def failed_in_row(self, run_id: int) -> int:
        """Failed calls of the run since the last good one, over all its workers."""

    def seal(self, claim: Claim, digest: str, rules: dict[str, Any]) -> None:
        """Freezes the answers of the claim, with what their files follow (`tracking.info.rules_of`)."""

    def reserve(self, claim: Claim) -> Callable[[str], int]:
        """Gives the next free file number of a batch type."""

    def close(self, claim: Claim, closing: Closing) -> None:
        """One transaction: states, counts, files, groups; the delivery is closed."""

    def thread_ends(self) -> None:
        """Called by a thread that used the outbox when it ends, so that its connection is closed."""

    def cancelled(self, run_id: int) -> bool:
        """Whether a person asked to stop the run."""
