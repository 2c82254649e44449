"""Lengths of time as people read them."""

from __future__ import annotations

from datetime import timedelta


def duration(took: timedelta | None) -> str:
    """`2 min 41 s`: two units at most."""
    if took is None:
        return ""
    seconds = max(0.0, took.total_seconds())
    if seconds < 10:
        return f"{seconds:.1f} s"
    whole = round(seconds)
    days, hours, minutes = whole // 86_400, whole // 3_600 % 24, whole // 60 % 60
    parts = [(days, "d"), (hours, "h"), (minutes, "min"), (whole % 60, "s")]
    first = next(i for i, (n, _) in enumerate(parts) if n)
    return " ".join(f"{n} {unit}" for n, unit in parts[first : first + 2] if n)
