"""Alerts of many syncs with one cause go to people as one message: the first waits a little for the others.

Programs (signed webhooks) are sent each on its own.
"""

from __future__ import annotations

from datetime import datetime, timedelta

from django.conf import settings
from django.db.models import Exists, OuterRef, Q, QuerySet

from ondatra_web.models import AlertChannel, AlertDelivery, AlertEvent, AlertKind

#: What the destination may bring about for all syncs that send to it. Of other kinds all of a workspace go together:
#: a scheduler that stands still, or a source that came empty.
OF_DESTINATION = (AlertKind.FAILURE, AlertKind.REJECTED, AlertKind.DURATION, AlertKind.DUE)
#: After a message, what has the same cause is gathered for so many times as long.
FOLLOWING = 5
Status = AlertDelivery.Status


def wait() -> timedelta:
    return timedelta(seconds=settings.ONDATRA.alert_gather)


def until(event: AlertEvent, channel: AlertChannel) -> datetime:
    """When a message is to go: once others had time to join it."""
    if not wait() or not _gathers(channel):
        return event.at
    following = wait() * FOLLOWING
    told = _alike(event, channel).filter(status=Status.SENT, lead=None, ended_at__gt=event.at - following)
    last = told.order_by("-ended_at").values_list("ended_at", flat=True).first()
    return max(event.at + wait(), last + following) if last else event.at + wait()


def join(lead: AlertDelivery, now: datetime) -> None:
    """Should be called in a transaction by whoever claimed the message: what waits and has the same cause goes with
    it."""
    if lead.event is None or not _gathers(lead.channel):
        return
    earlier = AlertDelivery.objects.filter(
        channel=lead.channel_id, event__alert=OuterRef("event__alert"), pk__lt=OuterRef("pk"), status=Status.WAITING
    )
    fresh = Q(status=Status.WAITING, attempts=0, lead=None, next_at__lte=now + wait() * FOLLOWING)
    others = _alike(lead.event, lead.channel).filter(fresh, ~Exists(earlier)).exclude(pk=lead.pk)
    # one that another worker claims meanwhile goes on its own
    found = list(others.select_for_update(skip_locked=True, of=("self",)).values_list("pk", flat=True))
    AlertDelivery.objects.filter(fresh, pk__in=found).update(lead=lead)


def together(lead: AlertDelivery) -> QuerySet[AlertDelivery]:
    """The message and those that go with it, as far as they still wait."""
    return AlertDelivery.objects.filter(Q(pk=lead.pk) | Q(lead=lead), status=Status.WAITING)


def events_of(lead: AlertDelivery) -> list[AlertEvent]:
    """What one message tells of, by the names of the syncs."""
    told = Q(alertdelivery=lead.pk) | Q(alertdelivery__lead=lead.pk)
    found = AlertEvent.objects.filter(told).select_related("alert__sync__workspace")
    return list(found.order_by("alert__sync__name", "pk"))


def _gathers(channel: AlertChannel) -> bool:
    return channel.kind != AlertChannel.Kind.WEBHOOK


def _alike(event: AlertEvent, channel: AlertChannel) -> QuerySet[AlertDelivery]:
    """Messages to a channel of alerts with the same cause: the same happened in the same workspace, with the same
    destination or the same words."""
    alert, sync = event.alert, event.alert.sync
    rows = AlertDelivery.objects.filter(
        channel=channel,
        event__what=event.what,
        event__alert__kind=alert.kind,
        event__alert__sync__workspace=sync.workspace_id,
    )
    if alert.kind not in OF_DESTINATION:
        return rows
    same = Q(event__summary=event.summary)
    if sync.destination_type:
        same |= Q(event__alert__sync__destination_type=sync.destination_type)
    return rows.filter(same)
