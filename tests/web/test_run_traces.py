"""One run: its chunks, files and retries, its log by level and text, and a tab that says its state."""

from __future__ import annotations

from collections.abc import Callable
from html import unescape
from pathlib import Path

import pytest
from django.test import Client

from ondatra_web.models import Chunk, Delivery, Run, RunLog
from tests.web.filled import a_run, a_sync, closing, person, put_records, record, workspace

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
