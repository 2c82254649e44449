"""Of a command that makes one run: whether its JVM is one for little work and begins at once, known beforehand."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import pytest

from ondatra_web.models import ModelState, Workspace
from ondatra_web.runs import engine
from runtime.lake.note import FILE, Note


@pytest.fixture
def workspace(db: None, organization: Any, tmp_path: Path, settings: Any) -> Workspace:
    """Of a project with two small files, and a lake of its own."""
    settings.ONDATRA = dataclasses.replace(settings.ONDATRA, lake_url=f"file://{tmp_path}/project/data/lake")
    (tmp_path / "project").mkdir()
    for name in ("customers.csv", "model.sql"):
        (tmp_path / "project" / name).write_text("id\n1\n")
    return Workspace.objects.create(organization=organization, slug="w", project_dir=str(tmp_path / "project"))


def built(workspace: Workspace, model: str, read: int | None) -> None:
    """The note of a table that was built of so many bytes."""
    path = Path(workspace.project_dir, "data", "lake", str(workspace.pk), *model.split("."), FILE)
    path.parent.mkdir(parents=True)
    path.write_text(Note(version=1, read=read).text)


def large(path: Path, size: int = engine.LITTLE + 1) -> None:
    """A file of so many bytes, which take no room."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("wb") as file:
        file.truncate(size)


def test_a_project_of_small_files_is_little(workspace: Workspace) -> None:
    assert engine.is_little(workspace)


@pytest.mark.parametrize(
    ("name", "wanted"), [("exports/orders.parquet", False), (".venv/lib.gz", True), ("data/lake/x/part.parquet", True)]
)
def test_a_large_file_of_the_projects_data_is_much(workspace: Workspace, name: str, wanted: bool) -> None:
    large(Path(workspace.project_dir, name))
    assert engine.is_little(workspace) is wanted


def test_a_connection_is_much_until_its_tables_were_built(workspace: Workspace) -> None:
    Path(workspace.project_dir, "ondatra.toml").write_text("")
    assert not engine.is_little(workspace)
    built(workspace, "staging.customers", 5_000)
    assert engine.is_little(workspace)


@pytest.mark.parametrize("read", [engine.LITTLE, None])
def test_what_the_last_builds_read_decides_and_what_is_not_known_is_much(
    workspace: Workspace, read: int | None
) -> None:
    built(workspace, "staging.customers", 5_000)
    built(workspace, "staging.orders", read)
    assert not engine.is_little(workspace)


def test_what_was_read_and_what_lies_there_are_not_added_up(workspace: Workspace) -> None:
    built(workspace, "staging.customers", engine.LITTLE - 1)
    large(Path(workspace.project_dir, "orders.parquet"), engine.LITTLE - 100)
    assert engine.is_little(workspace)


def test_more_files_than_are_looked_at_are_much(workspace: Workspace, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engine, "MOST_FILES", 1)
    assert not engine.is_little(workspace)


def test_the_engine_begins_at_once_for_a_first_run_and_for_connections_alone(workspace: Workspace) -> None:
    assert engine.is_needed(workspace)
    ModelState.objects.create(workspace=workspace, name="staging.customers", kind="table", table_version=1)
    assert not engine.is_needed(workspace)
    Path(workspace.project_dir, "ondatra.toml").write_text("")
    assert engine.is_needed(workspace)
