"""What the tests of alerts share: a sync and its alert, runs that end, channels, and where messages arrive."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest
from django.conf import settings as django_settings
from receivers import Mailbox, Receiver, mail_server, receiver

from ondatra_web.alerts import channels, judging, rules
from ondatra_web.models import (
    Alert,
    AlertChannel,
    AlertDelivery,
    AlertEvent,
    AlertRule,
    MessageGroup,
    Run,
    Sync,
    Workspace,
)
from tests.web.filled import a_run, a_sync, closing, workspace

SITE = "https://ondatra.example"
#: The address of a webhook that opens the door there.
URL = "https://hooks.example/services/T0/hush"


@pytest.fixture
def place(db: None) -> Workspace:
    return workspace()


@pytest.fixture
def sync(place: Workspace) -> Sync:
    return a_sync(place)


@pytest.fixture
def alert(sync: Sync) -> Alert:
    a_run(sync, "failed", error="401: token expired")
    judging.ended()
    return Alert.objects.get()


@pytest.fixture
def channel(place: Workspace) -> AlertChannel:
    return channels.save(place.organization, channels.Wanted("On call", "email", recipients=["a@b.example"]))[0]


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


def ends(sync: Sync, status: str = "completed", **fields: Any) -> Run:
    """A run that has ended, as its end tells of it."""
    run = a_run(sync, status, **{"staged": True, "ago": timedelta(minutes=5), **closing(), **fields})
    judging.ended()
    return run


def story(sync: Sync, kind: str) -> list[str]:
    """The changes of all alerts of a kind, oldest first."""
    events = AlertEvent.objects.filter(alert__sync=sync, alert__kind=kind).order_by("pk")
    return [f"{e.what} {e.level}: {e.summary}" for e in events]


def rule_of(sync: Sync, kind: str) -> AlertRule:
    return rules.of_workspace(sync.workspace).get(kind=kind, sync=None, tag="")


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
