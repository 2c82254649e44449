"""Alerts of many syncs with one cause arrive as one message, at a real mail server and a real receiver."""

from __future__ import annotations

import dataclasses
from datetime import timedelta
from typing import Any

import pytest
from django.conf import settings as django_settings
from django.core.management import call_command
from django.utils import timezone
from receivers import Mailbox, Receiver

from ondatra_web.alerts import channels, gathering, judging, sending
from ondatra_web.models import Alert, AlertChannel, AlertDelivery, Sync, Workspace
from tests.web.alerting import SITE, hook, mail
from tests.web.filled import a_run, a_sync, closing, workspace

pytestmark = pytest.mark.django_db
DOWN = "503: the destination is down"


def _fail(syncs: list[Sync], error: str = DOWN) -> None:
    for sync in syncs:
        a_run(sync, "failed", error=error, staged=True)
    judging.ended()


def _recover(syncs: list[Sync]) -> None:
    for sync in syncs:
        a_run(sync, staged=True, **closing())
    judging.ended()


def _later(time: timedelta) -> None:
    """What waits for so long is due, and what was sent was sent so much earlier."""
    for row in AlertDelivery.objects.all():
        ended = row.ended_at and row.ended_at - time
        AlertDelivery.objects.filter(pk=row.pk).update(next_at=row.next_at - time, ended_at=ended)


def _work() -> None:
    """What the scheduler wakes, a worker does."""
    for pk in sending.waiting():
        sending.work(pk)


def _of(place: Workspace, count: int, **fields: Any) -> list[Sync]:
    return [a_sync(place, f"sync.s{n:02}", **fields) for n in range(count)]


def test_fifty_syncs_whose_destination_is_down_make_one_mail_that_lists_them_and_one_of_their_recovery(
    place: Workspace, mailbox: Mailbox
) -> None:
    syncs = _of(place, 50)
    mail(syncs[0])
    _fail(syncs)
    _work()
    assert mailbox.mails == []

    _later(gathering.wait())
    _work()
    _recover(syncs)
    _later(gathering.wait())
    _work()

    first, last = mailbox.mails
    alerts = dict(Alert.objects.values_list("sync__name", "pk"))
    assert first["Subject"] == "[warning] 50 syncs to Assets: Failure"
    assert last["Subject"] == "[recovered] 50 syncs to Assets: Failure"
    assert first.get_body(("plain",)).get_content().splitlines() == [
        "50 syncs to Assets: Failure",
        "",
        "State      50 warning",
        "Workspace  default",
        f"Since      {Alert.objects.earliest('since').since:%Y-%m-%d %H:%M} UTC",
        "",
        "Syncs",
        *(
            line
            for sync in syncs
            for line in (f"  {sync.name} failed: {DOWN}", f"    {SITE}/alerts/{alerts[sync.name]}/")
        ),
        "",
        f"Alerts: {SITE}/alerts/",
        f"Home: {SITE}/",
    ]
    assert set(AlertDelivery.objects.values_list("status", flat=True)) == {"sent"}


def test_what_has_another_cause_arrives_on_its_own(place: Workspace, mailbox: Mailbox) -> None:
    crm, books = a_sync(place, "sync.crm"), a_sync(place, "sync.books", destination_type="Ledger")
    elsewhere = a_sync(workspace("other"), "sync.crm")
    mail(crm)
    mail(elsewhere)
    _fail([crm, elsewhere])
    _fail([books], "401: the token is too old")
    a_run(books, staged=True, **closing(invalid=60))
    judging.ended()

    _later(gathering.wait())
    _work()

    assert sorted(m["Subject"] for m in mailbox.mails) == [
        "[critical] sync.books: 60 of 100 rows are invalid (60 %)",
        "[recovered] sync.books failed: 401: the token is too old",
        "[warning] sync.books failed: 401: the token is too old",
        "[warning] sync.crm failed: 503: the destination is down",
        "[warning] sync.crm failed: 503: the destination is down",
    ]


def test_those_that_say_the_same_go_together_whatever_their_destination(place: Workspace, mailbox: Mailbox) -> None:
    syncs = [a_sync(place, "sync.a", destination_type="A"), a_sync(place, "sync.b", destination_type="B")]
    mail(syncs[0])
    _fail(syncs, "no space left on the disk of the lake")

    _later(gathering.wait())
    _work()

    assert [m["Subject"] for m in mailbox.mails] == ["[warning] 2 syncs: Failure"]


