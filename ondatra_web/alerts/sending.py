"""Messages on their way: a worker takes one, sends it, and notes what came of it.

What is taken is given back by the clock: a worker that dies between sending and noting has it sent once more, never not
at all. Of one alert and channel the messages go in their order.
"""

from __future__ import annotations

import logging
import smtplib
import time
from datetime import timedelta
from typing import Any

from django.conf import settings
from django.db import transaction
from django.db.models import F
from django.utils import timezone

from ondatra_web.alerts import gathering, mail, states, webhooks, words
from ondatra_web.alerts.webhooks import Answered
from ondatra_web.models import AlertChannel, AlertDelivery
from runtime.custody.redact import Redactor
from runtime.errors import OndatraError

log = logging.getLogger("ondatra.alerts")
#: Seconds between attempts; behind the last one the message has failed, about nine hours after it was due.
WAITS = (10, 60, 300, 1_800, 7_200, 21_600)
#: Longer than any attempt takes: then the worker that had it is dead.
CLAIMED = timedelta(minutes=3)
#: How long the log is kept.
KEPT = timedelta(days=90)
#: Attempts that the log of one message has.
MOST_TRIES = 30
Status = AlertDelivery.Status


def work(delivery_id: int) -> None:
    """Sends it unless its time has not come, it is gone already, or another worker has it."""
    delivery = _claimed(delivery_id)
    if delivery is None:
        return
    began, at = time.monotonic(), timezone.now()
    answered = _sent(delivery)
    took = {"at": at.isoformat(), "seconds": round(time.monotonic() - began, 3)}
    _note(delivery, answered, {**took, "status": answered.status, "said": answered.said})


def _claimed(delivery_id: int) -> AlertDelivery | None:
    now = timezone.now()
    with transaction.atomic():
        row = (
            AlertDelivery.objects.select_for_update(of=("self",))
            .select_related("channel__organization", "event__alert__sync__workspace")
            .filter(pk=delivery_id, status=Status.WAITING, next_at__lte=now, lead=None)
            .first()
        )
        if row is None or _waits_for_another(row):
            return None
        if not row.channel.enabled and row.event is not None:
            gathering.together(row).update(status=Status.DROPPED, ended_at=now)
            return None
        AlertDelivery.objects.filter(pk=row.pk).update(next_at=now + CLAIMED, attempts=F("attempts") + 1)
        row.attempts += 1
        if row.attempts == 1:
            gathering.join(row, now)
    return row


def _waits_for_another(row: AlertDelivery) -> bool:
    """Whether an earlier message of the same alert is still to go the same way: a recovery does not overtake."""
    if row.event is None:
        return False
    earlier = AlertDelivery.objects.filter(channel=row.channel_id, event__alert=row.event.alert_id, pk__lt=row.pk)
    return earlier.filter(status=Status.WAITING).exists()


def _sent(delivery: AlertDelivery) -> Answered:
    message = words.of(delivery)
    try:
        if delivery.channel.kind == AlertChannel.Kind.EMAIL:
            return Answered(True, mail.send(delivery, message))
        return webhooks.send(delivery, message)
    except OndatraError as error:  # an address or a secret that cannot be used as it is kept
        return Answered(False, str(error))
    except (smtplib.SMTPException, OSError) as error:
        return Answered(False, _of_mail(error), again=True)
    except Exception as error:  # nobody foresaw it: it is in the worker's log, and tried again
        log.exception("message %s", delivery.pk)
        return Answered(False, type(error).__name__, again=True)


def _of_mail(error: Exception) -> str:
    hidden = Redactor()
    hidden.add(settings.EMAIL_HOST_PASSWORD)
    text = f"{settings.EMAIL_HOST}:{settings.EMAIL_PORT}: {type(error).__name__}: {error}"
    return hidden.text(text)[: webhooks.MOST_OF_AN_ANSWER]


def _note(delivery: AlertDelivery, answered: Answered, told: dict[str, Any]) -> None:
    now, left = timezone.now(), WAITS[delivery.attempts - 1 : delivery.attempts]
    again = not answered.done and answered.again and left
    fields: dict[str, Any] = {"tries": [*delivery.tries, told][-MOST_TRIES:], "quiet": False}
    if again:
        fields["next_at"] = now + timedelta(seconds=max(left[0], answered.wait))
    else:
        fields |= {"status": Status.SENT if answered.done else Status.FAILED, "ended_at": now}
    with transaction.atomic():
        mine = AlertDelivery.objects.filter(pk=delivery.pk, status=Status.WAITING, attempts=delivery.attempts)
        if mine.update(**fields) and not again:
            gathering.together(delivery).update(status=fields["status"], ended_at=now, quiet=False)
            _wake_next(delivery)


def _wake_next(delivery: AlertDelivery) -> None:
    """What waited for this message; the scheduler sees to what waited for those that went with it."""
    if delivery.event is None:
        return
    later = AlertDelivery.objects.filter(channel=delivery.channel_id, event__alert=delivery.event.alert_id)
    following = later.filter(status=Status.WAITING, next_at__lte=timezone.now(), lead=None).order_by("pk").first()
    if following is not None:
        states.wake(following)


# by the clock, and without workers


def waiting(most: int = 500) -> list[int]:
    """Messages whose time has come, oldest first."""
    due = AlertDelivery.objects.filter(status=Status.WAITING, next_at__lte=timezone.now(), lead=None)
    return list(due.order_by("next_at", "pk").values_list("pk", flat=True)[:most])


def send_waiting() -> int:
    """All of them, in this process, whatever might still join them; how many were tried."""
    gathered = AlertDelivery.objects.filter(status=Status.WAITING, attempts=0, quiet=False, lead=None)
    gathered.filter(next_at__gt=timezone.now()).update(next_at=timezone.now())
    tried = 0
    while ids := waiting():
        before = AlertDelivery.objects.filter(pk__in=ids, status=Status.WAITING, next_at__lte=timezone.now()).count()
        for pk in ids:
            work(pk)
        left = set(waiting()) & set(ids)
        tried += before - len(left)
        if len(left) == len(ids):
            return tried
    return tried


def remove_old() -> None:
    """The log behind its time; alerts and their events stay."""
    AlertDelivery.objects.exclude(status=Status.WAITING).filter(ended_at__lt=timezone.now() - KEPT).delete()
