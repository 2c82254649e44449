"""Alerts, rules, channels and schedules in the API."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from django.test import Client

from ondatra_web import tokens
from ondatra_web.alerts import judging
from ondatra_web.models import Alert, AlertChannel, AlertDelivery, AlertRule, Sync, Workspace
from ondatra_web.tracking import vault
from tests.web.alerting import URL
from tests.web.filled import a_run, closing, person, workspace

pytestmark = pytest.mark.django_db
Ask = Callable[..., Any]


@pytest.fixture
def ask(client: Client, place: Workspace) -> Ask:
    """A call with a token of all scopes: its status and its data, or its message."""
    user = person("ada", place)
    token = tokens.make(place.organization, user, "t", ["read", "records", "operate", "admin"])[1]

    def call(method: str, path: str, body: Any = None, token: str = token) -> tuple[int, Any]:
        said = client.generic(
            method,
            f"/api/v1/{path}",
            b"" if body is None else json.dumps(body),
            content_type="application/json",
            headers={"authorization": f"Bearer {token}"},
        )
        told = said.json() if said.content else {}
        return said.status_code, told.get("data", told.get("message"))

    return call


def test_alerts_are_listed_filtered_and_acknowledged(ask: Ask, alert: Alert) -> None:
    code, [listed] = ask("GET", "alerts?state=open&level=warning&alert_type=failure")
    assert (code, listed["message"], listed["state"], listed["sync_run_id"]) == (
        200,
        "failed: 401: token expired",
        "open",
        alert.run_id,
    )
    assert ask("GET", "alerts?state=resolved") == (200, [])

    assert ask("POST", f"alerts/{alert.pk}/acknowledge")[1]["acknowledged_by"] == "ada"
    assert [e["what"] for e in ask("GET", f"alerts/{alert.pk}")[1]["events"]] == ["raised", "acknowledged"]


def test_an_alert_that_is_over_is_a_conflict_to_acknowledge(ask: Ask, sync: Sync, alert: Alert) -> None:
    a_run(sync, staged=True, **closing())
    judging.ended()

    code, said = ask("POST", f"alerts/{alert.pk}/acknowledge")
    assert (code, "nothing is left" in said) == (409, True)


def test_rules_are_made_changed_and_deleted(ask: Ask, sync: Sync, channel: AlertChannel) -> None:
    assert len(ask("GET", "alert_rules")[1]) == 8
    wanted = {
        "alert_type": "rejected",
        "sync_id": sync.pk,
        "warning": 2,
        "unit": "records",
        "channel_ids": [channel.pk],
    }
    code, made = ask("POST", "alert_rules", {**wanted, "quiet_from": "22:00", "quiet_until": "07:00"})
    assert (code, made["channel_ids"], made["quiet_from"]) == (201, [channel.pk], "22:00:00")

    changed = ask("PATCH", f"alert_rules/{made['id']}", {"critical": 9, "quiet_from": None, "quiet_until": None})[1]
    assert (changed["warning"], changed["critical"], changed["quiet_from"]) == (2, 9, None)
    assert ask("PATCH", f"alert_rules/{made['id']}", {"warning": 10})[0] == 400
    assert ask("DELETE", f"alert_rules/{made['id']}") == (204, None)
    assert ask("GET", f"alert_rules/{made['id']}")[0] == 404


def test_channels_are_made_tested_and_their_log_read(ask: Ask, place: Workspace) -> None:
    code, made = ask("POST", "alert_channels", {"name": "Pager", "kind": "webhook", "url": URL})
    channel = AlertChannel.objects.get()
    assert (code, made["secret"], made["host"], "url" in made) == (
        201,
        vault.unseal(channel.secret),
        "hooks.example",
        False,
    )

    assert ask("PATCH", f"alert_channels/{channel.pk}", {"level": "critical"})[1]["level"] == "critical"
    assert ask("POST", f"alert_channels/{channel.pk}/secret")[1]["secret"] != made["secret"]
    code, test = ask("POST", f"alert_channels/{channel.pk}/test")
    assert (code, test["status"], test["alert_id"]) == (202, "waiting", None)
    tried = {"at": "2026-11-29T06:00:00+00:00", "seconds": 0.1, "status": 500, "said": "down"}
    AlertDelivery.objects.update(status="failed", tries=[tried])
    [logged] = ask("GET", f"alert_channels/{channel.pk}/deliveries?status=failed")[1]
    assert logged["tries"] == [tried]

    assert ask("POST", f"alert_deliveries/{test['id']}/retry")[0] == 202
    assert ask("POST", f"alert_deliveries/{test['id']}/retry")[0] == 409
    assert ask("DELETE", f"alert_channels/{channel.pk}") == (204, None)
    assert ask("GET", "alert_channels") == (200, [])


def test_schedules_are_read_paused_and_go_on(ask: Ask, sync: Sync) -> None:
    Sync.objects.update(schedule="every 1h")
    [listed] = ask("GET", "schedules")[1]
    assert (listed["sync_id"], listed["schedule"], listed["paused"]) == (sync.pk, "every 1h", False)

    assert ask("PATCH", f"schedules/{sync.pk}", {"paused": True})[1]["paused"] is True
    assert (ask("GET", "schedules?paused=false")[1], len(ask("GET", "schedules?paused=true")[1])) == ([], 1)
    assert ask("PATCH", f"schedules/{sync.pk}", {"paused": False})[1]["paused"] is False


def test_a_token_without_the_scope_or_of_another_organization_changes_and_sees_nothing(
    ask: Ask, place: Workspace, alert: Alert, channel: AlertChannel
) -> None:
    member = person("mo", place, "operator")
    reads = tokens.make(place.organization, member, "t", ["read"])[1]
    elsewhere = workspace("elsewhere")
    strange = tokens.make(elsewhere.organization, person("eve", elsewhere), "t", list(tokens.SCOPES))[1]
    rule = AlertRule.objects.filter(workspace=place).first()
    assert rule is not None
    writes = [
        ("POST", f"alerts/{alert.pk}/acknowledge", None),
        ("PATCH", f"alert_rules/{rule.pk}", {"warning": 9}),
        ("DELETE", f"alert_rules/{rule.pk}", None),
        ("PATCH", f"alert_channels/{channel.pk}", {"enabled": False}),
        ("DELETE", f"alert_channels/{channel.pk}", None),
        ("POST", f"alert_channels/{channel.pk}/test", None),
        ("PATCH", f"schedules/{alert.sync_id}", {"paused": True}),
    ]

    assert {ask(*w, token=reads)[0] for w in writes} == {403}
    assert {ask(*w, token=strange)[0] for w in writes} == {404}
    assert [len(ask("GET", what, token=strange)[1]) for what in ("alerts", "alert_channels", "schedules")] == [0, 0, 0]
    assert {r["workspace_id"] for r in ask("GET", "alert_rules", token=strange)[1]} == {elsewhere.pk}
