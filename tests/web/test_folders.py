"""A schedule works as soon as its file is saved: the scheduler reads the folder."""

from __future__ import annotations

import os
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from django.utils import timezone

from ondatra_web.clock import folders, scheduling
from ondatra_web.models import Run, Sync, Workspace
from tests.web.filled import a_sync, workspace

pytestmark = pytest.mark.django_db


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folders.looked.forget()
    monkeypatch.setattr(folders, "_read", {})
    Workspace.objects.filter(pk=workspace().pk).update(project_dir=str(tmp_path))
    (tmp_path / "models/sync").mkdir(parents=True)
    return tmp_path


def write(folder: Path, schedule: str, name: str = "aircraft", more: str = "") -> None:
    path = folder / f"models/sync/{name}.sql"
    head = f"-- @kind: merge\n-- @unique_key: id\n-- @sink: assets\n{more}"
    path.write_text(head + (f"-- @schedule: {schedule}\n" if schedule else "") + "SELECT 1 AS id\n")
    os.utime(path, ns=(0, path.stat().st_mtime_ns + 1))  # saved twice within a tick of the disk's clock


def look() -> None:
    folders.looked.forget()
    folders.read()


def test_a_new_schedule_starts_a_run_that_nobody_else_asked_for(folder: Path) -> None:
    write(folder, "every 1h")
    look()
    scheduling.start_scheduled()
    sync = Sync.objects.get()
    assert (sync.name, sync.function, sync.key, sync.schedule) == ("sync.aircraft", "assets", ["id"], "every 1h")
    assert sync.next_run_at is not None

    Sync.objects.update(next_run_at=timezone.now() - timedelta(seconds=1))
    scheduling.start_scheduled()

    assert [(run.trigger, run.started_with) for run in Run.objects.all()] == [("schedule", "every 1h")]


def test_an_edited_schedule_begins_anew_and_one_that_was_removed_ends(folder: Path) -> None:
    soon = timezone.now() + timedelta(minutes=3)
    a_sync(workspace(), schedule="every 1h", next_run_at=soon)
    write(folder, "0 6 * * *")
    look()
    edited = Sync.objects.get()
    write(folder, "")
    look()

    assert (edited.schedule, edited.next_run_at, Sync.objects.get().schedule) == ("0 6 * * *", None, "")


def test_files_that_did_not_change_are_not_read_again(folder: Path, django_assert_num_queries: Any) -> None:
    write(folder, "every 1h")
    look()

    with django_assert_num_queries(1):  # the workspaces
        look()


@pytest.mark.parametrize("more", ["-- @renamed_from: sync.older\n", "-- @retention: soon\n"])
def test_what_only_a_run_can_decide_and_what_is_wrong_waits(folder: Path, more: str) -> None:
    write(folder, "every 1h", more=more)
    look()

    assert not Sync.objects.exists()


def test_a_folder_that_is_gone_stops_no_other(folder: Path, tmp_path: Path) -> None:
    lost = workspace("lost")
    Workspace.objects.filter(pk=lost.pk).update(project_dir=str(tmp_path / "nowhere"))
    write(folder, "every 1h")
    look()

    assert list(Sync.objects.values_list("name", flat=True)) == ["sync.aircraft"]
