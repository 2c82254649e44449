"""What was found of one part of the install, and a way to ask several parts that never waits longer than it says."""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime

OK, WARNING, BAD = "ok", "warning", "bad"


@dataclass(frozen=True)
class Finding:
    """One part: `said` and `todo` hold no address, path or host, which only those who run the install see (`detail`).
    `todo` is empty where the part is fine."""

    part: str
    state: str
    said: str
    todo: str = ""
    detail: str = ""
    seen: datetime | None = None  # its last sign of life


Ask = Callable[[], Finding]


def side_by_side(asked: Mapping[str, tuple[Ask, str]], seconds: float) -> list[Finding]:
    """Asks all parts at once, each in a daemon thread of its own; the answers in their order. A part that is silent for
    so many seconds, or whose question fails, is bad, with what to do then; its thread is left behind."""
    told: queue.SimpleQueue[tuple[str, Finding]] = queue.SimpleQueue()
    for part, (ask, todo) in asked.items():
        threading.Thread(target=_ask, args=(part, ask, todo, told), name=f"ask-{part}", daemon=True).start()

    found: dict[str, Finding] = {}
    until = time.monotonic() + seconds
    while len(found) < len(asked) and (left := until - time.monotonic()) > 0:
        try:
            part, finding = told.get(timeout=left)
        except queue.Empty:
            break
        found[part] = finding
    silent = f"no answer within {seconds:g} s"
    return [found.get(part) or Finding(part, BAD, silent, todo) for part, (_, todo) in asked.items()]


def _ask(part: str, ask: Ask, todo: str, told: queue.SimpleQueue[tuple[str, Finding]]) -> None:
    try:
        finding = ask()
    except Exception as error:  # whatever it is, the part does not work, and the others are still told
        finding = Finding(part, BAD, "does not answer", todo, str(error))
    told.put((part, finding))
