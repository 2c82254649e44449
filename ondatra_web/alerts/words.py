"""What a message says: what happened, since when, how many rows, the commonest reasons, and where to look.

Everything in it is a count, a name, a moment or a pattern; payloads and messages of destinations stay on the pages.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.conf import settings
from django.utils import timezone

from ondatra_web.alerts import gathering
from ondatra_web.alerts.kinds import SORTS
from ondatra_web.models import AlertDelivery, AlertEvent, AlertKind

_HEADS = {
    AlertEvent.What.RAISED: "",
    AlertEvent.What.WORSE: "now ",
    AlertEvent.What.BETTER: "down to ",
}
#: Syncs that one message lists, and reasons that they have in common.
MOST_SYNCS, MOST_REASONS = 100, 3
#: What programs are told happened.
NAMES = {
    AlertEvent.What.RAISED: "sync.alert.raised",
    AlertEvent.What.WORSE: "sync.alert.changed",
    AlertEvent.What.BETTER: "sync.alert.changed",
    AlertEvent.What.RESOLVED: "sync.alert.resolved",
}


@dataclass(frozen=True)
class Message:
    """One message, before a channel gives it its form. `facts` are label and text."""

    subject: str
    headline: str
    tone: str  # warning, critical, resolved, test
    facts: tuple[tuple[str, str], ...]
    reasons: tuple[str, ...]
    links: tuple[tuple[str, str], ...]
    data: dict[str, Any]
    syncs: tuple[tuple[str, str], ...] = ()  # what is told of each, where there are several, and its address


def of(delivery: AlertDelivery) -> Message:
    if delivery.event is None:
        return _test(delivery)
    events = gathering.events_of(delivery)
    return _of_many(events) if len(events) > 1 else _of_event(delivery.event)


def _of_many(events: Sequence[AlertEvent]) -> Message:
    """One message of alerts with the same cause: the worst level, the first moment, the sum of each reason, and what
    is told of each sync alone."""
    first, site = events[0], settings.ONDATRA.site_url
    over = first.what == AlertEvent.What.RESOLVED
    worst = min((event.level for event in events), key=("critical", "warning").index)
    state = "recovered" if over else f"{_HEADS[AlertEvent.What(first.what)]}{worst}"
    to = {event.alert.sync.destination_type for event in events}
    where = f" to {to.pop()}" if len(to) == 1 and to != {""} else ""
    count = len({event.alert.sync_id for event in events})
    headline = f"{count} syncs{where}: {SORTS[AlertKind(first.alert.kind)].label}"
    levels = Counter(event.level for event in events)
    told = ", ".join(f"{levels[level]} {level}" for level in ("critical", "warning") if levels[level])
    facts = [
        ("State", "recovered" if over else told),
        ("Workspace", first.alert.sync.workspace.slug),
        ("Since", moment(min(event.alert.since for event in events))),
    ]
    listed = [(_headline(event), f"{site}/alerts/{event.alert_id}/") for event in events[:MOST_SYNCS]]
    more = [(f"and {len(events) - MOST_SYNCS} more", f"{site}/alerts/")] if len(events) > MOST_SYNCS else []
    return Message(
        subject=shortened(f"[{state}] {headline}"),
        headline=f"Over: {headline}" if over else headline,
        tone="resolved" if over else worst,
        facts=tuple(facts),
        reasons=() if over else _common(events),
        links=(("Alerts", f"{site}/alerts/"), ("Home", f"{site}/")),
        data={},
        syncs=(*listed, *more),
    )


def _common(events: Sequence[AlertEvent]) -> tuple[str, ...]:
    rows: Counter[str] = Counter()
    for event in events:
        for reason in event.details.get("reasons", ()):
            rows[reason["pattern"]] += reason["rows"]
    return tuple(f"{n:,} × {pattern}" for pattern, n in rows.most_common(MOST_REASONS))


def _headline(event: AlertEvent) -> str:
    name = event.alert.sync.name
    return f"{name} {event.summary}" if _is_verb(event.alert.kind) else f"{name}: {event.summary}"


def _of_event(event: AlertEvent) -> Message:
    over = event.what == AlertEvent.What.RESOLVED
    state = "recovered" if over else f"{_HEADS[AlertEvent.What(event.what)]}{event.level}"
    headline = _headline(event)
    why = event.details.get("why")
    return Message(
        subject=shortened(f"[{state}] {headline}"),
        headline=f"Over: {headline}" if over else headline,
        tone="resolved" if over else event.level,
        facts=_facts(event, state if not why else f"{state}: {why}"),
        reasons=tuple(f"{r['rows']:,} × {r['pattern']}" for r in event.details.get("reasons", ()) if not over),
        links=_links(event),
        data=_data(event, headline),
    )


def _is_verb(kind: str) -> bool:
    return kind in (AlertKind.FAILURE, AlertKind.DURATION, AlertKind.LATE)


def _facts(event: AlertEvent, state: str) -> tuple[tuple[str, str], ...]:
    alert, told = event.alert, event.details
    where = f"{alert.sync.name} in {alert.sync.workspace.slug}"
    if sent_to := " / ".join(filter(None, (alert.sync.destination_type, alert.sync.destination_object))):
        where += f", to {sent_to}"
    rows = f"{told['rows']:,}" if told.get("rows") is not None else ""
    rows += f" of {told['of']:,}" if rows and told.get("of") is not None else ""
    found = [
        ("State", state),
        ("Sync", where),
        ("Since", moment(alert.since)),
        ("Until", moment(event.at) if event.what == AlertEvent.What.RESOLVED else ""),
        ("Rows", rows),
        ("Rule", threshold(alert.kind, told)),
    ]
    return tuple((label, text) for label, text in found if text)


def shortened(text: str, most: int = 120) -> str:
    return text if len(text) <= most else text[: most - 1] + "…"


def threshold(kind: str, told: dict[str, Any]) -> str:
    """`Rejected: warning from 5, critical from 50 % of the records`."""
    sort = SORTS[AlertKind(kind)]
    levels = [f"{name} from {told[name]:g}" for name in ("warning", "critical") if told.get(name) is not None]
    return f"{sort.label}: {', '.join(levels)} {sort.units.get(told.get('unit', ''), '')}".strip()


def moment(at: datetime) -> str:
    return f"{at:%Y-%m-%d %H:%M} UTC"


def _links(event: AlertEvent) -> tuple[tuple[str, str], ...]:
    site, alert = settings.ONDATRA.site_url, event.alert
    run = [(f"Run {event.run_id}", f"{site}/runs/{event.run_id}/")] if event.run_id else []
    return (*run, ("Sync", f"{site}/syncs/{alert.sync_id}/"), ("Alert", f"{site}/alerts/{alert.pk}/"))


def _data(event: AlertEvent, headline: str) -> dict[str, Any]:
    """For programs; the names are Census's where it has them."""
    alert = event.alert
    return {
        "event": NAMES[AlertEvent.What(event.what)],
        "alert_instance_id": alert.pk,
        "alert_type": alert.kind,
        "level": event.level,
        "message": headline,
        "workspace_id": alert.sync.workspace_id,
        "workspace": alert.sync.workspace.slug,
        "sync_id": alert.sync_id,
        "sync": alert.sync.name,
        "sync_run_id": event.run_id,
        "since": alert.since.isoformat(),
        "at": event.at.isoformat(),
        "details": event.details,
        "followup_url": f"{settings.ONDATRA.site_url}/alerts/{alert.pk}/",
    }


def _test(delivery: AlertDelivery) -> Message:
    site, name = settings.ONDATRA.site_url, delivery.channel.name
    text = f"This is a test of {name}. Alerts of {delivery.channel.organization} arrive here."
    return Message(
        subject=f"[test] {name}",
        headline=text,
        tone="test",
        facts=(("Sent", moment(timezone.now())),),
        reasons=(),
        links=(("Alerts", f"{site}/alerts/"),),
        data={"event": "test", "message": text, "at": timezone.now().isoformat(), "followup_url": f"{site}/alerts/"},
    )
