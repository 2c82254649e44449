"""What becomes of an alert. Each change of state, and the messages that it makes, is one transaction: what was found is
told, whatever dies in between."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.contrib.auth.base_user import AbstractBaseUser
from django.db import transaction
from django.db.models import F, QuerySet, Window
from django.db.models.functions import RowNumber
from django.utils import timezone

from ondatra_web import audit, queue
from ondatra_web.alerts import gathering, quiet
from ondatra_web.alerts.conditions import Found
from ondatra_web.models import (
    Alert,
    AlertChannel,
    AlertDelivery,
    AlertEvent,
    AlertLevel,
    AlertRule,
    MessageGroup,
    Run,
    Sync,
)
from runtime.errors import ConfigError

#: Reasons that an alert names.
MOST_REASONS = 3
QUEUE = "alerts"
What = AlertEvent.What
#: By run: status, pattern and rows of each.
Reasons = dict[int, list[dict[str, Any]]]


def open_of(**where: Any) -> QuerySet[Alert]:
    """Open alerts, for change; by `workspace_id` or a condition of Django's."""
    if "workspace_id" in where:
        where["sync__workspace_id"] = where.pop("workspace_id")
    found = Alert.objects.filter(resolved_at=None, **where).select_related("sync__workspace", "rule")
    return found.prefetch_related("rule__channels").order_by("pk")


@dataclass(frozen=True)
class Look:
    """One look at one kind of condition of a sync: what was found, by which rule, in which run, and why."""

    sync: Sync
    rule: AlertRule
    level: str  # empty: nothing is wrong
    found: Found
    run: Run | None = None
    reasons: Sequence[dict[str, Any]] = ()

    @property
    def details(self) -> dict[str, Any]:
        rule, value = self.rule, self.found.value
        asked = {"unit": rule.unit, "warning": rule.warning, "critical": rule.critical}
        counted = {"value": None if value is None else round(value, 3)}
        return {**self.found.facts, **counted, **asked, "reasons": list(self.reasons)}


def after(look: Look, alert: Alert | None) -> Alert | None:
    """Should be called in a transaction: the alert as it is after this look, None where nothing is wrong. `alert` is
    the open one of the same sync and kind. One whose level stays is changed, not saved: `refresh` saves many."""
    if alert is None:
        return _raise(look) if look.level else None
    if not look.level:
        resolve(alert, "", run=look.run)
        return None

    worse, changed = look.level == AlertLevel.CRITICAL, look.level != alert.level
    alert.rule, alert.level, alert.run = look.rule, look.level, look.run or alert.run
    alert.summary, alert.details = look.found.summary[:500], look.details
    if changed:
        alert.changed_at = timezone.now()
        if worse:
            alert.acknowledged_at = alert.acknowledged_by = None  # what somebody saw was less
        alert.save()
        _tell(alert, look.rule, What.WORSE if worse else What.BETTER)
    return alert


def refresh(alerts: Iterable[Alert]) -> None:
    """Alerts that are what they were show their newest run and numbers."""
    Alert.objects.bulk_update(alerts, ["rule", "run", "summary", "details"], batch_size=200)


def _raise(look: Look) -> Alert:
    now = timezone.now()
    alert = Alert.objects.create(
        sync=look.sync,
        kind=look.rule.kind,
        rule=look.rule,
        level=look.level,
        run=look.run,
        since=look.found.since or now,
        opened_at=now,
        changed_at=now,
        summary=look.found.summary[:500],
        details=look.details,
    )
    _tell(alert, look.rule, What.RAISED)
    return alert


def resolve(alert: Alert, why: str, *, run: Run | None = None) -> None:
    """Should be called in a transaction. `why` is empty where the condition itself is over."""
    alert.resolved_at = alert.changed_at = timezone.now()
    alert.save(update_fields=["resolved_at", "changed_at"])
    _tell(alert, alert.rule, What.RESOLVED, run=run, **({"why": why} if why else {}))


