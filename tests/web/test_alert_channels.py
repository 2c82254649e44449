"""Where messages of alerts go: what a channel may be, and which addresses are reached."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from receivers import Receiver

from ondatra_web.alerts import addresses, channels, sending, webhooks
from ondatra_web.alerts.webhooks import PUBLIC
from ondatra_web.models import AlertChannel, AlertDelivery, AuditLog, Sync
from runtime.errors import ConfigError
from runtime.push.http.client import TransportError
from tests.web.alerting import hook, refused, tries

pytestmark = pytest.mark.django_db


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
