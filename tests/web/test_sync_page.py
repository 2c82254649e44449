"""One sync: its settings as the files say them, its runs by filter, its trends, and buttons that ask first."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import timedelta
from html import unescape
from pathlib import Path

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from ondatra_web.models import AuditLog, Chunk, ModelState, Run, Sync, Workspace
from tests.web.filled import a_run, a_sync, closing, person, workspace

pytestmark = pytest.mark.django_db
Look = Callable[[str], str]
SQL = "-- @kind: merge\n-- @unique_key: tailnum\n-- @sink: assets\n-- @schedule: 0 6 * * *\nSELECT 1 AS tailnum\n"
STAR = 'API = {"base_url": "https://x.example", "auth": {"user": "u", "pass": "hunter2"}}\n'


@pytest.fixture
def sync(tmp_path: Path) -> Sync:
    place = workspace()
    Workspace.objects.filter(pk=place.pk).update(project_dir=str(tmp_path))
    (tmp_path / "models/sync").mkdir(parents=True)
    (tmp_path / "lib").mkdir()
    (tmp_path / "models/sync/aircraft.sql").write_text(SQL)
    (tmp_path / "lib/assets.star").write_text(STAR)
    found = a_sync(place, schedule="0 6 * * *", source_rows=3322)
    ModelState.objects.create(workspace=place, name=found.name, file="models/sync/aircraft.sql")
    return found


@pytest.fixture
def look(client: Client, sync: Sync) -> Look:
    client.force_login(person("alice", sync.workspace))
    return lambda query="": " ".join(unescape(client.get(f"/syncs/{sync.pk}/{query}").content.decode()).split())


def test_settings_stand_as_the_files_say_them_now_without_a_password(look: Look, sync: Sync) -> None:
    text = look("")

    told = re.findall(r"<dt>@(\w+)</dt> <dd> <code>([^<]*)</code>", text)
    assert told == [("kind", "merge"), ("unique_key", "tailnum"), ("sink", "assets"), ("schedule", "0 6 * * *")]
    assert "SELECT 1 AS tailnum" in text
    assert '"base_url": "https://x.example"' in text and "hunter2" not in text


def test_the_next_five_times_are_told_unless_it_is_paused(look: Look, sync: Sync) -> None:
    times = re.findall(r'<time datetime="\S+T06:00:00\+00:00"', look("").split("Next times:")[1].split("</p>")[0])
    assert len(times) == 5

    Sync.objects.update(paused_at="2026-01-01T00:00Z")

    assert "Next times:" not in look("")


def test_a_push_function_is_not_shown_without_the_right_to_payloads(client: Client, sync: Sync) -> None:
    client.force_login(person("vera", sync.workspace, "metadata_viewer"))

    assert "base_url" not in client.get(f"/syncs/{sync.pk}/").content.decode()


@pytest.mark.parametrize(
    ("status", "title", "icon"),
    [
        ("failed", "Failed · sync.aircraft · Ondatra", "icon-bad"),
        ("working", "Working · sync.aircraft · Ondatra", "icon-live"),
        (None, "sync.aircraft · Ondatra", "icon"),
    ],
)
def test_the_tab_of_a_sync_says_its_state(look: Look, sync: Sync, status: str | None, title: str, icon: str) -> None:
    if status:
        a_run(sync, status)

    page = look("")

    assert re.findall(r"<title>(.*?)</title>", page)[0].strip() == title
    assert re.findall(r'<link id="icon" rel="icon" href="/static/([\w-]+)', page) == [icon]


def test_runs_are_filtered_by_state_trigger_and_day(look: Look, sync: Sync) -> None:
    old = a_run(sync, "failed", ago=timedelta(days=9), trigger="schedule")
    new = a_run(sync, "failed", trigger="schedule")
    others = [a_run(sync, "failed", trigger="api"), a_run(sync, "completed", trigger="schedule")]
    day = f"{old.created_at + timedelta(days=1):%Y-%m-%d}"

    def runs(query: str) -> list[int]:
        return [int(n) for n in re.findall(r'<span class="small">run (\d+)</span>', look(query))]

    assert runs("?state=failed&trigger=schedule") == [new.pk, old.pk]
    assert runs(f"?state=failed&trigger=schedule&since={day}") == [new.pk]
    assert runs(f"?until={day}") == [old.pk]
    assert runs("?state=wrong") == [others[1].pk, others[0].pk, new.pk, old.pk]
    assert "No run matches" in look("?state=held")


def test_trends_say_each_days_rows_rejects_duration_and_lag(look: Look, sync: Sync) -> None:
    for ago, rejected in ((2, 1), (2, 2), (1, 0), (100, 50)):
        a_run(sync, ago=timedelta(days=ago), **closing(1000 + rejected, rejected=rejected))

    titles = re.findall(r"<title>\d+ \w+: ([^<]*)</title>", look("").split('class="trends"')[1].split("</section>")[0])

    assert titles == ["2,000", "1,000", "3", "0", "1 min 30 s", "1 min 30 s", "1 min 30 s", "1 min 30 s"]


def test_a_page_costs_the_same_for_any_number_of_runs(client: Client, sync: Sync) -> None:
    client.force_login(person("alice", sync.workspace))
    a_run(sync, **closing())

    def asked() -> int:
        with CaptureQueriesContext(connection) as seen:
            client.get(f"/syncs/{sync.pk}/")
        return len(seen)

    before = asked()
    for n in range(20):
        a_run(sync, ago=timedelta(days=n), **closing())

    assert asked() == before


@pytest.mark.parametrize(
    ("how", "says", "told", "options"),
    [
        ("run", "Start a run, send 12 due and what changed", {}, {}),
        ("dry_run", "Start a dry run", {"dry_run": "on"}, {"dry_run": True}),
        ("full", "Send about 3,322 records again", {"full": "on"}, {"full": True}),
        ("baseline", "Take them as delivered", {"baseline": "on"}, {"baseline": True}),
        ("limit", "Send them", {"limit": "100"}, {"limit": 100}),
    ],
)
def test_whatever_sends_or_drops_is_asked_about_first_with_counts(
    client: Client, look: Look, sync: Sync, how: str, says: str, told: dict[str, str], options: dict[str, object]
) -> None:
    due = 0 if how == "baseline" else 12  # what a baseline drops is counted in staged files, and there are none
    Chunk.objects.create(sync=sync, url="", rows=12, records=12, states=b"", due_rows=due)
    page = look(f"ask/?how={how}")
    assert says in page and not Run.objects.exists()
    assert re.search(r"<dt>Rows at the last run</dt> <dd> 3,322 </dd>", page)
    assert re.search(rf"<dt>Due again</dt> <dd> {due} </dd>", page) and "Assets / Aircraft" in page

    client.post(f"/syncs/{sync.pk}/start/", told)

    assert Run.objects.get().options == options


def test_no_button_starts_a_run_at_once(look: Look, sync: Sync) -> None:
    page = look("")

    assert "/start/" not in page
    asked = re.findall(rf'href="/syncs/{sync.pk}/ask/\?how=(\w+)"', page)
    assert asked == ["full", "limit", "baseline", "dry_run", "run", "dry_run"]  # the last where no run is listed yet


def test_it_is_said_before_that_another_run_works(look: Look, sync: Sync) -> None:
    run = a_run(sync, "working")

    assert f'<a href="/runs/{run.pk}/">Run {run.pk}</a> is working' in look("ask/?how=run")


def test_a_limit_that_is_no_number_starts_nothing(client: Client, look: Look, sync: Sync) -> None:
    client.post(f"/syncs/{sync.pk}/start/", {"limit": "0"})

    assert not Run.objects.exists()
    assert "a limit is a whole number of records, 1 or more" in look("")


def test_a_schedule_is_paused_and_resumed_with_a_line_in_the_audit_log(client: Client, look: Look, sync: Sync) -> None:
    client.post(f"/syncs/{sync.pk}/pause/")
    assert "Resume" in look("") and Sync.objects.get().paused_at is not None

    client.post(f"/syncs/{sync.pk}/resume/")

    assert Sync.objects.get().paused_at is None
    assert [line.action for line in AuditLog.objects.order_by("pk")] == ["pause_sync", "resume_sync"]
