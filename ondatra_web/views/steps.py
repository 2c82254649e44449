"""How far a run is: its four steps, with rate and time left."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.utils import timezone

from ondatra_web.durations import duration
from ondatra_web.models import Run
from ondatra_web.views.shown import answered, progress

STEPS = (("build", "Plan and build"), ("changes", "Find changes"), ("push", "Push"), ("finish", "Finish"))


@dataclass(frozen=True)
class Step:
    name: str
    state: str  # done, now, todo, failed
    took: timedelta | None
    note: str = ""
    percent: int = 0


def steps(run: Run) -> list[Step]:
    """None for a run that never began."""
    began = {name: at for name, _ in STEPS if (at := _instant(run.step_times.get(name)))}
    if not began and run.status not in Run.ACTIVE:
        return []

    return [_step(run, position, began) for position in range(len(STEPS))]


def _step(run: Run, position: int, began: Mapping[str, datetime]) -> Step:
    name, label = STEPS[position]
    start = began.get(name)
    if start is None:
        return Step(label, "todo", None)

    active = run.status in Run.ACTIVE
    end = next((began[later] for later, _ in STEPS[position + 1 :] if later in began), None)
    now = timezone.now()
    took = (end or (now if active else run.ended_at or now)) - start

    state = "done"
    if end is None and active:
        state = "now"
    elif end is None and run.status == Run.Status.FAILED:
        state = "failed"

    if name == "push":
        return Step(label, state, took, push_note(run, took), progress(run) or 0)
    return Step(label, state, took, percent=50)


def push_note(run: Run, took: timedelta) -> str:
    """Rows per second, time left, and how much of the time went into waiting for the destination."""
    done, seconds = answered(run), took.total_seconds()
    parts = []

    if done and seconds > 0:
        rate = done / seconds
        parts.append(f"{rate:,.1f} rows/s" if rate < 100 else f"{rate:,.0f} rows/s")
        if run.status in Run.ACTIVE and run.planned > done:
            parts.append(f"{duration(timedelta(seconds=(run.planned - done) / rate))} left")

    if run.push_ms and run.http_ms:
        parts.append(f"{min(100, 100 * run.http_ms // run.push_ms)} % waiting for the destination")
    return ", ".join(parts)


def _instant(told: Any) -> datetime | None:
    text = told[0] if isinstance(told, list) and told else told
    return datetime.fromisoformat(text) if isinstance(text, str) and text else None
