"""Work that can be left behind: in daemon threads, so that a cancel never waits for a destination that does not
answer."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from runtime.errors import Cancelled

#: Seconds between two looks whether the work was cancelled.
LOOK_EVERY = 0.5
#: So long after a cancel the work may still end by itself.
GRACE = 2.0
#: Bytes of stack that a push function may use: 5 MB for JSON of as many levels as `nesting` lets pass, and 130 a level
#: where a value becomes text.
STACK = 128 << 20

Act = Callable[[], None]


def supervised(
    work: Act, cancelled: Callable[[], bool], *, abandon: Act, ends: Act, meanwhile: Act = lambda: None
) -> None:
    """Runs `work` in a thread and waits for it; raises what it raised.

    GRACE seconds after a cancel `abandon` is called and the thread left to itself; also when this thread is
    interrupted. `ends` is the thread's last act, `meanwhile` what this one does at each look.
    """
    errors: list[BaseException] = []
    done = threading.Event()

    def run() -> None:
        try:
            work()
        except BaseException as error:  # raised below, in the thread that waits
            errors.append(error)
        finally:
            try:
                ends()
            finally:
                done.set()

    _start(threading.Thread(target=run, name="supervised", daemon=True))
    asked = 0.0
    try:
        while not done.wait(LOOK_EVERY):
            meanwhile()
            if not asked and cancelled():
                asked = time.monotonic()
            elif asked and time.monotonic() - asked > GRACE:
                abandon()
                return
    except BaseException:
        abandon()
        raise
    if errors:
        raise errors[0]


def side_by_side(n: int, work: Iterator[Act], *, ends: Act) -> None:
    """Does the work in `n` daemon threads, which take it one by one in its order; raises the first error once all have
    ended."""
    lock = threading.Lock()
    errors: list[BaseException] = []

    def run() -> None:
        try:
            while not errors:
                with lock:
                    act = next(work, None)
                if act is None:
                    return
                act()
        except BaseException as error:
            errors.append(error)
        finally:
            ends()

    threads = [threading.Thread(target=run, name=f"push-{i}", daemon=True) for i in range(n)]
    _start(*threads)
    for thread in threads:
        thread.join()
    if errors:
        raise errors[0]


def _start(*threads: threading.Thread) -> None:
    usual = threading.stack_size(STACK)
    try:
        for thread in threads:
            thread.start()
    finally:
        threading.stack_size(usual)


def sleep(seconds: float, cancelled: Callable[[], bool]) -> bool:
    """Waits; False as soon as the work was cancelled, which is seen at the latest LOOK_EVERY seconds later."""
    end = time.monotonic() + seconds
    while (left := end - time.monotonic()) > 0:
        if cancelled():
            return False
        time.sleep(min(left, LOOK_EVERY))

    return True


def wait(seconds: float, cancelled: Callable[[], bool], why: str) -> None:
    """The same for what cannot go on after a cancel: raises Cancelled, which says what it waited for."""
    if not sleep(seconds, cancelled):
        raise Cancelled(f"the run was cancelled while it waited for {why}")


@contextmanager
def watching(cancelled: Callable[[], bool], act: Act, *, ends: Act) -> Iterator[None]:
    """Calls `act` again and again from the cancel to the end of the block."""
    over = threading.Event()

    def watch() -> None:
        try:
            while not over.wait(LOOK_EVERY):
                if cancelled():
                    act()
        finally:
            ends()

    thread = threading.Thread(target=watch, name="watching", daemon=True)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()
