"""A lake that is older than the database: a run says so and holds, and a person decides."""

from __future__ import annotations

import os
import re
import shutil
from pathlib import Path
from typing import Any

import pytest

from ondatra_web.models import Chunk, Run, Sync, Workspace
from ondatra_web.runs import execution
from ondatra_web.runs.lake_tables import place_of
from tests.web.filled import workspace

pytestmark = [pytest.mark.django_db(transaction=True, serialized_rollback=True), pytest.mark.spark]
PUSH = 'API = {"push": {"batch_mode": "atomic", "batch_size": 1000}}\n\ndef push(rows):\n    return None\n'
KINDS = {"merge": "-- @kind: merge\n-- @unique_key: id\n", "table": "-- @kind: table\n"}


@pytest.fixture
def place(tmp_path: Path, spark: Any) -> Workspace:
    folder = tmp_path / "project"
    (folder / "models/sync").mkdir(parents=True)
    (folder / "lib").mkdir()
    (folder / "lib/nothing.star").write_text(PUSH)
    made = workspace()
    made.project_dir = str(folder)
    made.save()
    return made


def model(place: Workspace, kind: str) -> None:
    text = f"{KINDS[kind]}-- @sink: nothing\nSELECT id, n FROM read_csv('rows.csv')\n"
    (Path(place.project_dir) / "models/sync/out.sql").write_text(text)


def rows(place: Workspace, *names: str, at: int) -> None:
    path = Path(place.project_dir) / "rows.csv"
    path.write_text("id,n\n" + "".join(f"{i},{n}\n" for i, n in enumerate(names)))
    os.utime(path, (1_700_000_000 + at,) * 2)


def run(place: Workspace, **options: Any) -> Run:
    return execution.run_here(place, [], options).runs["sync.out"]


def lake(place: Workspace) -> Path:
    from django.conf import settings

    return Path(settings.ONDATRA.lake_url.removeprefix("file://")) / str(place.pk) / place_of(place.pk, "sync.out")


def delivered_twice_and_restored(place: Workspace, kind: str, copy: Path) -> None:
    """The table is as it was before the second run, and the source has new rows."""
    model(place, kind)
    rows(place, "a", "b", at=0)
    run(place)
    shutil.copytree(lake(place), copy)
    rows(place, "a", "b", "c", at=1)
    assert run(place).status == "completed"
    shutil.rmtree(lake(place))
    shutil.copytree(copy, lake(place))
    rows(place, "a", "b", "c", "d", at=2)


@pytest.mark.parametrize("kind, decision, sent", [("merge", "full", 4), ("table", "full", 4), ("merge", "baseline", 0)])
def test_a_run_over_an_older_lake_holds_until_a_person_decides(
    place: Workspace, tmp_path: Path, kind: str, decision: str, sent: int
) -> None:
    delivered_twice_and_restored(place, kind, tmp_path / "copy")

    held = run(place)

    assert (held.status, held.succeeded) == ("held", 0)
    said = re.sub(r"\d{4}-\d\d-\d\d \d\d:\d\d", "WHEN", held.error)
    assert re.sub(r"\b(version|run) \d+", r"\1 N", said) == (
        "the table of sync.out stands at version N of WHEN UTC and so is older than version N, which run N of WHEN UTC "
        "sent: the lake was restored from a copy, or a part of it was lost. What changed since cannot be known: run "
        "with --full to send every row again, or --baseline to take the table as delivered"
    )

    decided = run(place, **{decision: True})
    assert (decided.status, decided.succeeded) == ("completed", sent)
    assert not Chunk.objects.exclude(due_rows=0).exists()

    rows(place, "a", "b", "c", "d", "e", at=3)
    following = run(place)
    assert (following.status, following.succeeded) == ("completed", 1 if kind == "merge" else following.planned)


def test_a_run_whose_table_was_lost_holds_though_nothing_changed(place: Workspace) -> None:
    model(place, "merge")
    rows(place, "a", "b", at=0)
    run(place)
    shutil.rmtree(lake(place))

    held = run(place)

    assert held.status == "held"
    assert held.error.startswith("the table of sync.out is gone, and with it version ")
    assert Sync.objects.get(name="sync.out").mark is not None