def test_what_follows_a_message_within_minutes_is_gathered_for_the_next_one(place: Workspace, mailbox: Mailbox) -> None:
    first, *others = _of(place, 4)
    mail(first)
    _fail([first])
    _later(gathering.wait())
    _work()

    for sync in others:
        _fail([sync])
        _later(gathering.wait())
        _work()
    assert len(mailbox.mails) == 1
    _later(gathering.wait() * 2)
    _work()

    assert [m["Subject"] for m in mailbox.mails] == [
        "[warning] sync.s00 failed: 503: the destination is down",
        "[warning] 3 syncs to Assets: Failure",
    ]


def test_a_mail_of_many_that_is_refused_is_tried_again_as_it_was(place: Workspace, mailbox: Mailbox) -> None:
    syncs = _of(place, 3)
    mail(syncs[0])
    mailbox.refuses = ["451 not now"]
    _fail(syncs[:2])
    _later(gathering.wait())
    _work()
    _fail(syncs[2:])

    _later(timedelta(seconds=10))
    _work()

    assert [m["Subject"] for m in mailbox.mails] == ["[warning] 2 syncs to Assets: Failure"]
    assert sorted(AlertDelivery.objects.values_list("status", flat=True)) == ["sent", "sent", "waiting"]


def test_what_goes_together_is_dropped_together_where_the_channel_is_switched_off(
    place: Workspace, mailbox: Mailbox
) -> None:
    syncs = _of(place, 2)
    channel = mail(syncs[0])
    mailbox.refuses = ["451 not now"]
    _fail(syncs)
    sending.send_waiting()
    AlertChannel.objects.filter(pk=channel.pk).update(enabled=False)

    _later(timedelta(seconds=10))
    _work()

    assert (mailbox.mails, set(AlertDelivery.objects.values_list("status", flat=True))) == ([], {"dropped"})


def test_a_message_of_many_is_sent_again_whole_and_one_of_them_alone(place: Workspace, mailbox: Mailbox) -> None:
    syncs = _of(place, 3)
    mail(syncs[0])
    _fail(syncs)
    sending.send_waiting()

    lead, member = AlertDelivery.objects.get(lead=None), AlertDelivery.objects.exclude(lead=None).first()
    assert member is not None
    channels.send_again(lead)
    sending.send_waiting()
    channels.send_again(member)
    sending.send_waiting()

    told = "[warning] {} syncs to Assets: Failure"
    alone = f"[warning] {member.event.alert.sync.name} failed: {DOWN}"
    assert [m["Subject"] for m in mailbox.mails] == [told.format(3), told.format(3), alone]


def test_programs_are_told_of_each_at_once_and_a_chat_of_all_together(place: Workspace, there: Receiver) -> None:
    syncs = _of(place, 3)
    hook(syncs[0], there)
    hook(syncs[0], there, "slack")
    _fail(syncs)
    _work()
    assert [body["sync"] for body in there.bodies] == ["sync.s00", "sync.s01", "sync.s02"]

    _later(gathering.wait())
    _work()

    [slack] = there.bodies[3:]
    assert slack["text"] == "[warning] 3 syncs to Assets: Failure"
    assert slack["attachments"][0]["text"].splitlines()[0] == (
        f"• <{SITE}/alerts/{Alert.objects.get(sync=syncs[0]).pk}/|sync.s00 failed: {DOWN}>"
    )


def test_without_workers_nothing_waits_for_more(place: Workspace, mailbox: Mailbox) -> None:
    syncs = _of(place, 2)
    mail(syncs[0])
    for sync in syncs:
        a_run(sync, "failed", error=DOWN, staged=True)

    call_command("alerts", "--send")

    assert [m["Subject"] for m in mailbox.mails] == ["[warning] 2 syncs to Assets: Failure"]


@pytest.mark.parametrize(
    ("seconds", "woken"), [(0, {"alerts": 1, "alerts.DQ": 0}), (60, {"alerts": 0, "alerts.DQ": 1})]
)
def test_a_worker_is_woken_when_the_time_of_a_message_comes(
    place: Workspace,
    settings: Any,
    stub_broker: Any,
    django_capture_on_commit_callbacks: Any,
    seconds: int,
    woken: dict[str, int],
) -> None:
    settings.ONDATRA = dataclasses.replace(django_settings.ONDATRA, alert_gather=seconds)
    sync = a_sync(place)
    mail(sync)
    stub_broker.declare_queue("alerts")

    with django_capture_on_commit_callbacks(execute=True):
        _fail([sync])

    assert {name: stub_broker.queues[name].qsize() for name in woken} == woken
    wait = AlertDelivery.objects.get().next_at - timezone.now()
    assert timedelta(seconds=seconds - 5) < wait <= timedelta(seconds=seconds)
