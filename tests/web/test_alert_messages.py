"""Messages of alerts, at a real mail server and a real receiver of webhooks: what stands in them, and that they
arrive."""

from __future__ import annotations

import base64
import dataclasses
import hashlib
import hmac
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from django.core.management import call_command
from django.utils import timezone
from receivers import Mailbox, Receiver

from ondatra_web import jobs, queue
from ondatra_web.alerts import channels, sending, webhooks
from ondatra_web.clock import calling
from ondatra_web.models import Alert, AlertChannel, AlertDelivery, Sync
from tests.web.alerting import SITE, hook, mail, mended, refused, tries
from tests.web.filled import a_run

pytestmark = pytest.mark.django_db


def later(seconds: float) -> None:
    """What waits for so long is due now."""
    for row in AlertDelivery.objects.filter(status="waiting"):
        AlertDelivery.objects.filter(pk=row.pk).update(next_at=row.next_at - timedelta(seconds=seconds))


# e-mail


def test_a_mail_says_what_since_when_how_many_why_and_where_and_the_recovery_follows_it(
    sync: Sync, mailbox: Mailbox
) -> None:
    channel = mail(sync)
    refused(sync)
    mended(sync)
    sending.send_waiting()

    alert = Alert.objects.get()
    first, last = mailbox.mails
    text = first.get_body(("plain",)).get_content()
    assert text.splitlines() == [
        "sync.aircraft: 150 of 300 records were not taken (50 %)",
        "",
        "State  critical",
        "Sync   sync.aircraft in default, to Assets / Aircraft",
        f"Since  {alert.since:%Y-%m-%d %H:%M} UTC",
        "Rows   150 of 300",
        "Rule   Rejected: warning from 5, critical from 50 % of the records",
        "",
        "Commonest reasons",
        '  148 × 422: field "year" is required',
        "  2 × 409: no <maker> ‹n›",
        "",
        f"Run {alert.run_id}: {SITE}/runs/{alert.run_id}/",
        f"Sync: {SITE}/syncs/{sync.pk}/",
        f"Alert: {SITE}/alerts/{alert.pk}/",
    ]
    assert (first["Subject"], first["To"], first["Auto-Submitted"]) == (
        "[critical] sync.aircraft: 150 of 300 records were not taken (50 %)",
        "ada@example.com, bo@example.com",
        "auto-generated",
    )
    assert last["Subject"] == "[recovered] sync.aircraft: 150 of 300 records were not taken (50 %)"
    assert first["References"] == last["References"] == f"<alert-{alert.pk}.channel-{channel.pk}@ondatra.example>"
    assert first["Message-ID"] != last["Message-ID"]
    assert set(mailbox.logins) == {("ondatra", "right")}


def test_a_mail_shows_the_same_as_html_and_nothing_in_it_is_markup_of_a_destination(
    sync: Sync, mailbox: Mailbox
) -> None:
    mail(sync)
    refused(sync)
    sending.send_waiting()

    html = mailbox.mails[0].get_body(("html",)).get_content()
    assert "<li>2 × 409: no &lt;maker&gt; ‹n›</li>" in html
    assert f'<a href="{SITE}/alerts/{Alert.objects.get().pk}/">Alert</a>' in html


def test_a_mail_server_that_refuses_is_asked_again_and_the_log_says_what_it_said(
    sync: Sync, mailbox: Mailbox, settings: Any
) -> None:
    mail(sync)
    mailbox.refuses = ["451 not now"]
    refused(sync)
    sending.send_waiting()
    assert (len(mailbox.mails), AlertDelivery.objects.get().status) == (0, "waiting")

    later(10)
    sending.send_waiting()

    place = f"127.0.0.1:{settings.EMAIL_PORT}"
    assert tries() == [
        (
            "sent",
            [
                (None, f"{place}: SMTPDataError: (451, b'not now')"),
                (None, "given to the mail server for 2 recipients"),
            ],
        )
    ]


def test_a_password_of_the_mail_server_that_is_wrong_is_in_no_log(
    sync: Sync, mailbox: Mailbox, settings: Any, caplog: pytest.LogCaptureFixture
) -> None:
    settings.EMAIL_HOST_PASSWORD = "hush-hush"
    mail(sync)
    refused(sync)
    sending.send_waiting()

    said = tries()[0][1][0][1]
    assert "SMTPAuthenticationError" in said and "hush-hush" not in said + caplog.text


