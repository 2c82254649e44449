"""What the runs of a sync did over 90 days, a bar a day: drawn here, so that the page needs no script."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date, timedelta
from typing import Any

from django.db.models import Count, F, Max, Sum
from django.db.models.functions import TruncDate
from django.utils import timezone

from ondatra_web.durations import duration
from ondatra_web.models import Run, Sync

DAYS = 90
#: Units of the drawing: a day's place, its bar, the height of all.
STEP, WIDTH, HEIGHT = 8, 6, 64


@dataclass(frozen=True)
class DayBar:
    x: int
    y: float
    height: float
    title: str


@dataclass(frozen=True)
class Trend:
    label: str
    tone: str
    most: str
    bars: tuple[DayBar, ...]
    width: int = STEP * DAYS
    height: int = HEIGHT
    bar: int = WIDTH


def trends(sync: Sync) -> list[Trend]:
    """One query, however many runs; none where nothing ran."""
    first = timezone.now().date() - timedelta(days=DAYS - 1)
    days = {told["day"]: told for told in _by_day(sync, first)}
    if not days:
        return []
    return [
        _trend("Rows sent", "", first, {d: t["sent"] or 0 for d, t in days.items()}, _rows),
        _trend("Rejected or due again", "bad", first, {d: t["bad"] or 0 for d, t in days.items()}, _rows),
        _trend("Duration, longest run", "", first, {d: _seconds(t["took"]) for d, t in days.items()}, _length),
        _trend("Lag, from call to end", "", first, {d: _seconds(t["lag"]) for d, t in days.items()}, _length),
    ]


def _by_day(sync: Sync, first: date) -> Any:
    runs = Run.objects.filter(sync=sync, created_at__date__gte=first, dry_run=False).exclude(status=Run.Status.SKIPPED)
    return (
        runs.annotate(day=TruncDate("created_at"))
        .values("day")
        .annotate(
            runs=Count("pk"),
            sent=Sum("succeeded"),
            bad=Sum(F("rejected") + F("retrying")),
            took=Max(F("ended_at") - F("started_at")),
            lag=Max(F("ended_at") - F("created_at")),
        )
        .order_by("day")
    )


def _trend(label: str, tone: str, first: date, values: dict[date, float], text: Any) -> Trend:
    most = max(values.values(), default=0)
    bars = []
    for n in range(DAYS):
        day = first + timedelta(days=n)
        if day not in values:
            continue
        height = max(1.0, round(HEIGHT * values[day] / most, 1)) if most and values[day] else 1.0
        title = f"{day.day} {day:%b}: {text(values[day])}"
        bars.append(DayBar(n * STEP, round(HEIGHT - height, 1), height, title))
    return Trend(label, tone, text(most), tuple(bars))


def _rows(number: float) -> str:
    return f"{number:,.0f}"


def _length(seconds: float) -> str:
    return duration(timedelta(seconds=seconds))


def _seconds(length: timedelta | None) -> float:
    return length.total_seconds() if length else 0.0
