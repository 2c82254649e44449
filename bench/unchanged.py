"""Wall time of `run` over many models of which nothing changed. Usage: python bench/unchanged.py [models, default 300]

A third reads files, a third reads those, a third are syncs that read these. What a first run would have noted is
written into the database, so that no table has to be built; without Java on its way, the measured command could not
start Spark if it wanted to.
"""

from __future__ import annotations

import json
import os
import resource
import shutil
import subprocess
import sys
import time
from pathlib import Path
from statistics import median

from _product import NOTHING, ROOT, install, workspace

RUNS = 5


def project(folder: Path, models: int) -> None:
    for name in ("models/raw", "models/mart", "models/sync", "lib"):
        (folder / name).mkdir(parents=True)
    (folder / "lib/nothing.star").write_text(NOTHING)
    for i in range(models // 3):
        (folder / f"rows{i}.csv").write_text("id,n,seen\n1,a,2026-01-15\n")
        (folder / f"models/raw/r{i}.sql").write_text(f"SELECT id, n, seen FROM read_csv('rows{i}.csv')\n")
        (folder / f"models/mart/m{i}.sql").write_text(
            f"SELECT id, upper(n) AS n, count(*) AS times, max(seen) AS newest FROM raw.r{i} WHERE n IS NOT NULL "
            f"GROUP BY id, upper(n)\n"
        )
        (folder / f"models/sync/s{i}.sql").write_text(
            f"-- @kind: merge\n-- @unique_key: id\n-- @sink: nothing\nSELECT id, n, times FROM mart.m{i}\n"
        )
    time.sleep(2.1)  # a file modified under 2 s ago counts as changed


def commit(workspace_id: int, model: str) -> str:
    """The log of a table, of which a run that has nothing to do looks at no more; its commit's id."""
    from django.conf import settings

    lake = Path(settings.ONDATRA.lake_url.removeprefix("file://"))
    log = lake / str(workspace_id) / model.replace(".", "/") / "_delta_log"
    log.mkdir(parents=True)
    said = {"commitInfo": {"timestamp": 1_700_000_000_000, "txnId": f"commit of {model}"}}
    (log / f"{1:020}.json").write_text(json.dumps(said))
    return f"commit of {model}"


def main(models: int) -> None:
    folder = install("unchanged")
    project(folder / "project", models)
    bench = workspace(folder / "project")

    from ondatra_web.models import ModelState, Sync
    from ondatra_web.runs.walk import prepare
    from runtime.pipeline import fingerprint

    walk = prepare(bench)
    for name in walk.project.order:
        translated, model = walk.project.translated[name], walk.project.models[name]
        print_ = fingerprint.fingerprint(model, translated, {i: f"commit of {i}" for i in walk.project.inputs[name]})
        ModelState.objects.create(
            workspace=bench,
            name=name,
            kind=model.kind,
            table_version=1,
            table_commit=commit(bench.pk, name),
            place=name.replace(".", "/"),
            fingerprint=print_,
            rows=1,
            columns=[[c.name, c.duckdb_type, c.spark_type] for c in translated.columns or ()],
        )
    for sync in Sync.objects.all():
        Sync.objects.filter(pk=sync.pk).update(mark=1, mark_commit=f"commit of {sync.name}", source_rows=1)
    command = [sys.executable, "manage.py", "run", "--workspace", "bench", "--json"]
    took, worked = [], []
    for _ in range(RUNS):
        began, used = time.perf_counter(), sum(resource.getrusage(resource.RUSAGE_CHILDREN)[:2])
        said = json.loads(
            subprocess.run(
                command, cwd=ROOT, env={**os.environ, "JAVA_HOME": "/nowhere"}, check=True, capture_output=True
            ).stdout
        )
        took.append(time.perf_counter() - began)
        worked.append(sum(resource.getrusage(resource.RUSAGE_CHILDREN)[:2]) - used)
        assert {m["action"] for m in said["models"]} == {"unchanged"} and len(said["models"]) == len(walk.project.order)
    syncs = Sync.objects.count()
    print(
        f"unchanged: {median(took):.2f} s wall ({min(took):.2f} to {max(took):.2f}), {median(worked):.2f} s of it a "
        f"processor's, "
        f"for {len(walk.project.order)} models, {syncs} of them syncs"
    )
    shutil.rmtree(folder)


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 300)
