"""Quiet hours: by the clock of a place, across midnight and changes of its time."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

from ondatra_web.models import AlertLevel, AlertRule


def until(rule: AlertRule, level: str, now: datetime) -> datetime | None:
    """When the quiet hours end that a message of this level falls into; None where it goes at once."""
    if rule.quiet_from is None or rule.quiet_until is None:
        return None
    if level == AlertLevel.CRITICAL and not rule.quiet_critical:
        return None

    zone = ZoneInfo(rule.quiet_zone)
    here = now.astimezone(zone)
    for day in (here.date() - timedelta(days=1), here.date()):
        over = rule.quiet_until <= rule.quiet_from  # they end on the next day
        begin = datetime.combine(day, rule.quiet_from, zone)
        end = datetime.combine(day + timedelta(days=over), rule.quiet_until, zone)
        if begin.astimezone(UTC) <= now < end.astimezone(UTC):
            return end.astimezone(UTC)
    return None
