"""The lake's upkeep as the scheduler starts it, and a sync whose change files are gone."""

from __future__ import annotations

import datetime as dt
import os
from pathlib import Path
from typing import Any

import pytest
from django.utils import timezone

from ondatra_web import actions, jobs
from ondatra_web.clock import scheduling
from ondatra_web.models import ModelState, Run, Sync, Workspace
from ondatra_web.runs import execution
from ondatra_web.runs.lake_tables import place_of
from runtime.lake import upkeep
from tests.web.filled import workspace

pytestmark = [pytest.mark.django_db(transaction=True, serialized_rollback=True), pytest.mark.spark]
PUSH = 'API = {"push": {"batch_mode": "atomic", "batch_size": 1000}}\n\ndef push(rows):\n    return None\n'


@pytest.fixture
def place(tmp_path: Path, spark: Any) -> Workspace:
    folder = tmp_path / "project"
    (folder / "models/sync").mkdir(parents=True)
    (folder / "lib").mkdir()
    (folder / "lib/nothing.star").write_text(PUSH)
    (folder / "models/sync/out.sql").write_text(
        "-- @kind: merge\n-- @unique_key: id\n-- @on_missing: delete\n-- @sink: nothing\nSELECT id, n FROM "
        "read_csv('rows.csv')\n"
    )
    made = workspace()
    made.project_dir = str(folder)
    made.save()
    return made


def rows(place: Workspace, *names: str, at: int) -> None:
    path = Path(place.project_dir) / "rows.csv"
    path.write_text("id,n\n" + "".join(f"{i},{n}\n" for i, n in enumerate(names)))
    os.utime(path, (1_700_000_000 + at,) * 2)


def run(place: Workspace, **options: Any) -> Run:
    return execution.run_here(place, [], options).runs["sync.out"]


def table_of(place: Workspace) -> Path:
    from django.conf import settings

    return Path(settings.ONDATRA.lake_url.removeprefix("file://")) / str(place.pk) / place_of(place.pk, "sync.out")


def test_the_scheduler_wakes_a_worker_and_the_next_run_finds_nothing_changed(
    place: Workspace, monkeypatch: pytest.MonkeyPatch, stub_broker: Any
) -> None:
    for at in range(3):
        rows(place, *"abcd"[: at + 2], at=at)
        run(place)
    scheduling.start_upkeep()
    place.refresh_from_db()
    assert place.upkeep_at is not None and place.upkeep_at > timezone.now()

    Workspace.objects.update(upkeep_at=timezone.now() - dt.timedelta(seconds=1))
    scheduling.start_upkeep()
    scheduling.start_upkeep()  # once is enough
    assert stub_broker.queues["pipeline"].qsize() == 1

    monkeypatch.setattr(upkeep.keep, "__kwdefaults__", {"keep_for": upkeep.KEEP, "many_files": 2})
    before = Sync.objects.get().mark
    jobs.upkeep.fn(place.pk)
    assert Sync.objects.get().mark == ModelState.objects.get().table_version == (before or 0) + 1
    assert run(place).changed == 0
    rows(place, *"abcd", "e", at=9)
    assert run(place).changed == 1


def test_a_working_run_keeps_upkeep_away(place: Workspace, monkeypatch: pytest.MonkeyPatch) -> None:
    rows(place, "a", at=1)
    last = run(place)
    Run.objects.filter(pk=last.pk).update(status=Run.Status.WORKING)
    monkeypatch.setattr(upkeep, "keep", lambda *_, **__: pytest.fail("a run is working"))
    jobs.upkeep.fn(place.pk)


def test_a_sync_whose_change_files_are_gone_is_held_and_sends_everything_once_confirmed(place: Workspace) -> None:
    rows(place, "a", "b", "c", at=1)
    run(place)
    mark, commit = Sync.objects.values_list("mark", "mark_commit").get()
    rows(place, "a", "B", "c", at=2)
    run(place)
    Sync.objects.update(mark=mark, mark_commit=commit)  # as a process that died after its commit leaves it
    ModelState.objects.update(fingerprint="", table_version=mark, table_commit=commit)
    for file in table_of(place).rglob("cdc-*.parquet"):
        file.unlink()

    held = run(place)
    assert (held.status, held.changed, held.planned, held.not_tried, held.succeeded) == ("held", 3, 3, 3, 0)
    assert (
        f"the changes of sync.out since version {(mark or 0) + 1} are no longer kept; confirm sends every current row "
        f"as --full" in held.error
    )
    assert Sync.objects.get().mark == mark
    assert run(place, full=True).status == "held"  # also --full would pass over deletes that nobody knows

    new = actions.confirm_run(held, send=False)
    done = execution.run_here(place, ["sync.out"], new.options, trigger="confirm", given={"sync.out": new}).runs[
        "sync.out"
    ]
    assert (done.status, done.full, done.planned, done.succeeded) == ("completed", True, 3, 3)
    rows(place, "a", "B", at=3)
    assert (run(place).deleted, Sync.objects.get().mark) == (1, ModelState.objects.get().table_version)
