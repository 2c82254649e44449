"""Alerts, rules and channels on the pages: what they show, who may change what."""

from __future__ import annotations

import re
from html import unescape
from typing import Any

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from ondatra_web.alerts import channels, judging, rules
from ondatra_web.models import Alert, AlertChannel, AlertDelivery, AlertRule, AuditLog, Sync, Workspace
from ondatra_web.tracking import vault
from tests.web.alerting import URL
from tests.web.filled import a_run, a_sync, closing, person, workspace

pytestmark = pytest.mark.django_db


@pytest.fixture
def owner(client: Client, place: Workspace) -> Client:
    client.force_login(person("alice", place))
    return client


def text(client: Client, address: str) -> str:
    answer = client.get(address)
    assert answer.status_code == 200, answer
    return re.sub(r"(?<=>) | (?=<)", "", " ".join(unescape(answer.content.decode()).split()))


def words(client: Client, address: str) -> str:
    return " ".join(re.sub(r"<[^>]*>", " ", text(client, address)).split())


# pages


def test_an_open_alert_shows_on_its_list_on_home_on_its_sync_and_in_the_rail(owner: Client, alert: Alert) -> None:
    said = "failed: 401: token expired"
    assert said in words(owner, "/alerts/")
    assert "1 alert is open , the worst first: sync.aircraft (failure)" in words(owner, "/")
    assert f"Failure : {said}" in words(owner, f"/syncs/{alert.sync_id}/")
    assert 'title="1 open">1</span>' in text(owner, "/models/")


def test_an_alert_is_found_by_state_kind_level_and_words(owner: Client, alert: Alert) -> None:
    def lists(query: str) -> bool:
        return "sync.aircraft" in words(owner, f"/alerts/?{query}")

    shown = {
        q: lists(q)
        for q in ("state=open", "state=resolved", "state=all", "kind=held", "level=warning", "q=air", "q=zebra")
    }
    owner.post(f"/alerts/{alert.pk}/acknowledge/")
    owner.get("/alerts/")  # says that it was seen
    after = {q: lists(q) for q in ("state=open", "state=acknowledged")}

    assert shown == {
        "state=open": True,
        "state=resolved": False,
        "state=all": True,
        "kind=held": False,
        "level=warning": True,
        "q=air": True,
        "q=zebra": False,
    }
    assert after == {"state=open": False, "state=acknowledged": True}


def test_an_alert_tells_its_history_who_was_told_and_who_has_seen_it(
    owner: Client, sync: Sync, channel: AlertChannel, alert: Alert
) -> None:
    owner.post(f"/alerts/{alert.pk}/acknowledge/", {"next": "https://elsewhere.example/"})
    a_run(sync, staged=True, **closing())
    judging.ended()

    told = words(owner, f"/alerts/{alert.pk}/")
    assert re.search(r"Raised as warning · run \d+ .* On call on its way", told)
    assert "Seen by alice" in told
    assert re.search(r"Over · run \d+ On call on its way", told)
    assert AuditLog.objects.get(action="acknowledge_alert").target == f"alert {alert.pk}"


def test_a_form_that_names_another_site_to_go_back_to_leads_to_the_alert(owner: Client, alert: Alert) -> None:
    for back in ("https://elsewhere.example/", "//elsewhere.example/", "/\\elsewhere.example"):
        assert owner.post(f"/alerts/{alert.pk}/acknowledge/", {"next": back})["Location"] == f"/alerts/{alert.pk}/"


def test_a_list_of_alerts_costs_the_same_for_any_number(owner: Client, sync: Sync, alert: Alert) -> None:
    def cost(address: str) -> int:
        with CaptureQueriesContext(connection) as seen:
            owner.get(address)
        return len(seen)

    pages = ("/alerts/", "/", f"/settings/alert-rules/of/{sync.workspace_id}/")
    before = [cost(p) for p in pages]
    for n in range(30):
        other = a_sync(sync.workspace, f"sync.n{n}")
        rules.save(sync.workspace, rules.Wanted("failure", warning=1, sync=other))
        a_run(other, "failed")
    judging.judge()

    assert [cost(p) for p in pages] == before


