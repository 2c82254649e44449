"""`@renamed_from`: the new file goes on as the old one; a file that is gone leaves an archived sync."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from ondatra_web import actions, workers
from ondatra_web.models import Chunk, ModelState, Run, Sync, Workspace
from ondatra_web.runs import execution
from runtime.errors import ConfigError, ProjectError
from tests.web.filled import workspace

pytestmark = [pytest.mark.django_db(transaction=True, serialized_rollback=True), pytest.mark.spark]
HEAD = "-- @kind: merge\n-- @unique_key: id\n-- @sink: part\n"
SELECT = "SELECT id, n FROM read_csv('rows.csv')\n"
#: Takes everything but the row with id 2, which is due again.
PUSH = """API = {"push": {"batch_size": 100}}

def push(rows):
    return {"%d:%s" % (r["__ondatra_rowid"], r["__ondatra_change_type"]):
            "error: later" if r["id"] == 2 else "ok" for r in rows}
"""


class Place:
    """A workspace with one project folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        (folder / "models/sync").mkdir(parents=True)
        (folder / "lib").mkdir()
        (folder / "lib/part.star").write_text(PUSH)
        self.workspace: Workspace = workspace()
        self.workspace.project_dir = str(folder)
        self.workspace.save()

    def rows(self, *rows: tuple[int, str]) -> None:
        path = self.folder / "rows.csv"
        path.write_text("id,n\n" + "".join(f"{i},{n}\n" for i, n in rows))
        os.utime(path, (1_700_000_000 + len(path.read_text()),) * 2)  # long ago, so that it has a fingerprint

    def model(self, name: str, text: str = HEAD + SELECT) -> Path:
        path = self.folder / f"models/sync/{name}.sql"
        path.write_text(text)
        return path

    def run(self, *names: str) -> dict[str, Run]:
        """The runs by the name of their model."""
        return execution.run_here(self.workspace, names, {}).runs


@pytest.fixture
def place(tmp_path: Path, spark: Any, monkeypatch: pytest.MonkeyPatch) -> Place:
    monkeypatch.setattr(workers, "_mine", {})  # the row of this process went with the last test's
    found = Place(tmp_path / "project")
    found.rows((1, "a"), (2, "b"), (3, "c"))
    return found


def test_a_renamed_model_keeps_its_sync_what_waits_and_its_table(place: Place) -> None:
    file = place.model("old")
    first = place.run()["sync.old"]
    assert (first.changed, first.retrying) == (3, 1)

    file.unlink()
    place.model("new", f"-- @renamed_from: sync.old\n{HEAD}{SELECT}")
    again = place.run()["sync.new"]
    assert (again.sync_id, again.unchanged, again.changed, again.carried) == (first.sync_id, 3, 0, 1)
    assert [s.name for s in Sync.objects.all()] == ["sync.new"]
    assert [(s.name, s.last_action) for s in ModelState.objects.all()] == [("sync.new", "unchanged")]

    place.rows((1, "a"), (2, "b"), (3, "changed"))
    third = place.run()["sync.new"]
    assert (third.changed, third.carried, third.succeeded) == (1, 1, 1)
    chunk = Chunk.objects.filter(staged_by=third).get()
    assert chunk.change_counts == {"update_postimage": 1, "update_preimage": 1}


def test_the_old_name_is_free_for_a_new_model_with_a_table_of_its_own(place: Place) -> None:
    file = place.model("old")
    first = place.run()["sync.old"]
    file.rename(place.folder / "models/sync/new.sql")
    new = place.model("new", f"-- @renamed_from: sync.old\n{HEAD}{SELECT}")
    place.run()
    place.model("old", HEAD + SELECT.replace("id, n", "id, upper(n) AS n"))
    with pytest.raises(
        ProjectError, match=r"new.sql:1: @renamed_from names sync.old, which still is a model \(models/sync/old.sql\)"
    ):
        place.run()

    new.write_text(HEAD + SELECT)
    runs = place.run()
    assert (runs["sync.new"].sync_id, runs["sync.new"].changed) == (first.sync_id, 0)
    assert runs["sync.old"].sync_id != first.sync_id
    assert (runs["sync.old"].changed, runs["sync.old"].carried) == (3, 0)
    assert {s.name: s.place for s in ModelState.objects.all()} == {"sync.new": "sync/old", "sync.old": "sync/old-2"}
    assert place.run()["sync.old"].changed == 0


def test_a_model_that_delivered_under_its_own_name_does_not_become_another(place: Place) -> None:
    file = place.model("old")
    place.run()
    file.unlink()
    new = place.model("new")
    place.run()  # the directive was forgotten: everything was sent anew
    new.write_text(f"-- @renamed_from: sync.old\n{HEAD}{SELECT}")
    with pytest.raises(
        ProjectError,
        match=r"new.sql:1: @renamed_from names sync.old, but sync.new has delivered under its own name already",
    ):
        place.run()
    assert sorted(Sync.objects.values_list("name", flat=True)) == ["sync.new", "sync.old"]


def test_a_run_that_was_queued_before_the_rename_goes_on_under_the_new_name(place: Place) -> None:
    file = place.model("old")
    first = place.run()["sync.old"]
    queued = actions.start_run(first.sync)
    file.unlink()
    place.model("new", f"-- @renamed_from: sync.old\n{HEAD}{SELECT}")
    ran = execution.run_here(place.workspace, ["sync.old"], {}, given={"sync.old": queued}).runs["sync.new"]
    assert (ran.pk, ran.sync_id, ran.carried) == (queued.pk, first.sync_id, 1)


def test_a_file_that_is_gone_archives_its_sync_and_keeps_what_waits(place: Place) -> None:
    file = place.model("old")
    place.model("other")
    first = place.run()["sync.old"]
    file.unlink()
    assert "sync.old" not in place.run()
    sync = Sync.objects.get(pk=first.sync_id)
    assert sync.archived_at is not None
    assert Chunk.objects.get(sync=sync).due_rows == 1
    with pytest.raises(ConfigError, match=r"sync.old is archived"):
        actions.start_run(sync)

    place.model("old")  # the file is back, and so is the sync
    assert (place.run()["sync.old"].sync_id, Sync.objects.get(pk=sync.pk).archived_at) == (sync.pk, None)
