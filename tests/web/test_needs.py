"""Home: what needs a person besides failures, each sync once, and the list with its filters in the address."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import timedelta
from html import unescape

import pytest
from django.contrib.auth.models import User
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from ondatra_web.models import Chunk, Sync
from ondatra_web.views import needs
from tests.web.filled import a_run, a_sync, closing, person, workspace

pytestmark = pytest.mark.django_db
Look = Callable[[str], str]


@pytest.fixture
def look(client: Client) -> Look:
    client.force_login(person("alice", workspace()))
    return lambda address="/": " ".join(unescape(client.get(address).content.decode()).split())


def _refuse(sync: Sync, records: int) -> None:
    Chunk.objects.create(
        sync=sync, url="", rows=9, records=9, states=b"", rejected_rows=records, rejected_records=records
    )


def _needs(text: str) -> list[tuple[str, str, str]]:
    """Sync, label and reason of each line."""
    lines = text.split('aria-label="Needs you"')[1].split("</section>")[0].split("<tr>")[2:]
    return [
        (
            re.findall(r"<b>([^<]*)</b>", line)[0],
            re.findall(r'<span class="tag \w+">\s*([A-Za-z ]+?)(?: since)?\s*<', line)[0],
            re.findall(r'<p class="muted small clip">([^<]*)</p>', line)[0],
        )
        for line in lines
    ]


def test_what_is_refused_late_or_piling_up_needs_somebody_and_says_what_to_do(look: Look) -> None:
    refused, growing = a_sync(workspace(), "sync.refused"), a_sync(workspace(), "sync.growing")
    _refuse(refused, 1204)
    for due in (5, 9):
        a_run(growing, "completed_with_rejects", **closing(20, retrying=due))
    a_sync(workspace(), "sync.late", schedule="every 15m", next_run_at=timezone.now() - timedelta(hours=2))
    a_sync(workspace(), "sync.paused", schedule="every 15m", paused_at=timezone.now(), next_run_at=timezone.now())

    text = look("/")

    assert _needs(text) == [
        ("sync.late", "Late", "Its time has come and no run was started."),
        ("sync.growing", "Growing due", "9 rows wait after the last run, 5 after the one before."),
        ("sync.refused", "Refused", "1,204 records are refused and not at the destination."),
    ]
    assert "see that the scheduler runs" in text
    assert "(3) Home" in text and "icon-bad.svg" in text


def test_a_sync_with_several_troubles_stands_once_with_the_worst(look: Look) -> None:
    sync = a_sync(workspace(), "sync.bad", schedule="every 15m", next_run_at=timezone.now() - timedelta(hours=2))
    a_run(sync, "failed", error="401: token expired", **closing(not_tried=5))
    _refuse(sync, 1)

    assert _needs(look("/")) == [("sync.bad", "Failing", "401: token expired")]


def test_due_rows_that_shrink_need_nobody(look: Look) -> None:
    sync = a_sync(workspace())
    for due in (9, 5):
        a_run(sync, "completed_with_rejects", **closing(20, retrying=due))

    assert "Nothing needs you" in look("/")


def test_every_page_counts_what_home_lists_by_one_question(look: Look) -> None:
    place, now = workspace(), timezone.now()
    _refuse(a_sync(place, "sync.refused"), 1)
    a_sync(place, "sync.late", schedule="every 15m", next_run_at=now - timedelta(hours=2))
    both = a_sync(place, "sync.both", schedule="every 15m", next_run_at=now - timedelta(hours=2))
    a_run(both, "failed", error="401", **closing(not_tried=5))
    a_run(a_sync(place, "sync.held"), "held")
    for name, due in (("growing", (5, 9)), ("first", (9,)), ("shrinking", (9, 5)), ("from_none", (0, 5))):
        sync = a_sync(place, f"sync.{name}")
        for rows in due:
            a_run(sync, "completed_with_rejects", **closing(20, retrying=rows))
    gone = a_sync(place, "sync.gone", archived_at=now)
    a_run(gone, "failed", error="401", **closing(not_tried=5))
    a_run(a_sync(workspace("theirs"), "sync.theirs"), "failed", error="401", **closing(not_tried=5))

    listed = [name for name, *_ in _needs(look("/"))]
    alice, organization = User.objects.get(username="alice"), place.organization
    with CaptureQueriesContext(connection) as asked:
        badge = needs.count(alice, organization)

    assert sorted(listed) == ["sync.both", "sync.growing", "sync.held", "sync.late", "sync.refused"]
    assert (badge, len(asked)) == (5, 1)
    assert '<span class="tag bad" title="5 need a person">5</span>' in look("/settings/account/")


def _listed(text: str) -> list[str]:
    return re.findall(r'<a href="/syncs/\d+/"><b>([^<]*)</b></a>', text.split('aria-label="Syncs"')[1])


def test_the_list_is_narrowed_by_a_tag_and_sorted_in_the_address(look: Look) -> None:
    soon = timezone.now() + timedelta(hours=1)
    a = a_sync(workspace(), "sync.a", tags=["crm", "größe"], next_run_at=soon + timedelta(hours=1))
    b = a_sync(workspace(), "sync.b", tags=["crm"], next_run_at=soon)
    a_sync(workspace(), "sync.c", tags=["crm2"])
    a_run(a), a_run(b)
    Chunk.objects.create(sync=a, url="", rows=9, records=9, states=b"", due_rows=3)

    assert _listed(look("/syncs/?tag=crm")) == ["sync.a", "sync.b"]
    assert _listed(look("/syncs/?tag=größe")) == ["sync.a"]
    assert _listed(look("/syncs/?sort=last")) == ["sync.b", "sync.a", "sync.c"]
    assert _listed(look("/syncs/?sort=next")) == ["sync.b", "sync.a", "sync.c"]
    assert _listed(look("/syncs/?sort=due")) == ["sync.a", "sync.b", "sync.c"]