def test_the_rules_of_a_workspace_are_there_without_set_up_and_say_that_nobody_is_called(
    owner: Client, place: Workspace
) -> None:
    told = words(owner, f"/settings/alert-rules/of/{place.pk}/")

    assert "Nobody is called yet" in told
    assert "Rejected Records of a run that the destination did not take" in told
    assert "warning from 5 % of the records critical from 50 % of the records every channel" in told


FORM = {"enabled": "on", "warning": "2", "critical": "", "unit": "records", "recovery": "on", "quiet_zone": "UTC"}


def test_a_rule_is_made_changed_and_deleted_on_the_pages(
    owner: Client, place: Workspace, sync: Sync, channel: AlertChannel
) -> None:
    add = f"/settings/alert-rules/of/{place.pk}/add/?kind=rejected"
    assert owner.get(add).status_code == 200
    quiet = {"quiet_from": "22:00", "quiet_until": "07:00", "quiet_zone": "Europe/Stockholm"}
    owner.post(add, {**FORM, **quiet, "sync": "sync.aircraft", "channels": [channel.pk]})
    rule = AlertRule.objects.get(sync=sync)
    told = words(owner, f"/settings/alert-rules/of/{place.pk}/")
    assert "On call · quiet 22:00–07:00 Europe/Stockholm but for critical" in told
    shown = text(owner, f"/settings/alert-rules/{rule.pk}/")
    assert 'value="22:00"' in shown and f'name="channels" value="{channel.pk}" checked' in shown

    owner.post(f"/settings/alert-rules/{rule.pk}/", {**FORM, "warning": "7.5", "enabled": ""})
    rule.refresh_from_db()
    assert (rule.warning, rule.enabled, rule.quiet_from, list(rule.channels.all())) == (7.5, False, None, [])

    owner.post(f"/settings/alert-rules/{rule.pk}/delete/")
    assert not AlertRule.objects.filter(sync=sync).exists()
    assert list(AuditLog.objects.order_by("pk").values_list("action", flat=True))[-3:] == [
        "save_alert_rule",
        "save_alert_rule",
        "delete_alert_rule",
    ]


@pytest.mark.parametrize(
    ("form", "said"),
    [
        ({"sync": "sync.nothing"}, "there is no sync sync.nothing in default"),
        ({}, "name a sync or a tag, one of both"),
        ({"tag": "crm", "warning": "many"}, "warning: Enter a number."),
        ({"tag": "crm", "warning": "0"}, "warning: a number from 0.001 on is expected"),
        ({"tag": "crm", "channels": ["999"]}, "channels: Select a valid choice"),
    ],
)
def test_a_rule_that_cannot_be_saved_says_why_beside_what_was_typed(
    owner: Client, place: Workspace, form: dict[str, Any], said: str
) -> None:
    answer = owner.post(f"/settings/alert-rules/of/{place.pk}/add/?kind=rejected", {**FORM, **form})

    assert (answer.status_code, said in unescape(answer.content.decode())) == (422, True)
    assert 'value="records" selected' in answer.content.decode()


def test_a_channel_shows_its_secret_once_its_address_never_and_its_log(owner: Client, place: Workspace) -> None:
    add = f"/settings/channels/of/{place.organization_id}/add/?kind=webhook"
    shown = owner.post(add, {"name": "Pager", "url": URL, "level": "critical", "enabled": "on"}, follow=True)
    channel = AlertChannel.objects.get()
    secret = vault.unseal(channel.secret)
    assert secret in shown.content.decode()

    address = f"/settings/channels/{channel.pk}/"
    owner.post(f"{address}change/", {"test": "1"})
    again = owner.get(address).content.decode()
    assert (secret in again, "hush" in again, "unchanged: hooks.example" in again) == (False, False, True)
    assert "Test" in words(owner, f"{address}log/")

    new = owner.post(f"{address}change/", {"secret": "1"}, follow=True).content.decode()
    channel.refresh_from_db()
    assert (vault.unseal(channel.secret) in new, secret in new) == (True, False)


