"""How times, lengths and states are written on every page."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

from django import template
from django.conf import settings
from django.http import HttpRequest
from django.templatetags.static import static
from django.utils import timezone
from django.utils.html import format_html
from django.utils.safestring import SafeString

from ondatra_web.access import administers, chosen_organization
from ondatra_web.durations import duration
from ondatra_web.models import Alert, AlertLevel, Organization, Run, Sync
from ondatra_web.tracking.records import visible
from ondatra_web.views import needs
from ondatra_web.views.alerts import open_alerts
from ondatra_web.views.shown import cut, progress, run_took

register = template.Library()
TONES = {
    "Success": "ok",
    "Rejected": "bad",
    "Due again": "warn",
    "Invalid": "warn",
    "Planned": "",
    "Waiting": "warn",
    "built": "ok",
    "unchanged": "",
    "skipped": "warn",
    "failed": "bad",
}
_STATES = {
    "queued": ("", "Queued"),
    "working": ("live", "Working"),
    "held": ("warn", "Held"),
    "canceling": ("live", "Stopping"),
    "completed": ("ok", "Completed"),
    "completed_with_rejects": ("warn", "With rejects"),
    "failed": ("bad", "Failed"),
    "cancelled": ("", "Cancelled"),
    "skipped": ("", "Skipped"),
}


@register.filter
def state(run: Run) -> SafeString:
    """A run's state in a word and a colour; decided by counts, not by hope."""
    return format_html('<span class="tag {}">{}</span>', *_state(run))


@register.filter
def state_word(run: Run) -> str:
    """`Working 46 %`."""
    return _state(run)[1]


@register.filter
def state_icon(run: Run) -> str:
    """The icon of a browser's tab."""
    tone = _state(run)[0]
    return static(f"icon-{tone}.svg" if tone else "icon.svg")


def _state(run: Run) -> tuple[str, str]:
    tone, label = _STATES.get(run.status, ("", run.status))
    if run.status == Run.Status.COMPLETED and run.dry_run:
        return "", "Dry run"
    if run.status == Run.Status.COMPLETED and not run.planned:
        return "", "No changes"

    percent = progress(run)
    return tone, label if percent is None else f"{label} {percent} %"


@register.filter
def tag(word: str) -> SafeString:
    return format_html('<span class="tag {}">{}</span>', TONES.get(word, ""), word)


@register.filter
def moment(at: datetime | None) -> SafeString | str:
    """`06:00`, `26 Nov, 06:00` or `26 Nov 2025, 06:00`: as much as today leaves open."""
    if at is None:
        return ""

    now = timezone.now()
    if at.date() == now.date():
        return _time(at, "moment", f"{at:%H:%M}")
    year = "" if at.year == now.year else f" {at.year}"
    return _time(at, "moment", f"{at.day} {at:%b}{year}, {at:%H:%M}")


@register.filter
def clock(at: datetime | None) -> SafeString | str:
    """To the millisecond, for records and requests."""
    return _time(at, "clock", at.strftime("%H:%M:%S.%f")[:-3]) if at else ""


@register.filter
def day(at: datetime | None) -> SafeString | str:
    return _time(at, "day", f"{at.day} {at:%b}") if at else ""


def _time(at: datetime, form: str, text: str) -> SafeString:
    """A moment in UTC, which it says on a touch; `static/zone.js` writes it in the reader's zone, in the same form."""
    utc = at.strftime("%Y-%m-%d %H:%M:%S")
    return format_html('<time datetime="{}" data-as="{}" title="{} UTC">{}</time>', at.isoformat(), form, utc, text)


@register.filter
def soon(at: datetime | None) -> SafeString | str:
    """`in 14 min`; when that is, on a touch."""
    if at is None:
        return ""

    left = at - timezone.now()
    minutes = max(1, round(left.total_seconds() / 60))
    text = f"in {duration(timedelta(minutes=minutes))}" if left > timedelta(0) else "now"
    return _time(at, "soon", text)


@register.filter
def took(length: timedelta | None) -> str:
    return duration(length)


@register.filter
def run_length(run: Run) -> str:
    return duration(run_took(run))


#: How a run came about, by its trigger.
_BEGAN = {"retry": "sends records again, asked by", "confirm": "confirmed by", "schedule": "started by its"}


@register.filter
def began(run: Run) -> str:
    """`started by ada, token airflow`, `confirmed by ada`."""
    return f"{_BEGAN.get(run.trigger, 'started by')} {run.starter}"


@register.filter
def has_records(run: Run) -> str:
    return visible(run)


@register.filter
def needs_count(request: HttpRequest) -> int:
    if not request.user.is_authenticated:
        return 0
    known: int | None = getattr(request, "_needs", None)
    return needs.count(request.user, chosen_organization(request)) if known is None else known


@register.filter
def is_admin(request: HttpRequest) -> bool:
    """Of the organization whose pages are shown."""
    chosen = chosen_organization(request)
    return chosen is not None and administers(request.user, chosen)


@register.filter
def own_organizations(request: HttpRequest) -> list[tuple[Organization, bool]]:
    """A person's organizations, each with whether the lists show it."""
    chosen = chosen_organization(request) if request.user.is_authenticated else None
    return [(one, one == chosen) for one in request._organizations] if chosen else []  # type: ignore[attr-defined]


@register.filter
def alerts_count(request: HttpRequest) -> dict[str, Any] | None:
    """Open alerts that nobody has acknowledged; None without any."""
    if not request.user.is_authenticated:
        return None
    here = chosen_organization(request)
    levels = list(open_alerts(request.user, here, acknowledged_at=None).order_by().values_list("level", flat=True))
    tone = "bad" if AlertLevel.CRITICAL in levels else "warn"
    return {"number": len(levels), "tone": tone} if levels else None


@register.filter
def level(alert: Alert) -> SafeString:
    """An alert's level, or what became of it, in a word and a colour."""
    if alert.resolved_at:
        return format_html('<span class="tag ok">Recovered</span>')
    tone = "bad" if alert.level == AlertLevel.CRITICAL else "warn"
    return format_html('<span class="tag {}">{}</span>', tone, alert.get_level_display())


@register.filter
def level_icon(alert: Alert) -> str:
    """The icon of a browser's tab."""
    tone = "ok" if alert.resolved_at else "bad" if alert.level == AlertLevel.CRITICAL else "warn"
    return static(f"icon-{tone}.svg")


@register.filter
def number(value: float | None) -> str:
    """As short as it is: `5`, `0.5`."""
    return "" if value is None else f"{value:,.10g}"


@register.filter(name="cut")
def whole_or_cut(text: str | None) -> str:
    """A message at the length that a page shows; nothing for None."""
    return cut(text or "")


@register.filter
def destination(sync: Sync) -> str:
    """`HubSpot / Contact`; empty before the first run."""
    return " / ".join(filter(None, (sync.destination_type, sync.destination_object)))


@register.simple_tag
def command(*words: object) -> str:
    """How a person calls a command of the product here: `{% command "records" sync.name %}`."""
    return str(settings.ONDATRA.command(" ".join(map(str, words))))


@register.filter
def pairs(detail: dict[str, Any]) -> str:
    """`rows 3 · status rejected`."""
    return " · ".join(f"{name.replace('_', ' ')} {_plain(value)}" for name, value in detail.items())


def _plain(value: Any) -> str:
    if isinstance(value, dict):
        return f"({pairs(value)})"
    return joined(value) if isinstance(value, list | tuple) else str(value)


@register.filter
def joined(items: Any) -> str:
    return ", ".join(str(i) for i in items or [])
