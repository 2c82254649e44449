"""Messages of alerts, at a real mail server and a real receiver of webhooks: what stands in them, and that they
arrive."""

from __future__ import annotations

import base64
import dataclasses
import hashlib
import hmac
import json
import subprocess
import sys
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from django.conf import settings as django_settings
from django.core.management import call_command
from django.utils import timezone
from receivers import Mailbox, Receiver, mail_server, receiver

from ondatra_web import jobs, queue
from ondatra_web.alerts import addresses, channels, judging, sending, webhooks
from ondatra_web.alerts.webhooks import PUBLIC
from ondatra_web.clock import calling
from ondatra_web.models import Alert, AlertChannel, AlertDelivery, AuditLog, MessageGroup, Sync
from runtime.errors import ConfigError
from runtime.push.http.client import TransportError
from tests.web.filled import a_run, a_sync, closing, workspace

pytestmark = pytest.mark.django_db
SITE = "https://ondatra.example"


@pytest.fixture
def sync() -> Sync:
    return a_sync(workspace())


@pytest.fixture
def mailbox(settings: Any) -> Iterator[Mailbox]:
    settings.ONDATRA = dataclasses.replace(django_settings.ONDATRA, site_url=SITE)
    with mail_server(settings) as box:
        yield box


@pytest.fixture
def there(settings: Any) -> Iterator[Receiver]:
    """A receiver that the operator of the install allows."""
    with receiver() as one:
        settings.ONDATRA = dataclasses.replace(django_settings.ONDATRA, site_url=SITE, webhook_endpoints=(one.url,))
        yield one


def mail(sync: Sync, **fields: Any) -> AlertChannel:
    told = {"recipients": ["ada@example.com", "bo@example.com"], **fields}
    return channels.save(sync.workspace.organization, channels.Wanted("on call", "email", **told))[0]


def hook(sync: Sync, there: Receiver, kind: str = "webhook") -> tuple[AlertChannel, str]:
    wanted = channels.Wanted(kind, kind, url=f"{there.url}/services/T0/hush")
    return channels.save(sync.workspace.organization, wanted)


def refused(sync: Sync) -> None:
    """A run of which half was refused, for two reasons."""
    run = a_run(sync, "completed_with_rejects", staged=True, **closing(300, rejected=150))
    for rows, pattern in ((148, '422: field "year" is required'), (2, "409: no <maker> ‹n›")):
        MessageGroup.objects.create(
            run=run, status="rejected", pattern=pattern, sample_message="Ada Lovelace", rows=rows, first_run=run
        )
    judging.ended()


def mended(sync: Sync) -> None:
    a_run(sync, staged=True, **closing(300))
    judging.ended()


def tries() -> list[tuple[str, list[tuple[int | None, str]]]]:
    rows = AlertDelivery.objects.order_by("pk")
    return [(d.status, [(t["status"], t["said"]) for t in d.tries]) for d in rows]


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


# what must not be seen, and where nothing may go


def test_addresses_and_secrets_lie_sealed_and_are_said_nowhere(
    sync: Sync, there: Receiver, caplog: pytest.LogCaptureFixture
) -> None:
    channel, secret = hook(sync, there)
    there.answers = [(400, {}, f"POST /services/T0/hush was wrong; {secret}")]
    refused(sync)
    sending.send_waiting()

    kept = json.dumps(
        [*AlertChannel.objects.values(), *AlertDelivery.objects.values(), *AuditLog.objects.values()], default=str
    )
    assert ("hush" in kept + caplog.text, secret in kept + caplog.text) == (False, False)
    assert tries() == [("failed", [(400, "POST *** was wrong; ***")])]
    assert (channel.host, channel.url[:5]) == (there.url.removeprefix("http://"), "gAAAA")


def test_a_new_secret_signs_from_then_on(sync: Sync, there: Receiver) -> None:
    channel, before = hook(sync, there)
    after = channels.new_secret(channel)
    channels.test(channel)
    sending.send_waiting()

    [(_, headers, body)] = there.requests
    told = headers["webhook-id"], int(headers["webhook-timestamp"]), body
    assert headers["webhook-signature"] == webhooks.signature(after, *told) != webhooks.signature(before, *told)


