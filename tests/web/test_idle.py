"""Syncs of which nothing changed and nothing waits get their runs all at once, and nothing else is written."""

from __future__ import annotations

import dataclasses
import json
import os
from pathlib import Path
from typing import Any

import pytest
from django.conf import settings
from django.db import connection
from django.test.utils import CaptureQueriesContext

from ondatra_web.models import ModelState, Run, Sync, Workspace
from ondatra_web.runs import execution, report
from ondatra_web.runs.walk import prepare
from runtime.lake import spark
from runtime.pipeline import fingerprint
from runtime.pipeline import line as pipeline
from runtime.store.opening import open_store
from tests.web.filled import workspace

pytestmark = pytest.mark.django_db
PUSH = (
    'API = {"push": {"batch_mode": "atomic"}, "destination": {"type": "Nowhere", "object": "Things"}}\n\ndef '
    "push(rows):\n    return None\n"
)


@pytest.fixture(autouse=True)
def store_of_its_own(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Ids of runs begin anew with each test's tables: files in a shared store would meet those of others."""
    monkeypatch.setattr(
        settings,
        "ONDATRA",
        dataclasses.replace(
            settings.ONDATRA, tracking_url=(tmp_path / "store").as_uri(), lake_url=(tmp_path / "lake").as_uri()
        ),
    )


@pytest.fixture
def no_spark(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(spark, "isolated", lambda *_: pytest.fail("Spark was started"))


def commit(workspace_id: int, model: str, version: int) -> str:
    """The line of a table's log that says which commit its version is; its id."""
    log = (
        Path(settings.ONDATRA.lake_url.removeprefix("file://")) / f"{workspace_id}/{model.replace('.', '/')}/_delta_log"
    )
    log.mkdir(parents=True)
    (log / f"{version:020}.json").write_text(
        json.dumps({"commitInfo": {"timestamp": 1_700_000_000_000, "txnId": f"commit of {model}"}})
    )
    return f"commit of {model}"


def place(folder: Path, syncs: int) -> Workspace:
    """A project that has run before, as far as the database knows; of the tables there is the log alone."""
    (folder / "lib").mkdir(parents=True)
    (folder / "models/sync").mkdir(parents=True)
    (folder / "lib/nothing.star").write_text(PUSH)
    (folder / "rows.csv").write_text("id,n\n1,a\n")
    os.utime(folder / "rows.csv", (1_700_000_000,) * 2)  # one that was just modified counts as changed
    for i in range(syncs):
        (folder / f"models/sync/s{i}.sql").write_text(
            f"-- @kind: merge\n-- @unique_key: id\n-- @sink: nothing\nSELECT id, n, {i} AS i FROM "
            f"read_csv('rows.csv')\n"
        )
    made = workspace(folder.name)
    made.project_dir = str(folder)
    made.save()
    walk = prepare(made)
    for name, model in walk.project.models.items():
        translated = walk.project.translated[name]
        ModelState.objects.create(
            workspace=made,
            name=name,
            kind=model.kind,
            table_version=3,
            table_commit=commit(made.pk, name, 3),
            place=name.replace(".", "/"),
            fingerprint=fingerprint.fingerprint(model, translated, {}),
            rows=1,
            columns=[[c.name, c.duckdb_type, c.spark_type] for c in translated.columns or ()],
        )
    for sync in Sync.objects.filter(workspace=made):
        Sync.objects.filter(pk=sync.pk).update(
            mark=3, mark_commit=f"commit of {sync.name}", source_rows=5, invalid_rows=1
        )
    execution.run_here(made, [], {})  # the long way: notes destination and columns
    return made


def test_their_runs_are_complete_and_cost_no_query_each(
    tmp_path: Path, no_spark: None, capsys: pytest.CaptureFixture[str]
) -> None:
    asked = []
    for folder, syncs in (("few", 2), ("many", 12)):
        made = place(tmp_path / folder, syncs)
        before = list(
            ModelState.objects.filter(workspace=made).values("fingerprint", "table_version", "sql_as_run", "columns")
        )
        with CaptureQueriesContext(connection) as queries:
            walk = execution.run_here(made, [], {}, trigger="schedule")
            said = report.of_walk(walk)
        asked.append(len(queries))
        assert {m["action"] for m in said["models"]} == {"unchanged"}
        assert [s["counts"]["unchanged"] for s in said["syncs"]] == [4] * syncs and {
            s["status"] for s in said["syncs"]
        } == {"completed"}
        assert (
            list(
                ModelState.objects.filter(workspace=made).values(
                    "fingerprint", "table_version", "sql_as_run", "columns"
                )
            )
            == before
        )
    assert asked[1] - asked[0] < 10
    run = walk.runs["sync.s0"]
    run.refresh_from_db()
    long_way = Run.objects.filter(sync=run.sync).order_by("pk")[0]
    same = (
        "status",
        "counts",
        "tracking",
        "staged",
        "table_version",
        "store_url",
        "bucket",
        "owner",
        "error",
        "step",
        "options",
        "finalized",
    )
    assert {n: getattr(run, n) for n in same} == {n: getattr(long_way, n) for n in same}
    assert run.trigger == "schedule" and set(run.step_times) == set(long_way.step_times)
    told = {k: v for k, v in long_way.metadata.items() if k not in ("sync_run_id", "started_at")}
    assert {k: v for k, v in run.metadata.items() if k not in ("sync_run_id", "started_at")} == told
    store = open_store(settings.ONDATRA.tracking_url)
    files = [path for path in store.list("") if path.endswith("metadata.json")]
    written = [json.loads(store.get(path)) for path in files]
    assert run.metadata in written
    assert f"run {run.pk} of sync.s0 started" in capsys.readouterr().err


@pytest.mark.parametrize(
    "change",
    [{"finalize_due": True, "finalize_counts": [1, 0]}, {"destination": None}, {"columns": []}, {"sink_args": ["x"]}],
)
def test_a_sync_with_anything_left_to_do_goes_the_long_way(
    tmp_path: Path, no_spark: None, monkeypatch: pytest.MonkeyPatch, change: dict[str, Any]
) -> None:
    made = place(tmp_path / "p", 2)
    began: list[str] = []
    usual = pipeline.Line._sync
    monkeypatch.setattr(pipeline.Line, "_sync", lambda line, model: (began.append(model.name), usual(line, model))[1])
    execution.run_here(made, [], {})
    assert began == []
    Sync.objects.filter(workspace=made, name="sync.s1").update(**change)
    walk = execution.run_here(made, [], {})
    assert began == ["sync.s1"] and {r.status for r in walk.runs.values()} == {"completed"}
    execution.run_here(made, [], {"limit": 3})
    assert began[1:] == ["sync.s0", "sync.s1"]