def test_without_a_mail_server_a_message_is_written_where_the_worker_writes(
    sync: Sync, settings: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    settings.EMAIL_BACKEND = "django.core.mail.backends.console.EmailBackend"
    mail(sync)
    refused(sync)
    sending.send_waiting()

    assert "150 of 300 records were not taken" in capsys.readouterr().out


# webhooks


def test_a_webhook_is_signed_so_that_the_words_of_the_documentation_verify_it(sync: Sync, there: Receiver) -> None:
    channel, secret = hook(sync, there)
    refused(sync)
    sending.send_waiting()

    [(path, headers, body)] = there.requests
    key = base64.b64decode(secret.removeprefix("whsec_"))
    told = f"{headers['webhook-id']}.{headers['webhook-timestamp']}.".encode() + body
    wanted = "v1," + base64.b64encode(hmac.new(key, told, hashlib.sha256).digest()).decode()
    assert hmac.compare_digest(headers["webhook-signature"], wanted)
    assert abs(int(headers["webhook-timestamp"]) - timezone.now().timestamp()) < 60
    assert (path, headers["content-type"]) == ("/services/T0/hush", "application/json")


def test_the_documentation_s_own_lines_verify_a_message_and_refuse_one_that_was_changed(
    sync: Sync, there: Receiver
) -> None:
    text = (Path(__file__).parents[2] / "docs" / "alerts.md").read_text(encoding="utf-8")
    lines: dict[str, Any] = {}
    exec(text.split("```python\n")[1].split("```")[0], lines)  # noqa: S102  the example of our own docs
    _, secret = hook(sync, there)
    refused(sync)
    sending.send_waiting()

    [(_, headers, body)] = there.requests
    assert lines["is_from_ondatra"](secret, headers, body)
    assert not lines["is_from_ondatra"](secret, headers, body.replace(b"150", b"151"))
    assert not lines["is_from_ondatra"](secret, {**headers, "webhook-timestamp": "1700000000"}, body)


def test_a_webhook_tells_a_program_everything_and_no_value_of_a_row(sync: Sync, there: Receiver) -> None:
    hook(sync, there)
    refused(sync)
    mended(sync)
    sending.send_waiting()

    alert, [raised, over] = Alert.objects.get(), there.bodies
    assert raised == {
        "event": "sync.alert.raised",
        "alert_instance_id": alert.pk,
        "alert_type": "rejected",
        "level": "critical",
        "message": "sync.aircraft: 150 of 300 records were not taken (50 %)",
        "workspace_id": sync.workspace_id,
        "workspace": "default",
        "sync_id": sync.pk,
        "sync": "sync.aircraft",
        "sync_run_id": alert.run_id,
        "since": alert.since.isoformat(),
        "at": alert.alertevent_set.get(what="raised").at.isoformat(),
        "details": alert.details,
        "followup_url": f"{SITE}/alerts/{alert.pk}/",
    }
    assert (over["event"], over["alert_instance_id"]) == ("sync.alert.resolved", alert.pk)
    assert b"Ada Lovelace" not in b"".join(body for _, _, body in there.requests)


def test_slack_gets_a_text_with_a_colour_and_links_and_no_mention_of_anybody(sync: Sync, there: Receiver) -> None:
    hook(sync, there, "slack")
    refused(sync)
    sending.send_waiting()

    alert, [body] = Alert.objects.get(), there.bodies
    [attached] = body["attachments"]
    assert body["text"] == "[critical] sync.aircraft: 150 of 300 records were not taken (50 %)"
    assert attached["color"] == webhooks.COLOURS["critical"]
    assert attached["text"].splitlines() == [
        '• 148 × 422: field "year" is required',
        "• 2 × 409: no &lt;maker&gt; ‹n›",
        f"<{SITE}/runs/{alert.run_id}/|Run {alert.run_id}> · <{SITE}/syncs/{sync.pk}/|Sync> "
        f"· <{SITE}/alerts/{alert.pk}/|Alert>",
    ]
    assert {"title": "Rows", "value": "150 of 300", "short": True} in attached["fields"]
    assert "webhook-signature" not in there.requests[0][1]


def test_what_a_receiver_cannot_take_now_comes_again_under_the_same_id_and_waits_as_it_says(
    sync: Sync, there: Receiver
) -> None:
    hook(sync, there)
    there.answers = [(503, {}, "down"), (429, {"Retry-After": "700"}, "slow down")]
    refused(sync)
    sending.send_waiting()
    first = AlertDelivery.objects.get()
    later(10)
    sending.send_waiting()
    second = AlertDelivery.objects.get()
    later(700)
    sending.send_waiting()

    assert 5 < (first.next_at - timezone.now()).total_seconds() <= 10
    assert 690 < (second.next_at - timezone.now()).total_seconds() <= 700
    assert tries() == [("sent", [(503, "down"), (429, "slow down"), (200, "ok")])]
    assert len({headers["webhook-id"] for _, headers, _ in there.requests}) == 1


def test_what_is_refused_for_good_has_failed_at_once_and_can_be_sent_again_by_hand(sync: Sync, there: Receiver) -> None:
    hook(sync, there)
    there.answers = [(404, {}, "no such channel")]
    refused(sync)
    sending.send_waiting()
    assert tries() == [("failed", [(404, "no such channel")])]

    channels.send_again(AlertDelivery.objects.get())
    sending.send_waiting()

    assert tries() == [("sent", [(404, "no such channel"), (200, "ok")])]


def test_a_receiver_that_stays_down_is_given_up_after_seven_attempts(sync: Sync, there: Receiver) -> None:
    hook(sync, there)
    there.answers = [(500, {}, "")] * 9
    refused(sync)
    for _ in range(9):
        sending.send_waiting()
        later(30_000)

    assert [(status, len(told)) for status, told in tries()] == [("failed", 7)]


def test_a_recovery_does_not_overtake_the_alert_that_waits_to_be_sent(sync: Sync, there: Receiver) -> None:
    hook(sync, there)
    there.answers = [(503, {}, "down")]
    refused(sync)
    sending.send_waiting()
    mended(sync)
    sending.send_waiting()
    assert len(there.requests) == 1

    later(10)
    sending.send_waiting()

    assert [b["event"] for b in there.bodies] == ["sync.alert.raised", "sync.alert.raised", "sync.alert.resolved"]


def test_a_worker_that_died_between_sending_and_noting_has_it_sent_once_more(
    sync: Sync, there: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    hook(sync, there)
    refused(sync)
    with monkeypatch.context() as dying, pytest.raises(KeyboardInterrupt):
        dying.setattr(sending, "_note", lambda *_: (_ for _ in ()).throw(KeyboardInterrupt))
        sending.send_waiting()
    sending.send_waiting()
    assert len(there.requests) == 1  # somebody might still have it

    later(sending.CLAIMED.total_seconds())
    sending.send_waiting()

    assert (len(there.requests), AlertDelivery.objects.get().status) == (2, "sent")


@pytest.mark.server
@pytest.mark.django_db(transaction=True, serialized_rollback=True)
def test_a_message_whose_wake_up_was_lost_is_woken_by_the_scheduler_and_sent_by_the_worker(
    sync: Sync, there: Receiver, stub_broker: Any
) -> None:
    hook(sync, there)
    refused(sync)
    stub_broker.flush_all()
    calling.messages_sent.forget()
    calling.round()

    waiting = stub_broker.queues["alerts"]
    assert (len(there.requests), waiting.qsize()) == (0, 1)
    jobs.alert(*queue.dramatiq.Message.decode(waiting.get_nowait()).args)
    assert len(there.requests) == 1


def test_the_log_is_kept_for_ninety_days(sync: Sync, there: Receiver) -> None:
    channel, _ = hook(sync, there)
    for days in (89, 91):
        ended = timezone.now() - timedelta(days=days)
        AlertDelivery.objects.create(channel=channel, status="sent", ended_at=ended)
    calling.looked.forget()
    calling.round()

    assert AlertDelivery.objects.count() == 1


def test_a_channel_that_is_switched_off_is_sent_nothing_that_waits(sync: Sync, there: Receiver) -> None:
    channel, _ = hook(sync, there)
    refused(sync)
    AlertChannel.objects.filter(pk=channel.pk).update(enabled=False)
    sending.send_waiting()

    assert (there.requests, AlertDelivery.objects.get().status) == ([], "dropped")


def test_a_test_says_that_it_is_one(sync: Sync, there: Receiver, mailbox: Mailbox, settings: Any) -> None:
    settings.ONDATRA = dataclasses.replace(settings.ONDATRA, webhook_endpoints=(there.url,))
    for channel in (mail(sync), hook(sync, there)[0]):
        channels.test(channel)
    sending.send_waiting()

    assert mailbox.mails[0]["Subject"] == "[test] on call"
    assert (there.bodies[0]["event"], there.bodies[0]["message"]) == (
        "test",
        f"This is a test of webhook. Alerts of {sync.workspace.organization} arrive here.",
    )


def test_a_command_sends_what_waits_where_no_worker_is(
    sync: Sync, mailbox: Mailbox, capsys: pytest.CaptureFixture[str]
) -> None:
    mail(sync)
    a_run(sync, "failed", error="401: no")
    call_command("alerts", "--send")

    assert capsys.readouterr().out.splitlines()[-1] == "1 message was tried"
    assert mailbox.mails[0]["Subject"] == "[warning] sync.aircraft failed: 401: no"
