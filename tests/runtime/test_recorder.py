"""When answers are committed."""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence

import pytest

from runtime.delivery.answers import Entry
from runtime.delivery.recorder import Recorder
from runtime.errors import LeaseLost


class Commits:
    """An outbox that notes when what was committed."""

    def __init__(self, error: Exception | None = None) -> None:
        self.made: list[tuple[float, int, int | None]] = []
        self.error, self.one = error, threading.Event()

    def record(self, claim: object, entries: Sequence[Entry], *, failed_in_row: int | None) -> None:
        if self.error:
            raise self.error
        self.made.append((time.monotonic(), sum(len(e.index) for e in entries), failed_in_row))
        self.one.set()

    def thread_ends(self) -> None:
        pass


def answered(rows: int) -> Entry:
    return Entry(1, 1, 0, 0, range(rows), "k" * rows)


def test_an_answer_is_committed_within_200_ms_though_nothing_follows() -> None:
    took = []
    for _ in range(3):  # other work on the machine may hold up one, not each of them
        outbox = Commits()
        recorder = Recorder(outbox, None, 0)  # type: ignore[arg-type]
        began = time.monotonic()
        recorder.add(answered(1))
        assert outbox.one.wait(20)
        recorder.close()
        ((at, rows, _),) = outbox.made
        assert rows == 1
        took.append(at - began)
    assert min(took) < 0.2


def test_a_thousand_rows_are_committed_at_once() -> None:
    outbox = Commits()
    recorder = Recorder(outbox, None, 0)  # type: ignore[arg-type]
    recorder.add(answered(1_000))
    assert [rows for _, rows, _ in outbox.made] == [1_000]
    recorder.close()


def test_failed_calls_in_a_row_are_committed_with_the_answers() -> None:
    outbox = Commits()
    recorder = Recorder(outbox, None, 2)  # type: ignore[arg-type]
    recorder.call_ended(failed=True)
    recorder.add(answered(1_000))
    recorder.call_ended(failed=False)
    recorder.add(answered(1_000))
    recorder.close()
    assert [failed for _, _, failed in outbox.made] == [3, 0]


def test_a_lost_lease_stops_the_pushing_at_its_next_answer() -> None:
    recorder = Recorder(Commits(LeaseLost("taken over")), None, 0)  # type: ignore[arg-type]
    with pytest.raises(LeaseLost, match="taken over"):
        for _ in range(200):
            recorder.add(answered(1))
            time.sleep(0.1)
