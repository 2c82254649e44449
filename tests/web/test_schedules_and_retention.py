"""What starts by itself, and what is kept for how long: pages of the settings."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import timedelta

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from ondatra_web.models import Bucket, Run, Sync, Worker, Workspace
from tests.web.filled import a_run, a_sync, closing, person, workspace

pytestmark = pytest.mark.django_db
Look = Callable[[str], str]
NAMES = re.compile(r'<td class="lead">\s*<a href="/syncs/\d+/">(.*?)</a>')


@pytest.fixture
def place() -> Workspace:
    return workspace()


@pytest.fixture
def look(client: Client, place: Workspace) -> Look:
    client.force_login(person("alice", place))
    return lambda path: client.get(f"/settings/{path}").content.decode()


def test_every_page_of_the_settings_is_in_one_list(client: Client, look: Look) -> None:
    aside = look("account/").split('aria-label="Settings"')[1].split("</nav>")[0]
    listed = dict(re.findall(r'<a href="(.*?)".*?>(.*?)</a>', aside))

    assert list(listed.values()) == [
        "Your account", "Members", "Schedules", "Alert rules", "Channels", "Store", "Retention",
        "Workspaces", "API tokens", "Environment", "Audit log",
    ]  # fmt: skip
    pages = {address: client.get(address, follow=True).content.decode() for address in listed}
    current = {
        address: re.findall(r'<a href="\S+" aria-current="page">(.*?)</a>', page) for address, page in pages.items()
    }
    assert {address: found[-1:] for address, found in current.items()} == {a: [name] for a, name in listed.items()}


def test_schedules_stand_by_their_next_time_with_what_is_late_and_paused(look: Look, place: Workspace) -> None:
    now = timezone.now()
    a_sync(place, "sync.hand")
    a_sync(place, "sync.paused", schedule="every 6h", paused_at=now)
    a_sync(place, "sync.later", schedule="0 6 * * *", next_run_at=now + timedelta(hours=9))
    late = a_sync(place, "sync.late", schedule="every 1h", next_run_at=now - timedelta(hours=1))
    run = a_run(late, "failed", trigger="schedule")
    a_run(late, trigger="page")

    page = look("schedules/")

    assert NAMES.findall(page) == ["sync.late", "sync.later", "sync.paused"]
    assert [len(re.findall(word, page)) for word in (">Late<", ">Paused</span>", "1 sync has none")] == [1, 1, 1]
    assert re.findall(r'href="/runs/(\d+)/"', page) == [str(run.pk)]
    assert NAMES.findall(look("schedules/?state=paused")) == ["sync.paused"]
    assert NAMES.findall(look("schedules/?q=LATER&state=followed")) == ["sync.later"]


def test_a_schedule_is_paused_and_resumed_from_its_row(client: Client, look: Look, place: Workspace) -> None:
    sync = a_sync(place, schedule="every 6h")

    answers = [client.post(f"/syncs/{sync.pk}/{verb}/", {"back": "schedules"}) for verb in ("pause", "resume")]

    assert [answer["Location"] for answer in answers] == ["/settings/schedules/"] * 2
    assert Sync.objects.get().paused_at is None


def test_who_may_not_operate_sees_no_button(client: Client, place: Workspace) -> None:
    a_sync(place, schedule="every 6h")
    client.force_login(person("vera", place, "viewer"))

    page = client.get("/settings/schedules/").content.decode()

    assert (NAMES.findall(page), "/pause/" in page) == (["sync.aircraft"], False)


def test_it_is_said_that_no_scheduler_works(look: Look, place: Workspace) -> None:
    a_sync(place, schedule="every 6h")
    before = "No scheduler gives a sign of life" in look("schedules/")
    Worker.objects.create(kind="scheduler", host="here", pid=1)

    assert (before, "No scheduler gives a sign of life" in look("schedules/")) == (True, False)


def test_retention_tells_days_what_is_kept_and_when_the_oldest_goes(look: Look, place: Workspace) -> None:
    bucket = Bucket.objects.create(organization=place.organization, bucket="own", region="r", retention_days=400)
    kept, past = a_sync(place, "sync.kept", retention_days=30), a_sync(place, "sync.past", retention_days=2)
    a_sync(place, "sync.unrun")
    oldest = a_run(kept, ago=timedelta(days=20), **closing(2))
    a_run(kept, **closing(2))
    a_run(kept, **closing(2), rows_expired_at=timezone.now())
    a_run(kept, ago=timedelta(days=300), **closing(2), bucket=bucket)
    a_run(past, ago=timedelta(days=9), **closing(2))
    Run.objects.create(sync=past, status="completed", tracking="pending")

    page = look("retention/")

    rows = {
        NAMES.findall(row)[0]: " ".join(re.sub(r"<.*?>", " ", row).split())
        for row in page.split("<tr>")
        if NAMES.findall(row)
    }
    assert list(rows) == ["sync.kept", "sync.past", "sync.unrun"]
    assert "30 days 2 1 in buckets" in rows["sync.kept"] and "2 days 1 " in rows["sync.past"]
    assert f'datetime="{(oldest.created_at + timedelta(days=30)).isoformat()}"' in page
    assert "Past" in rows["sync.past"] and "14 days 0" in rows["sync.unrun"]
    assert "400 days" in page and "Files of 1 run wait for their store" in page


def test_a_thousand_syncs_ask_no_more_than_ten(look: Look, place: Workspace) -> None:
    def asked(path: str) -> int:
        with CaptureQueriesContext(
            connection,
        ) as queries:
            look(path)
        return len(queries)

    def fill(numbers: range) -> None:
        for number in numbers:
            sync = a_sync(place, f"sync.n{number}", schedule="every 6h", next_run_at=timezone.now())
            a_run(sync, trigger="schedule", **closing(2))

    fill(range(10))
    few = [asked("schedules/"), asked("retention/")]
    fill(range(10, 60))

    assert [asked("schedules/"), asked("retention/")] == few
