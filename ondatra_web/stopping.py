"""SIGTERM and Ctrl-C: what is at hand is given back, and the process ends soon, whatever it waits for."""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import NoReturn

#: Seconds in which what was answered is recorded and claims are given back; supervisors kill after 30.
SECONDS = 25.0
SIGNALS = (signal.SIGTERM, signal.SIGINT)


class Stopped(KeyboardInterrupt):
    """Raised in the main thread by the first signal; its text is the signal's name."""


def told(error: BaseException) -> str:
    """The one line that the process ends with."""
    return f"stopped by {error or 'SIGINT'}: what was answered is recorded, and the rest stays due"


@contextmanager
def stoppable(seconds: float = SECONDS) -> Iterator[None]:
    """The first signal within the block raises Stopped. Later ones change nothing: whoever tidies up is not disturbed,
    and is cut off after so many seconds; the next run closes what he left."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    cut_off: list[threading.Timer] = []

    def stop(number: int, frame: FrameType | None) -> None:
        if cut_off:
            return
        error = Stopped(signal.Signals(number).name)
        cut_off.append(threading.Timer(seconds, _end, [error]))
        cut_off[0].daemon = True
        cut_off[0].start()
        raise error

    before = {number: signal.signal(number, stop) for number in SIGNALS}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
        for timer in cut_off:
            timer.cancel()


def _end(error: Stopped) -> NoReturn:
    """Without waiting for anything: threads, files and locks go with the process."""
    print(told(error), file=sys.stderr, flush=True)
    os._exit(1)
