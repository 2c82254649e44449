"""What the runs of a sync did over 90 days, a bar a day: drawn here, so that the page needs no script."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from typing import Any

from django.db.models import Count, F, FloatField, Func, Max, Sum, TextField
from django.db.models.functions import Cast, Substr
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
    days = {date.fromisoformat(told["day"]): told for told in _by_day(sync, first)}
    if not days:
        return []
    return [
        _trend("Rows sent", "", first, {d: t["sent"] or 0 for d, t in days.items()}, _rows),
        _trend("Rejected or due again", "bad", first, {d: t["bad"] or 0 for d, t in days.items()}, _rows),
        _trend("Duration, longest run", "", first, {d: t["took"] or 0.0 for d, t in days.items()}, _length),
        _trend("Lag, from call to end", "", first, {d: t["lag"] or 0.0 for d, t in days.items()}, _length),
    ]


def _by_day(sync: Sync, first: date) -> Any:
    began = datetime.combine(first, time(), UTC)
    runs = Run.objects.filter(sync=sync, created_at__gte=began, dry_run=False).exclude(status=Run.Status.SKIPPED)
    return (
        runs.annotate(day=Substr(Cast("created_at", TextField()), 1, 10))
        .values("day")
        .annotate(
            runs=Count("pk"),
            sent=Sum("succeeded"),
            bad=Sum(F("rejected") + F("retrying")),
            took=Max(Seconds("ended_at", "started_at")),
            lag=Max(Seconds("ended_at", "created_at")),
        )
        .order_by("day")
    )


class Seconds(Func):
    """From the second moment to the first. SQLite asks Python for Django's own difference and day of each row."""

    arity, output_field = 2, FloatField()
    template, arg_joiner = "EXTRACT(EPOCH FROM (%(expressions)s))::double precision", " - "

    def as_sqlite(self, compiler: Any, connection: Any, **context: Any) -> Any:
        days = "(julianday(%(expressions)s)) * 86400.0"
        return self.as_sql(compiler, connection, template=days, arg_joiner=") - julianday(")


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
