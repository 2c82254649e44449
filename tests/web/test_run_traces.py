"""One run: its chunks, files and retries, its log by level and text, and a tab that says its state."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from html import unescape
from pathlib import Path
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.utils import timezone

from ondatra_web import actions, tokens
from ondatra_web.api.shapes import RunShape
from ondatra_web.audit import at_the_command_line
from ondatra_web.clock import scheduling
from ondatra_web.models import Chunk, Delivery, Run, RunLog, Sync
from ondatra_web.runs import beginning
from ondatra_web.tracking.records import planned_folder
from runtime.records.filter import Filter
from tests.web.filled import a_run, a_sync, closing, parquet, person, put_records, record, workspace

pytestmark = pytest.mark.django_db
Look = Callable[[str], str]


@pytest.fixture
def run() -> Run:
    return a_run(a_sync(workspace()), "completed_with_rejects", **closing(9, rejected=2))


@pytest.fixture
def look(client: Client, run: Run) -> Look:
    client.force_login(person("alice", run.sync.workspace))
    return lambda address: " ".join(unescape(client.get(address).content.decode()).split())


def test_a_run_says_its_chunks_its_files_and_who_sent_it_again(look: Look, run: Run, tmp_path: Path) -> None:
    for n, status in enumerate(("closed", "claimed", "waiting")):
        chunk = Chunk.objects.create(sync=run.sync, url="", rows=3, records=3, states=b"")
        Delivery.objects.create(run=run, chunk=chunk, ordinal=n, rows=3, records=3, status=status)
    put_records(run, tmp_path, [record("N1")])
    again = a_run(run.sync, trigger="retry", options={"retry_of": run.pk}, **closing(2))

    text = look(f"/runs/{run.pk}/")

    assert '1 of 3 done <span class="muted">1 in flight</span>' in text
    assert "1 record file," in text and f"/{run.sync.workspace.organization_id}/{run.sync_id}/{run.pk}</code>" in text
    assert f'href="/runs/{again.pk}/">run {again.pk} <span class="tag ok">Completed</span>' in text
    assert f'href="/runs/{run.pk}/">run {run.pk}</a>' in look(f"/runs/{again.pk}/").split("Sends again")[1]


def test_who_and_what_started_a_run_is_told_by_page_list_and_api(look: Look, run: Run, client: Client) -> None:
    """A person, a token, a schedule, a command: whatever it was."""
    sync, alice = run.sync, User.objects.get(username="alice")
    sync.schedule = "every 6h"
    told = {
        "started by alice": actions.start_run(sync, user=alice),
        "started by alice, token airflow": _by_token(alice, sync),
        "started by its schedule every 6h": _by_schedule(sync),
        f"started by {at_the_command_line()}": beginning.take(
            sync, None, trigger="command", options={}, since=timezone.now()
        ),
    }

    assert {said: said in look(f"/runs/{made.pk}/") for said, made in told.items()} == dict.fromkeys(told, True)
    rows = re.findall(r'data-label="Started by" class="clipped" title="(\w+)"> (.*?) <', look(f"/syncs/{sync.pk}/"))
    assert rows[:4] == [
        ("command", at_the_command_line()),
        ("schedule", "schedule every 6h"),
        ("api", "alice, token airflow"),
        ("page", "alice"),
    ]
    answer = RunShape(told["started by alice, token airflow"]).data
    assert (answer["started_by"], answer["started_with"], answer["trigger"]) == ("alice", "token airflow", "api")


def _by_token(user: User, sync: Sync) -> Run:
    _, text = tokens.make(sync.workspace.organization, user, "airflow", ["read", "operate"])
    head = {"Authorization": f"Bearer {text}"}
    Run.objects.update(status="completed")  # a trigger refuses to queue behind another run
    made = Client().post(f"/api/v1/syncs/{sync.pk}/trigger", {}, "application/json", headers=head)
    return Run.objects.get(pk=made.json()["data"]["sync_run_id"])


def _by_schedule(sync: Sync) -> Run:
    now = timezone.now()
    Run.objects.update(status="completed")
    Sync.objects.filter(pk=sync.pk).update(schedule="every 6h", next_run_at=now - timedelta(seconds=1))
    scheduling.start_scheduled()
    return Run.objects.get(trigger="schedule", status="queued")


def test_who_confirmed_or_asked_again_is_told_too(look: Look, run: Run) -> None:
    alice = User.objects.get(username="alice")
    held = a_run(run.sync, "held", options={"would_delete": 3})

    confirmed = actions.confirm_run(held, user=alice)
    again = actions.retry_run(run, Filter(), user=alice, by="token airflow")

    assert "confirmed by alice" in look(f"/runs/{confirmed.pk}/")
    assert "sends records again, asked by alice, token airflow" in look(f"/runs/{again.pk}/")


def test_a_held_run_leads_to_the_rows_that_it_would_delete(
    look: Look, run: Run, settings: Any, tmp_path: Path, client: Client
) -> None:
    settings.ONDATRA = replace(settings.ONDATRA, data_dir=tmp_path)
    held = a_run(run.sync, "held", error="3 deletes are more than @max_deletes allows", deleted=3, planned=3)
    rows = [record(f"N{n}", "planned", outcome="planned", operation="delete", change_type="delete") for n in (7, 8)]
    planned_folder(held.pk).mkdir(parents=True)
    (planned_folder(held.pk) / "planned.0.parquet").write_bytes(parquet(rows))

    page = look(f"/runs/{held.pk}/")
    window = look(f"/runs/{held.pk}/records/?change_type=delete")
    file = client.get(f"/runs/{held.pk}/records/download/?change_type=delete&format=csv&sample=on")
    client.force_login(person("vera", run.sync.workspace, "metadata_viewer"))

    assert "See the first 2 of the 3 records that it would delete" in page
    assert (">N7<" in window, ">N8<" in window) == (True, True)
    assert b"".join(file.streaming_content).count(b'"planned",,') == 2  # type: ignore[attr-defined]
    assert "would delete </a>" not in look(f"/runs/{held.pk}/")


def test_the_log_is_searched_and_narrowed_to_a_level(look: Look, run: Run) -> None:
    for level, said in (("info", "began"), ("error", "Token expired"), ("print", "token of row 7")):
        RunLog.objects.create(run=run, level=level, text=said)

    def lines(query: str) -> list[str]:
        text = look(f"/runs/{run.pk}/{query}")
        return [said for said in ("began", "Token expired", "token of row 7") if f"</time></span> {said}</p>" in text]

    assert lines("") == ["began", "Token expired", "token of row 7"]
    assert lines("?find=TOKEN") == ["Token expired", "token of row 7"]
    assert lines("?find=token&level=error") == ["Token expired"]
    assert "No line of the log matches" in look(f"/runs/{run.pk}/?find=nothing")
    assert "> 3 lines <" in look(f"/runs/{run.pk}/")


def test_a_log_says_that_it_goes_back_further_than_it_shows(look: Look, run: Run) -> None:
    RunLog.objects.bulk_create(RunLog(run=run, text=f"line {n}") for n in range(201))

    page = look(f"/runs/{run.pk}/")

    assert "the newest 200 lines; a search finds earlier ones" in page
    assert [" line 0</p>" in text for text in (page, look(f"/runs/{run.pk}/?find=line 0"))] == [False, True]


@pytest.mark.parametrize(
    ("status", "icon"),
    [("working", "live"), ("failed", "bad"), ("completed_with_rejects", "warn"), ("completed", "ok")],
)
def test_the_icon_of_the_tab_says_the_state_also_while_it_changes(look: Look, run: Run, status: str, icon: str) -> None:
    Run.objects.filter(pk=run.pk).update(status=status)

    assert f'<link id="icon" rel="icon" href="/static/icon-{icon}.svg">' in look(f"/runs/{run.pk}/")
    live = look(f"/runs/{run.pk}/live/")
    assert f'href="/static/icon-{icon}.svg" hx-swap-oob="true">' in live
    assert f"run {run.pk} of sync.aircraft · Ondatra</title>" in live
