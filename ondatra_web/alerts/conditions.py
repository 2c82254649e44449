"""What one run says of each kind of rule: a value to hold against the thresholds, and a sentence for people.

A sentence has counts, names and patterns in it; no message of a destination, and no value of a row.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

import pyarrow as pa

from ondatra_web.alerts import usual as memory
from ondatra_web.alerts.kinds import MEASURES
from ondatra_web.models import AlertKind, AlertRule, Run, SyncUsual
from runtime.tracking.messages import patterns

LONGEST = 300


@dataclass(frozen=True)
class Seen:
    """A run that ended, with what was known of its sync before. `due` and `refused` wait now, over all runs."""

    run: Run
    usual: SyncUsual
    due: int = 0
    refused: int = 0

    @property
    def began(self) -> datetime:
        return self.run.started_at or self.run.created_at


@dataclass(frozen=True)
class Found:
    """What was found of one kind; without a value it is over."""

    value: float | None = None
    summary: str = ""
    since: datetime | None = None
    facts: dict[str, Any] = field(default_factory=dict)


OVER = Found()
#: None: the run says nothing of it, and what was known stays.
Condition = Callable[[Seen, AlertRule], Found | None]


def failure(seen: Seen, rule: AlertRule) -> Found | None:
    if seen.run.status in memory.DONE:
        return OVER
    if seen.run.status != Run.Status.FAILED:
        return None
    times, why = seen.usual.failed_in_row, said(seen.run.error)
    text = f"failed {times} times in a row" if times > 1 else "failed"
    told = f"{text}: {why}" if why else text
    return Found(times, told, seen.usual.failing_since, {"failed_in_row": times, **({"error": why} if why else {})})


def rejected(seen: Seen, rule: AlertRule) -> Found | None:
    """A run that sent nothing new says how much of what was refused is still not there; so does a retry."""
    run = seen.run
    if run.status not in (*memory.DONE, Run.Status.FAILED):
        return None
    refused, of = run.rejected + run.retrying, run.succeeded + run.rejected + run.retrying
    if run.options.get("retry_of") or not run.planned:
        left = seen.refused + run.retrying
        return OVER if not left else None
    if not of:
        return None
    value = 100 * refused / of if rule.unit == "percent" else refused
    text = f"{refused:,} of {of:,} records were not taken ({_percent(refused, of)})"
    return Found(value, text, seen.began, {"rows": refused, "of": of})


def invalid(seen: Seen, rule: AlertRule) -> Found | None:
    run = seen.run
    if not run.staged or not run.source_count or run.options.get("retry_of"):
        return None
    value = 100 * run.invalid / run.source_count if rule.unit == "percent" else run.invalid
    share = _percent(run.invalid, run.source_count)
    text = f"{run.invalid:,} of {run.source_count:,} rows are invalid ({share})"
    return Found(value, text, seen.began, {"rows": run.invalid, "of": run.source_count})


def deviation(seen: Seen, rule: AlertRule) -> Found | None:
    measure = rule.measure or "source"
    center = memory.middle(seen.usual, measure)
    if not memory.is_ordinary(seen.run) or center is None:
        return None
    run = seen.run
    found = {"source": run.source_count, "planned": run.planned, "deleted": run.deleted}[measure]
    if not memory.is_off(seen.usual, measure, found):
        return OVER
    value = 100 * abs(found - center) / center if center else 100.0
    text = f"{found:,} {MEASURES[measure]}, usually about {center:,.0f}"
    return Found(value, text, seen.began, {"rows": found, "usual": center, "measure": measure})


def duration(seen: Seen, rule: AlertRule) -> Found | None:
    if not memory.is_ordinary(seen.run):
        return None
    return lasted(seen.usual, rule, memory.seconds(seen.run), seen.began) or OVER


def lasted(usual: SyncUsual, rule: AlertRule, took: float, began: datetime, so_far: bool = False) -> Found | None:
    """Also of a run that still works; None where it takes no longer than usual, or nothing is usual yet."""
    center = memory.middle(usual, "seconds")
    text = f"has taken {length(took)} so far" if so_far else f"took {length(took)}"
    facts: dict[str, Any] = {"seconds": round(took)}
    if rule.unit == "minutes":
        return Found(took / 60, text, began, facts)
    if center is None or took - center < memory.LEAST_SECONDS:
        return None
    usually = f", usually about {length(center)}"
    return Found(took / max(center, 1.0), text + usually, began, {**facts, "usual": round(center)})


def due(seen: Seen, rule: AlertRule) -> Found | None:
    if seen.run.status == Run.Status.CANCELLED:
        return None
    if not seen.due:
        return OVER
    grown = memory.growths(seen.usual, seen.due)
    value = grown if rule.unit == "runs" else seen.due
    more = f", more after each of the last {grown} runs" if grown > 1 else ""
    return Found(value, f"{seen.due:,} rows wait to be sent again{more}", seen.began, {"rows": seen.due})


def held(seen: Seen, rule: AlertRule) -> Found | None:
    return waits(seen.run, seen.run.ended_at or seen.began) if seen.run.status == Run.Status.HELD else OVER


def waits(run: Run, now: datetime) -> Found:
    """Of a held run."""
    since = run.ended_at or run.created_at
    deletes = run.options.get("would_delete")
    why = f"it would delete {deletes:,} rows" if deletes else "a person must decide how it goes on"
    text = f"run {run.pk} is held: {why}; nothing was sent"
    return Found((now - since).total_seconds() / 3600, text, since, {"rows": deletes or 0})


CONDITIONS: dict[AlertKind, Condition] = {
    AlertKind.FAILURE: failure,
    AlertKind.REJECTED: rejected,
    AlertKind.INVALID: invalid,
    AlertKind.DEVIATION: deviation,
    AlertKind.DURATION: duration,
    AlertKind.DUE: due,
    AlertKind.HELD: held,
}


def said(text: str) -> str:
    """An error without what may be the value of a row: its pattern, with quoted text left out."""
    line = text.strip().splitlines()[0] if text.strip() else ""
    if not line:
        return ""
    pattern = patterns(pa.array([line], pa.string()))[0].as_py()
    plain = re.sub(r'"[^"]*"', "‹text›", pattern)
    return plain if len(plain) <= LONGEST else plain[: LONGEST - 1] + "…"


def _percent(part: int, whole: int) -> str:
    return f"{100 * part / whole:.1f}".rstrip("0").rstrip(".") + " %"


def length(took: float) -> str:
    """`2 h 10 min`, `45 s`."""
    minutes = int(took // 60)
    if minutes < 1:
        return f"{took:.0f} s"
    days, hours, rest = minutes // 1440, minutes // 60 % 24, minutes % 60
    parts = [(days, "d"), (hours, "h"), (rest, "min")]
    first = next(i for i, (n, _) in enumerate(parts) if n)
    return " ".join(f"{n} {unit}" for n, unit in parts[first : first + 2] if n)


def late(due_at: datetime, now: datetime) -> Found:
    behind: timedelta = now - due_at
    text = f"is {length(behind.total_seconds())} late: its run of {due_at:%Y-%m-%d %H:%M} UTC has not ended"
    return Found(behind.total_seconds() / 60, text, due_at, {"due_at": due_at.isoformat()})
