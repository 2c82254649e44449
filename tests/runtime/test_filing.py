"""Who closes a delivery, and when, whatever its files come to."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import pytest

from runtime.delivery.filing import Filing, Reserve, Sealed
from runtime.errors import LeaseLost


class Closes:
    """An outbox that notes what was closed, and numbers files of each delivery from 7."""

    def __init__(self, **errors: Exception) -> None:
        self.made: list[tuple[Any, Any]] = []
        self.errors = errors

    def reserve(self, claim: Any) -> Reserve:
        numbers = iter(range(7, 100))
        return lambda _: next(numbers)

    def close(self, claim: Any, closing: Any) -> None:
        if claim in self.errors:
            raise self.errors[claim]
        self.made.append((claim, closing))


def sealed(name: str, write: Callable[[Reserve], Any]) -> Any:
    return Sealed(name, ("updated",), write)  # type: ignore[arg-type]


def test_one_delivery_is_written_at_a_time_and_closed_in_the_thread_that_gave_it() -> None:
    outbox, gate, writers = Closes(), threading.Event(), []
    with Filing(outbox, lambda _: None) as filing:  # type: ignore[arg-type]
        filing.add(
            sealed(
                "a", lambda reserve: (writers.append(threading.current_thread()), gate.wait(10), reserve("updated"))[-1]
            )
        )
        filing.look()
        assert outbox.made == []
        threading.Timer(0.3, gate.set).start()
        filing.add(sealed("b", lambda reserve: reserve("updated")))
        assert outbox.made == [("a", 7)] and writers != [threading.current_thread()]
    assert outbox.made == [("a", 7), ("b", 7)]


def test_a_number_that_is_taken_costs_a_second_write_with_the_next_one() -> None:
    outbox = Closes()
    with Filing(outbox, lambda _: None) as filing:  # type: ignore[arg-type]
        filing.add(sealed("a", lambda reserve: [reserve("updated"), reserve("updated")]))
    assert outbox.made == [("a", [7, 8])]


def test_what_cannot_be_closed_is_given_back_and_told_when_the_next_chunk_is_done() -> None:
    def broken(reserve: Reserve) -> Any:
        raise MemoryError("too large")

    outbox, back = Closes(lost=LeaseLost("taken over"), full=OSError("disk full")), []
    with pytest.raises(MemoryError, match="too large"), Filing(outbox, back.append) as filing:  # type: ignore[arg-type]
        filing.add(sealed("lost", lambda reserve: 1))  # another process has it: nobody's error
        filing.add(sealed("full", lambda reserve: 1))
        while not back:
            filing.look()  # raises nothing: the next chunk is being pushed
        with pytest.raises(OSError, match="disk full"):
            filing.add(sealed("never", lambda reserve: 1))
        filing.add(sealed("broken", broken))
    assert (outbox.made, back) == ([], ["full", "broken"])


def test_an_error_elsewhere_waits_for_the_files_and_stays_the_one_that_is_told() -> None:
    outbox, back = Closes(full=OSError("disk full")), []
    with pytest.raises(KeyboardInterrupt), Filing(outbox, back.append) as filing:  # type: ignore[arg-type]
        filing.add(sealed("good", lambda reserve: 1))
        filing.add(sealed("full", lambda reserve: 1))
        raise KeyboardInterrupt
    assert (outbox.made, back) == ([("good", 1)], ["full"])