def test_a_channel_is_changed_and_deleted_and_keeps_its_address_when_none_is_typed(
    owner: Client, place: Workspace
) -> None:
    made, _ = channels.save(place.organization, channels.Wanted("Slack", "slack", url=URL))
    owner.post(f"/settings/channels/{made.pk}/", {"name": "Team", "url": "", "level": "warning"})
    made.refresh_from_db()
    assert (made.name, made.enabled, vault.unseal(made.url)) == ("Team", False, URL)

    owner.post(f"/settings/channels/{made.pk}/change/", {"delete": "1"})
    assert not AlertChannel.objects.exists()


def test_a_channel_that_cannot_be_saved_says_why_and_shows_no_address(owner: Client, place: Workspace) -> None:
    add = f"/settings/channels/of/{place.organization_id}/add/?kind=slack"
    answer = owner.post(add, {"name": "x", "url": "https://10.0.0.8/hush", "level": "warning"})

    assert (answer.status_code, "hush" in answer.content.decode()) == (422, False)
    assert "10.0.0.8 lies in the install's own network" in unescape(answer.content.decode())


def test_a_message_that_failed_is_sent_again_from_the_log(owner: Client, channel: AlertChannel) -> None:
    sent = channels.test(channel)
    AlertDelivery.objects.update(status="failed")
    owner.post(f"/settings/messages/{sent.pk}/again/")

    sent.refresh_from_db()
    assert sent.status == "waiting"


# who may what


def _addresses(alert: Alert, channel: AlertChannel) -> list[str]:
    place = alert.sync.workspace
    return [
        f"/alerts/{alert.pk}/",
        f"/settings/alert-rules/of/{place.pk}/",
        f"/settings/channels/of/{place.organization_id}/",
        f"/settings/channels/{channel.pk}/",
        f"/settings/channels/{channel.pk}/log/",
    ]


def _writes(alert: Alert, channel: AlertChannel) -> list[str]:
    place, rule = alert.sync.workspace, AlertRule.objects.first()
    assert rule is not None
    return [
        f"/alerts/{alert.pk}/acknowledge/",
        f"/settings/alert-rules/of/{place.pk}/add/?kind=failure",
        f"/settings/alert-rules/{rule.pk}/",
        f"/settings/alert-rules/{rule.pk}/delete/",
        f"/settings/channels/of/{place.organization_id}/add/?kind=email",
        f"/settings/channels/{channel.pk}/",
        f"/settings/channels/{channel.pk}/change/",
        f"/settings/messages/{channels.test(channel).pk}/again/",
    ]


def test_a_stranger_finds_nothing_and_changes_nothing(client: Client, alert: Alert, channel: AlertChannel) -> None:
    client.force_login(person("charlie", workspace("elsewhere")))

    assert {client.get(a).status_code for a in _addresses(alert, channel)} == {404}
    assert {client.post(a).status_code for a in _writes(alert, channel)} == {404}
    assert "sync.aircraft" not in words(client, "/alerts/") + words(client, "/")


def test_a_viewer_sees_and_changes_nothing(client: Client, alert: Alert, channel: AlertChannel) -> None:
    client.force_login(person("vera", alert.sync.workspace, "viewer"))

    assert {client.get(a).status_code for a in _addresses(alert, channel)} == {200}
    assert {client.post(a).status_code for a in _writes(alert, channel)} <= {403, 404}
    assert (Alert.objects.get().acknowledged_at, AuditLog.objects.filter(user__isnull=False).count()) == (None, 0)


def test_an_operator_acknowledges_and_does_not_change_rules(
    client: Client, alert: Alert, channel: AlertChannel
) -> None:
    client.force_login(person("bob", alert.sync.workspace, "operator"))

    codes = [client.post(a).status_code for a in _writes(alert, channel)]
    assert (codes[0], set(codes[1:]) <= {403, 404}) == (302, True)
