"""Models that do not read one another are built at the same time, each with a session, a run's id and an end of its
own."""

from __future__ import annotations

import dataclasses
import json
import os
import subprocess
import sys
import threading
import time
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
from django.conf import settings
from django.db import connection

from ondatra_web.models import ModelState, Run, Workspace
from ondatra_web.runs import execution, report
from ondatra_web.runs.lake_tables import TableLocks
from ondatra_web.runs.walk import prepare
from runtime.lake.table import path_of
from runtime.pipeline.crew import Builder, Crew
from tests.web.filled import workspace

pytestmark = [pytest.mark.django_db(transaction=True, serialized_rollback=True), pytest.mark.spark]
PUSH = (
    'API = {"push": {"batch_mode": "atomic"}, "destination": {"type": "Nowhere", "object": "Things"}}\n\ndef '
    "push(rows):\n    return None\n"
)
SLOW = "SELECT {n} AS id, max(hash(a.id, b.id)) AS h FROM range(0, 1500, 1, 1) a CROSS JOIN range(1500) b"


@pytest.fixture
def project(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Workspace:
    places = {name: (tmp_path / name).as_uri() for name in ("lake_url", "staging_url", "tracking_url")}
    monkeypatch.setattr(settings, "ONDATRA", dataclasses.replace(settings.ONDATRA, builds=2, **places))
    (tmp_path / "lib").mkdir()
    (tmp_path / "lib/nothing.star").write_text(PUSH)
    made = workspace("beside")
    made.project_dir = str(tmp_path)
    made.save()
    return made


def model(project: Workspace, name: str, sql: str, sink: bool = True) -> None:
    file = Path(project.project_dir) / f"models/{name.replace('.', '/')}.sql"
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(
        "-- @kind: merge\n-- @unique_key: id\n-- @dialect: spark\n" + "-- @sink: nothing\n" * sink + sql + "\n"
    )


def times(run: Run) -> tuple[datetime, datetime]:
    """When the build began and ended."""
    return datetime.fromisoformat(run.step_times["build"]), datetime.fromisoformat(run.step_times["changes"])


def test_slow_models_overlap_and_a_failure_skips_only_what_reads_it(project: Workspace) -> None:
    model(project, "a.one", SLOW.format(n=1))
    model(project, "a.two", SLOW.format(n=2))
    model(project, "b.base", "SELECT id, id AS n FROM range(3)", sink=False)
    model(project, "b.bad", "SELECT id, 1 div (n - 1) AS n FROM b.base", sink=False)
    model(project, "c.of_bad", "SELECT * FROM b.bad")
    model(project, "c.of_one", "SELECT one.id, h, n FROM a.one JOIN b.base ON base.id = one.id")

    walk = execution.run_here(project, [], {})

    said = report.of_walk(walk)
    assert [m["model"] for m in said["models"]] == list(walk.project.order) and [
        s["sync"] for s in said["syncs"]
    ] == list(walk.runs)
    actions = {m["model"]: m["action"] for m in said["models"]}
    assert actions == {**dict.fromkeys(walk.project.order, "built"), "b.bad": "failed", "c.of_bad": "skipped"}
    names = ["a.one", "a.two", "c.of_one"]
    assert [(s["sync"], s["status"], s["counts"]["succeeded"]) for s in said["syncs"]] == [
        (name, "completed", 1) for name in names
    ]
    one, two, of_one = (times(Run.objects.get(sync__name=name)) for name in names)
    assert one[0] < two[1] and two[0] < one[1], "one after the other"
    assert one[0] <= of_one[0] < one[1] <= of_one[1], "its run takes as long as what is built for it"
    assert walk.runs["c.of_one"].started_at == of_one[0]
    for name, run in walk.runs.items():  # each commit carries the id of its own run, and the mark is its version
        log = Path(path_of(settings.ONDATRA.lake_url)) / str(project.pk) / name.replace(".", "/") / "_delta_log"
        commits = [
            json.loads(line)["commitInfo"]
            for file in sorted(log.glob("*.json"))
            for line in file.read_text().splitlines()
            if "commitInfo" in line
        ]
        assert {c["userMetadata"] for c in commits} == {json.dumps({"run": run.pk})}
        assert (
            run.sync.__class__.objects.get(name=name).mark
            == ModelState.objects.get(name=name).table_version
            == len(commits) - 1
        )

    again = execution.run_here(project, [], {})
    assert {n: r.action for n, r in again.results.items()} == {
        **dict.fromkeys(walk.project.order, "unchanged"),
        "b.bad": "failed",
        "c.of_bad": "skipped",
    }


def test_a_table_that_another_process_writes_is_waited_for(project: Workspace) -> None:
    model(project, "a.base", "SELECT 1 AS id", sink=False)
    model(project, "a.other", "SELECT 1 AS id", sink=False)
    other = TableLocks(project.pk)
    assert other.take("a.base") and other.take("a.base") and not TableLocks(project.pk).take("a.base")

    def free_once_the_other_is_built() -> None:
        end = time.monotonic() + 60
        while not ModelState.objects.filter(name="a.other", last_run_at__isnull=False) and time.monotonic() < end:
            time.sleep(0.05)
        other.close()
        connection.close()

    threading.Thread(target=free_once_the_other_is_built).start()
    walk = prepare(project)
    execution.run_line(walk, {}, trigger="command")

    assert {n: r.action for n, r in walk.results.items()} == {"a.base": "built", "a.other": "built"}
    assert ModelState.objects.get(name="a.other").last_run_at < ModelState.objects.get(name="a.base").last_run_at
    assert TableLocks(project.pk).take("a.base"), "the walk keeps its lock"


def test_the_locks_of_tables_hold_in_postgresql(postgres_url: str, tmp_path: Path) -> None:
    code = (
        "import django; django.setup(); from ondatra_web.runs.lake_tables import TableLocks; a, b = TableLocks(1), "
        "TableLocks(1); "
        "print(a.take('m'), b.take('m'), b.take('n'), a.free('m'), b.take('m'), TableLocks(2).take('m'), b.close(), "
        "a.take('m'), a.take('n'))"
    )
    env = {
        **os.environ,
        "DATABASE_URL": postgres_url,
        "ONDATRA_DATA_DIR": str(tmp_path),
        "DJANGO_SETTINGS_MODULE": "ondatra_web.settings",
    }
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=Path(__file__).parents[2],
        env=env,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stdout.split() == ["True", "False", "True", "None", "True", "True", "None", "True", "True"], done.stderr


def test_a_walk_that_breaks_off_ends_the_jobs_of_the_others(spark: Any) -> None:
    began, ended = threading.Event(), threading.Event()

    def endless(builder: Builder) -> None:
        try:
            builder.spark
            began.set()
            builder.spark.sql(
                "SELECT max(hash(a.id, b.id)) FROM range(10000000) a CROSS JOIN range(10000000) b"
            ).collect()
        finally:
            ended.set()

    with pytest.raises(KeyboardInterrupt), Crew(2, spark.newSession) as crew:
        crew.start("endless", "test-endless", endless)
        assert began.wait(60)
        raise KeyboardInterrupt
    assert ended.wait(10)


def test_sessions_of_builders_know_nothing_of_each_other(spark: Any) -> None:
    both = threading.Barrier(2, timeout=60)

    def look(builder: Builder) -> tuple[str, str, int]:
        me = threading.current_thread().name
        builder.spark.conf.set("spark.databricks.delta.commitInfo.userMetadata", me)
        builder.spark.range(len(me)).createOrReplaceTempView("mine")
        both.wait()
        active = builder.spark._jvm.org.apache.spark.sql.classic.SparkSession.active()
        return (
            me,
            str(active.conf().get("spark.databricks.delta.commitInfo.userMetadata")),
            builder.spark.table("mine").count() - len(me),
        )

    with Crew(2, spark.newSession) as crew:
        for name in "xy":
            crew.start(name, name, look)
        seen = [crew.wait().value for _ in "xy"]
    assert sorted(seen) == [("builder-0", "builder-0", 0), ("builder-1", "builder-1", 0)]
