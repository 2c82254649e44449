"""What is written down of a call: that it may begin, what it answered, that it began a job, that nobody will know."""

from __future__ import annotations

import time
from collections.abc import Sequence
from datetime import datetime

from runtime.delivery import answers as codes
from runtime.delivery.answers import Entry
from runtime.delivery.chunk import Index
from runtime.push.call import CallResult
from runtime.push.statuses import OK, Outcome


def micros(moment: datetime) -> int:
    """Since 1970 UTC."""
    return round(moment.timestamp() * 1_000_000)


def now() -> int:
    return round(time.time() * 1_000_000)


def begun(number: int, index: Index) -> Entry:
    """Calls from this one on may begin with these rows."""
    return _same(number, 0, now(), now(), index, codes.BEGUN)


def answered(
    number: int, attempt: int, started: int, ended: datetime, outcomes: Sequence[Outcome], index: Index
) -> Entry:
    """An outcome for each row, in order."""
    messages = {i: o.message for i, o in enumerate(outcomes) if o.message}
    return Entry(number, attempt, started, micros(ended), _plain(index), _letters(outcomes), messages)


def job(number: int, attempt: int, result: CallResult, index: Index) -> Entry:
    """The call began a job."""
    return _same(number, attempt, micros(result.started_at), micros(result.ended_at), index, codes.JOB)


def open_job(number: int, index: Index) -> Entry:
    """A job of an earlier process or run is still open."""
    return _same(number, 1, now(), now(), index, codes.JOB)


def unknown(number: int, attempt: int, index: Index, why: str) -> Entry:
    """Nobody knows whether the rows arrived."""
    return _same(number, attempt, now(), now(), index, codes.UNKNOWN, why)


def _same(number: int, attempt: int, started: int, ended: int, index: Index, code: str, message: str = "") -> Entry:
    n = len(index)
    return Entry(
        number,
        attempt,
        started,
        ended,
        _plain(index),
        code * n,
        dict.fromkeys(range(n), message) if message else {},
    )


def _letters(outcomes: Sequence[Outcome]) -> str:
    """One a row."""
    if all(o is OK for o in outcomes):
        return codes.OK * len(outcomes)
    return "".join(map(_letter, outcomes))


def _letter(outcome: Outcome) -> str:
    if outcome.kind == "error":
        return codes.ERROR if outcome.known else codes.UNKNOWN
    return {"ok": codes.OK, "warn": codes.WARN, "reject": codes.REJECT}[outcome.kind]


def _plain(index: Index) -> Sequence[int]:
    """A range where the rows stand together, for a small entry."""
    first, last = int(index[0]), int(index[-1])
    return range(first, last + 1) if last - first + 1 == len(index) else index.tolist()
