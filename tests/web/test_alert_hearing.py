"""Who hears of an alert, when, and what a person may say to it."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone

from ondatra_web.alerts import gathering, rules, states
from ondatra_web.models import (
    Alert,
    AlertChannel,
    AlertDelivery,
    Sync,
)
from runtime.errors import ConfigError
from tests.web.alerting import ends, rule_of, story
from tests.web.filled import closing, person

pytestmark = pytest.mark.django_db


def _heard(channel: AlertChannel) -> list[tuple[str, str]]:
    found = AlertDelivery.objects.filter(channel=channel).order_by("pk").select_related("event")
    return [(d.event.what if d.event else "test", d.status) for d in found]


def test_every_channel_hears_of_each_change_once(sync: Sync, channel: AlertChannel) -> None:
    ends(sync, "failed")
    ends(sync, "failed")
    ends(sync)

    assert _heard(channel) == [("raised", "waiting"), ("resolved", "waiting")]


def test_a_channel_from_critical_on_hears_of_that_and_then_of_the_end(sync: Sync, channel: AlertChannel) -> None:
    AlertChannel.objects.filter(pk=channel.pk).update(level="critical")
    ends(sync, **closing(invalid=10))
    ends(sync)
    assert _heard(channel) == []

    for _ in range(3):
        ends(sync, "failed")
    ends(sync)

    assert _heard(channel) == [("worse", "waiting"), ("resolved", "waiting")]


def test_a_rule_may_name_its_channels_and_keep_quiet_about_the_end(sync: Sync, channel: AlertChannel) -> None:
    other = AlertChannel.objects.create(organization=channel.organization, name="other", kind="email")
    rules.save(
        sync.workspace,
        rules.Wanted("failure", warning=1, recovery=False, channels=[other]),
        rule=rule_of(sync, "failure"),
    )
    ends(sync, "failed")
    ends(sync)

    assert (_heard(channel), _heard(other)) == ([], [("raised", "waiting")])


def _quiet(sync: Sync, **fields: Any) -> None:
    """Quiet hours around this moment, in a zone far from UTC."""
    from zoneinfo import ZoneInfo

    now = timezone.now().astimezone(ZoneInfo("Pacific/Auckland"))
    told = {"quiet_from": (now - timedelta(hours=1)).time(), "quiet_until": (now + timedelta(hours=2)).time()}
    wanted = rules.Wanted("failure", warning=1, critical=3, **{**told, "quiet_zone": "Pacific/Auckland", **fields})
    rules.save(sync.workspace, wanted, rule=rule_of(sync, "failure"))


def test_in_quiet_hours_a_warning_waits_for_their_end_and_a_critical_one_goes_at_once(
    sync: Sync, channel: AlertChannel
) -> None:
    _quiet(sync)
    ends(sync, "failed")
    waiting = AlertDelivery.objects.get()
    assert timedelta(minutes=119) < waiting.next_at - timezone.now() <= timedelta(hours=2)

    ends(sync, "failed")
    ends(sync, "failed")

    assert _heard(channel) == [("raised", "dropped"), ("worse", "waiting")]
    assert AlertDelivery.objects.get(event__what="worse").next_at <= timezone.now() + gathering.wait()


def test_critical_ones_wait_as_well_where_a_rule_says_so(sync: Sync, channel: AlertChannel) -> None:
    _quiet(sync, quiet_critical=True)
    for _ in range(3):
        ends(sync, "failed")

    assert AlertDelivery.objects.get(event__what="worse").next_at > timezone.now() + timedelta(hours=1)


def test_what_begins_and_ends_in_quiet_hours_is_told_to_nobody(sync: Sync, channel: AlertChannel) -> None:
    _quiet(sync)
    ends(sync, "failed")
    ends(sync)

    assert _heard(channel) == [("raised", "dropped")]
    assert len(story(sync, "failure")) == 2


# people


def test_an_alert_that_somebody_acknowledged_stays_open_until_it_is_worse(sync: Sync) -> None:
    ends(sync, "failed")
    alice, alert = person("alice", sync.workspace), Alert.objects.get()
    states.acknowledge(alert, user=alice)
    ends(sync, "failed")
    alert.refresh_from_db()
    assert (alert.state, alert.acknowledged_by) == ("acknowledged", alice)

    ends(sync, "failed")
    alert.refresh_from_db()

    assert (alert.state, [e.what for e in alert.alertevent_set.order_by("pk")]) == (
        "open",
        ["raised", "acknowledged", "worse"],
    )


def test_an_alert_that_is_over_cannot_be_acknowledged(sync: Sync) -> None:
    ends(sync, "failed")
    ends(sync)

    with pytest.raises(ConfigError, match="nothing is left"):
        states.acknowledge(Alert.objects.get())
