"""What was refused stays in sight at every run until it is delivered; what is due again is not called rejected."""

from __future__ import annotations

import io
import json
import os
import shutil
from pathlib import Path
from typing import Any

import pytest
from django.conf import settings
from django.core.management import call_command
from django.test import Client

from ondatra_web.models import Workspace
from ondatra_web.runs import execution, printed, report
from tests.web.filled import person, workspace

pytestmark = [pytest.mark.django_db(transaction=True, serialized_rollback=True), pytest.mark.spark]
PUSH = """
API = {"destination": {"type": "Shop", "object": "Customer"}}

def push(rows):
    said = {}
    for row in rows:
        if row["n"] == "broken":
            fail("the shop is closed")
        key = str(row["__ondatra_rowid"]) + ":" + row["__ondatra_change_type"]
        said[key] = "reject: no such town" if row["n"] == "nowhere" else "ok"
    return said
"""
SENTENCE = "2 records are refused and not at the destination: .venv/bin/python manage.py records sync.out --undelivered"


@pytest.fixture
def place(tmp_path: Path, spark: Any) -> Workspace:
    for part in ("lake", "staging"):  # the workspace has the same number in each test
        shutil.rmtree(settings.ONDATRA.data_dir / part, ignore_errors=True)
    folder = tmp_path / "project"
    (folder / "models/sync").mkdir(parents=True)
    (folder / "lib").mkdir()
    (folder / "lib/shop.star").write_text(PUSH)
    (folder / "models/sync/out.sql").write_text(
        "-- @kind: merge\n-- @unique_key: id\n-- @sink: shop\nSELECT id, n FROM read_csv('rows.csv')\n"
    )
    made = workspace()
    made.project_dir = str(folder)
    made.save()
    return made


def rows(place: Workspace, *names: str, at: int) -> None:
    path = Path(place.project_dir) / "rows.csv"
    path.write_text("id,n\n" + "".join(f"{i},{n}\n" for i, n in enumerate(names)))
    os.utime(path, (1_700_000_000 + at,) * 2)


def run(place: Workspace) -> dict[str, Any]:
    return report.of_walk(execution.run_here(place, [], {}))


def told(command: str, *args: str) -> list[str]:
    out = io.StringIO()
    try:
        call_command(command, *args, stdout=out)
    except SystemExit as ended:
        assert not ended.code
    return out.getvalue().splitlines()


def test_a_run_with_nothing_to_send_says_what_is_refused_and_not_at_the_destination(
    place: Workspace, client: Client
) -> None:
    rows(place, "here", "nowhere", "there", "nowhere", at=0)
    run(place)

    said = run(place)

    assert said["status"] == "completed"
    assert said["syncs"][0]["refused"] == 2
    assert f"    {SENTENCE}" in printed.of(said, as_json=False).text.splitlines()
    assert f"    {SENTENCE}" in told("last_runs")
    listed = [json.loads(line) for line in told("records", "sync.out", "--undelivered", "--format", "json")]
    assert [(r["identifier"], r["operation"], r["reason"]) for r in listed] == [
        ("1", "upsert", "no such town"),
        ("3", "upsert", "no such town"),
    ]
    client.force_login(person("alice", place))
    assert "2 records are refused and not at the destination" in client.get("/").content.decode()
    assert "2 records are refused and not at the destination" in (
        client.get(f"/syncs/{said['syncs'][0]['sync_id']}/").content.decode()
    )

    rows(place, "here", "found", "there", "nowhere", at=1)
    assert run(place)["syncs"][0]["refused"] == 1  # the other one's row changed, and was taken


def test_rows_that_are_due_again_are_not_told_as_rejected(place: Workspace) -> None:
    rows(place, "a", "b", at=0)
    run(place)
    rows(place, "broken", "broken", at=1)

    said = run(place)

    lines = [line.strip() for line in printed.of(said, as_json=False).text.splitlines()]
    assert said["syncs"][0]["counts"]["retrying"] == 2
    assert [line for line in lines if "due again:" in line] == ["2 due again: the shop is closed (0)"]
    assert not [line for line in lines if " rejected: " in line]
    assert said["syncs"][0]["refused"] == 0
