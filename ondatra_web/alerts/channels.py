"""Channels of an organization: named, changed, tried out. URLs and secrets are sealed before they are written."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from django.contrib.auth.base_user import AbstractBaseUser
from django.core.exceptions import ValidationError
from django.core.validators import validate_email
from django.db import IntegrityError, transaction
from django.utils import timezone

from ondatra_web import audit
from ondatra_web.alerts import addresses, states, webhooks
from ondatra_web.models import AlertChannel, AlertDelivery, AlertLevel, Organization
from ondatra_web.tracking import vault
from runtime.errors import ConfigError

Kind = AlertChannel.Kind
MOST_RECIPIENTS = 20
#: Tests of one channel that may wait at a time.
MOST_TESTS = 3


@dataclass(frozen=True)
class Wanted:
    """What a person typed in. An empty URL keeps the one that is known."""

    name: str
    kind: str
    recipients: Sequence[str] = ()
    url: str = ""
    level: str = AlertLevel.WARNING
    enabled: bool = True

    def __repr__(self) -> str:
        return f"Wanted({self.name})"


def save(
    organization: Organization,
    wanted: Wanted,
    *,
    channel: AlertChannel | None = None,
    user: AbstractBaseUser | None = None,
) -> tuple[AlertChannel, str]:
    """The channel, and for a new webhook its secret, which is shown once. Raises ConfigError that names the field."""
    check(wanted, channel)
    made = channel or AlertChannel(organization=organization, kind=wanted.kind)
    made.name, made.level, made.enabled = wanted.name.strip(), wanted.level, wanted.enabled
    made.recipients = [r.strip() for r in wanted.recipients] if made.kind == Kind.EMAIL else []
    if wanted.url:
        made.url, made.host = vault.seal(wanted.url), addresses.check(wanted.url).netloc[:300]
    secret = webhooks.new_secret() if made.kind == Kind.WEBHOOK and not made.secret else ""
    if secret:
        made.secret = vault.seal(secret)
    try:
        with transaction.atomic():
            made.save()
            told = {"kind": made.kind, "host": made.host, "level": made.level, "enabled": made.enabled}
            audit.write(organization.pk, user, "save_alert_channel", made.name, told)
    except IntegrityError:
        raise ConfigError(f"name: there is a channel {made.name} already") from None
    return made, secret


def check(wanted: Wanted, channel: AlertChannel | None) -> None:
    """Raises ConfigError."""
    if wanted.kind not in Kind.values:
        raise ConfigError(f"kind: there is no channel {wanted.kind!r}; there are: {', '.join(Kind.values)}")
    if channel is not None and channel.kind != wanted.kind:
        raise ConfigError(f"kind: a channel stays what it is ({channel.kind}): make another one")
    if not wanted.name.strip() or len(wanted.name) > 100 or not wanted.name.isprintable():
        raise ConfigError("name: 1 to 100 characters are expected")
    if wanted.level not in AlertLevel.values:
        raise ConfigError(f"level: there is no {wanted.level!r}; there are: {', '.join(AlertLevel.values)}")
    if wanted.kind == Kind.EMAIL:
        _check_recipients(wanted.recipients)
    elif wanted.url:
        addresses.check(wanted.url)
    elif channel is None:
        raise ConfigError("url: the address is missing: https://HOST/… is expected")


def _check_recipients(recipients: Sequence[str]) -> None:
    if not 1 <= len(recipients) <= MOST_RECIPIENTS:
        raise ConfigError(f"recipients: 1 to {MOST_RECIPIENTS} addresses are expected; found {len(recipients)}")
    for one in recipients:
        try:
            validate_email(one.strip())
        except ValidationError:
            raise ConfigError(f"recipients: {one.strip()[:100]!r} is no e-mail address") from None


def new_secret(channel: AlertChannel, *, user: AbstractBaseUser | None = None) -> str:
    """Another secret, shown once; the one before signs nothing more. Raises ConfigError for what is not signed."""
    if channel.kind != Kind.WEBHOOK:
        raise ConfigError(f"{channel.name} is {channel.kind}: only what a webhook is sent is signed")
    secret = webhooks.new_secret()
    with transaction.atomic():
        AlertChannel.objects.filter(pk=channel.pk).update(secret=vault.seal(secret))
        audit.write(channel.organization_id, user, "new_channel_secret", channel.name, {})
    return secret


def delete(channel: AlertChannel, *, user: AbstractBaseUser | None = None) -> None:
    """With its log. Rules that named no other channel send to all that are left."""
    with transaction.atomic():
        audit.write(channel.organization_id, user, "delete_alert_channel", channel.name, {})
        channel.delete()


def test(channel: AlertChannel, *, user: AbstractBaseUser | None = None) -> AlertDelivery:
    """A message that says it is a test, on the way of all others. Raises ConfigError while several wait."""
    with transaction.atomic():
        waiting = AlertDelivery.objects.filter(channel=channel, event=None, status=AlertDelivery.Status.WAITING)
        if waiting.count() >= MOST_TESTS:
            raise ConfigError(f"{MOST_TESTS} tests of {channel.name} wait: look at its log, and at the workers")
        made = AlertDelivery.objects.create(channel=channel)
        audit.write(channel.organization_id, user, "test_alert_channel", channel.name, {})
        states.wake(made)
    return made


def send_again(delivery: AlertDelivery, *, user: AbstractBaseUser | None = None) -> AlertDelivery:
    """Another round of attempts for what failed or was sent. Raises ConfigError for what still waits."""
    with transaction.atomic():
        ended = AlertDelivery.objects.filter(pk=delivery.pk).exclude(status=AlertDelivery.Status.WAITING)
        again = {"status": AlertDelivery.Status.WAITING, "next_at": timezone.now(), "attempts": 0, "ended_at": None}
        if not ended.update(lead=None, **again):
            raise ConfigError(f"message {delivery.pk} waits to be sent: nothing is to be done again")
        audit.write(
            delivery.channel.organization_id, user, "send_alert_again", delivery.channel.name, {"message": delivery.pk}
        )
        states.wake(delivery)
    delivery.refresh_from_db()
    return delivery