def acknowledge(alert: Alert, *, user: AbstractBaseUser | None = None) -> Alert:
    """A person has seen it; it stays open until the condition is over. Raises ConfigError once it is."""
    with transaction.atomic():
        alert = Alert.objects.select_for_update(of=("self",)).select_related("sync__workspace").get(pk=alert.pk)
        if alert.resolved_at:
            raise ConfigError(
                f"alert {alert.pk} was resolved at {alert.resolved_at:%Y-%m-%d %H:%M} UTC: nothing is left"
            )
        if alert.acknowledged_at is None:
            alert.acknowledged_at, alert.acknowledged_by = timezone.now(), audit.person(user)
            alert.save(update_fields=["acknowledged_at", "acknowledged_by"])
            _event(alert, What.ACKNOWLEDGED, user=audit.person(user))
            told = {"sync": alert.sync.name, "kind": alert.kind}
            audit.write(
                alert.sync.workspace.organization_id,
                user,
                "acknowledge_alert",
                f"alert {alert.pk}",
                told,
                sync=alert.sync,
            )
    return alert


def reasons(runs: Sequence[Run]) -> Reasons:
    """By run the commonest patterns of what was refused; their samples hold values, so they stay where they are."""
    asked = [run.pk for run in runs if run.rejected or run.retrying or run.invalid]
    if not asked:
        return {}
    place = Window(RowNumber(), partition_by=[F("run_id")], order_by=[F("rows").desc(), F("id").asc()])
    groups = MessageGroup.objects.filter(run__in=asked).exclude(status="succeeded").annotate(place=place)
    found: Reasons = {}
    for group in groups.filter(place__lte=MOST_REASONS).order_by("run_id", "place"):
        told = {"status": group.status, "pattern": group.pattern, "rows": group.rows - group.beside}
        found.setdefault(group.run_id, []).append(told)
    return found


# what is told


def _event(alert: Alert, what: AlertEvent.What, *, user: Any = None, run: Run | None = None, **more: Any) -> AlertEvent:
    return AlertEvent.objects.create(
        alert=alert,
        what=what,
        level=alert.level,
        run=run or alert.run,
        user=user,
        summary=alert.summary,
        details={**alert.details, **more},
    )


def _tell(alert: Alert, rule: AlertRule | None, what: AlertEvent.What, *, run: Run | None = None, **more: Any) -> None:
    """The event, and a message for each channel that is to hear of it."""
    event = _event(alert, what, run=run, **more)
    now = event.at
    heard = AlertDelivery.objects.filter(event__alert=alert).exclude(status=AlertDelivery.Status.DROPPED)
    heard.filter(quiet=True, status=AlertDelivery.Status.WAITING, attempts=0).update(
        status=AlertDelivery.Status.DROPPED, ended_at=now
    )  # what was to be told in the morning is old by now; whoever heard of nothing hears of no end
    before = set(heard.values_list("channel_id", flat=True))
    if what == What.RESOLVED:
        wanted = [c for c in _channels(alert, None) if c.pk in before] if rule is None or rule.recovery else []
    else:
        wanted = [c for c in _channels(alert, rule) if _is_for(c, alert.level) or c.pk in before]
    _queue(event, wanted, quiet.until(rule, alert.level, now) if rule else None)


def _channels(alert: Alert, rule: AlertRule | None) -> Sequence[AlertChannel]:
    chosen = list(rule.channels.all()) if rule else []
    every = AlertChannel.objects.filter(organization=alert.sync.workspace.organization_id, enabled=True)
    return [c for c in chosen if c.enabled] if chosen else list(every.order_by("pk"))


def _is_for(channel: AlertChannel, level: str) -> bool:
    return channel.level == AlertLevel.WARNING or level == AlertLevel.CRITICAL


def _queue(event: AlertEvent, channels: Sequence[AlertChannel], later: datetime | None) -> None:
    made = [
        AlertDelivery(
            channel=c,
            event=event,
            created_at=event.at,
            next_at=later or gathering.until(event, c),
            quiet=later is not None,
        )
        for c in channels
    ]
    AlertDelivery.objects.bulk_create(made)
    if later is None:
        for one in made:
            wake(one)


def wake(delivery: AlertDelivery) -> None:
    """Once it is durable, a worker is told of it for when its time comes; one that hears nothing is told again by the
    scheduler."""
    after = max((delivery.next_at - timezone.now()).total_seconds(), 0)
    transaction.on_commit(lambda: queue.send("alert", delivery.pk, queue=QUEUE, after=after))