@pytest.mark.parametrize(
    ("url", "said"),
    [
        ("http://169.254.169.254/latest/meta-data", "is not encrypted"),
        ("https://169.254.169.254/latest/meta-data", "the install's own network"),
        ("https://[fd00:ec2::254]/", "the install's own network"),
        ("https://[::ffff:169.254.169.254]/", "the install's own network"),
        ("https://[64:ff9b::a9fe:a9fe]/", "the install's own network"),
        ("https://127.1/", "the install's own network"),
        ("https://2130706433/", "the install's own network"),
        ("https://0x7f.1/", "the install's own network"),
        ("https://localhost:5432/", "the install's own network"),
        ("https://metadata.google.internal/", "the install's own network"),
        ("https://10.0.0.8/", "the install's own network"),
        ("https://100.100.100.200/", "the install's own network"),
        ("https://user:hush@hooks.example/", "without a user and password"),
        ("ftp://hooks.example/", "https://HOST/… is expected"),
        ("https://hooks.example/a b", "is no URL"),
        ("https://hooks.example:x/", "is no URL"),
        ("https://", "https://HOST/… is expected"),
    ],
)
def test_an_address_in_the_install_s_own_network_is_refused_and_named_without_its_path(
    sync: Sync, url: str, said: str
) -> None:
    with pytest.raises(ConfigError, match=said) as error:
        channels.save(sync.workspace.organization, channels.Wanted("x", "slack", url=url))

    assert "meta-data" not in str(error.value) and "hush" not in str(error.value)
    assert not AlertChannel.objects.exists()


def test_a_name_that_leads_into_the_install_s_network_is_not_connected_to(there: Receiver) -> None:
    url = there.url.replace("127.0.0.1", "localhost")
    with pytest.raises(TransportError):
        PUBLIC.send("POST", url, {}, b"{}", 5)

    assert (there.requests, addresses.is_public("8.8.8.8"), addresses.is_public("127.0.0.1")) == ([], True, False)


def test_a_redirect_is_not_followed(sync: Sync, there: Receiver) -> None:
    hook(sync, there)
    there.answers = [(302, {"Location": f"{there.url}/elsewhere"}, "")]
    refused(sync)
    sending.send_waiting()

    assert (len(there.requests), AlertDelivery.objects.get().status) == (1, "failed")


@pytest.mark.parametrize(
    ("wanted", "said"),
    [
        ({"kind": "pager"}, "there is no channel 'pager'"),
        ({"name": " "}, "name: 1 to 100 characters"),
        ({"recipients": []}, "1 to 20 addresses are expected; found 0"),
        ({"recipients": ["ada"]}, "'ada' is no e-mail address"),
        ({"recipients": ["a@b.example\nBcc: c@d.example"]}, "is no e-mail address"),
        ({"level": "loud"}, "there is no 'loud'"),
        ({"kind": "slack"}, "the address is missing"),
    ],
)
def test_a_channel_that_cannot_be_says_why(sync: Sync, wanted: dict[str, Any], said: str) -> None:
    told = {"name": "x", "kind": "email", "recipients": ["a@b.example"], **wanted}
    with pytest.raises(ConfigError, match=said):
        channels.save(sync.workspace.organization, channels.Wanted(**told))


def test_the_command_of_the_worker_is_known_to_the_processes_of_an_install() -> None:
    root = Path(__file__).parents[2]
    texts = [(root / p).read_text() for p in ("ondatra_web/serving/Procfile", "compose.yaml")]
    assert [f"-Q {queue_name} " in text for text in texts for queue_name in ("alerts",)] == [True, True]


def test_a_mail_server_is_told_by_one_setting(tmp_path: Path) -> None:
    code = (
        "from django.conf import settings as s; print(s.EMAIL_HOST, s.EMAIL_PORT, s.EMAIL_HOST_USER, s.EMAIL_USE_TLS)"
    )
    env = {"EMAIL_URL": "smtp+tls://ada:p%40ss@mail.example", "ONDATRA_DATA_DIR": str(tmp_path)}
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=Path(__file__).parents[2],
        env={**env, "DJANGO_SETTINGS_MODULE": "ondatra_web.settings", "PATH": ""},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.split() == ["mail.example", "587", "ada", "True"]
