"""How long small runs wait for push workers beside one large run. Usage: python bench/fair.py [rows of the large one,
10000000] [small runs, 50]

Two push processes of two threads each take messages from Redis, as `bin/up` starts them. Fifty syncs of a hundred rows
are sent alone, then again three seconds after the large one began. Built and staged is before the clock starts.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from contextlib import ExitStack
from pathlib import Path
from statistics import median
from typing import Any

from _delivery import served
from _product import ROOT, install, workspace

sys.path[:0] = [str(ROOT / "tests"), str(ROOT / "tests" / "runtime")]
PUSH = """def push(rows):
    http.post("/rows", json = rows)
    return {"%d:%s" % (row["__ondatra_rowid"], row["__ondatra_change_type"]): "ok" for row in rows}
"""
CALLS, FEW = 8, 100
MODEL = "-- @kind: append\n-- @sink: out\nSELECT i AS id, 'name ' || i AS name FROM read_parquet('{}.parquet')\n"


def project(folder: Path, url: str, names: list[str]) -> None:
    for name in ("models/sync", "lib"):
        (folder / name).mkdir(parents=True)
    api = {"base_url": url, "api_calls": "failures", "push": {"batch_size": 1000, "max_concurrent": CALLS}}
    (folder / "lib/out.star").write_text(f"API = {api!r}\n{PUSH}")
    for name in names:
        (folder / f"models/sync/{name}.sql").write_text(MODEL.format(name))


def source(folder: Path, name: str, begin: int, rows: int) -> None:
    import duckdb

    duckdb.sql(f"COPY (SELECT i FROM range({begin}, {begin + rows}) t(i)) TO '{folder}/{name}.parquet'")


def staged(place: Any, names: list[str]) -> list[Any]:
    """The runs, as a pipeline worker leaves them."""
    from ondatra_web.models import Run
    from ondatra_web.runs import execution
    from ondatra_web.runs.walk import prepare

    walk = prepare(place, [f"sync.{name}" for name in names])
    execution.run_line(walk, {}, trigger="command")
    Run.objects.filter(pk__in=[run.pk for run in walk.runs.values()]).update(owner=None)
    return list(walk.runs.values())


def waited(runs: list[Any]) -> list[float]:
    """Seconds from the message to the end of each."""
    from django.utils import timezone

    from ondatra_web.models import Run
    from ondatra_web.runs import relay

    begun = {}
    for run in runs:
        begun[run.pk] = timezone.now()
        relay._wake(run, CALLS)
    while Run.objects.filter(pk__in=begun, ended_at=None).exists():
        time.sleep(0.2)
    found = Run.objects.filter(pk__in=begun)
    assert {run.status for run in found} == {"completed"}, {run.error for run in found}
    return sorted((run.ended_at - begun[run.pk]).total_seconds() for run in found)


def main(rows: int, small: int) -> None:
    import services

    with ExitStack() as stack:
        url = stack.enter_context(served())
        os.environ["DATABASE_URL"] = stack.enter_context(services.postgres())
        folder = install("fair")
        place, names = folder / "project", [f"s{n:02}" for n in range(small)]
        project(place, url, [*names, "large"])
        for name in [*names, "large"]:
            source(place, name, 0, rows if name == "large" else FEW)
        bench = workspace(place)
        from django.conf import settings

        redis = stack.enter_context(services.redis(folder / "redis"))
        os.environ["REDIS_URL"] = redis
        object.__setattr__(settings.ONDATRA, "redis_url", redis)
        first, large = staged(bench, names), staged(bench, ["large"])
        worker = [sys.executable, "-m", "dramatiq", "ondatra_web.jobs", "-Q", "push", "-p", "2", "-t", "2"]
        log = stack.enter_context((folder / "push.log").open("wb"))
        process = subprocess.Popen(worker, cwd=ROOT, env=os.environ, stdout=log, stderr=log)
        stack.callback(process.wait)
        stack.callback(process.terminate)

        from ondatra_web import workers
        from ondatra_web.runs import relay

        while workers.alive("push") < 2:
            time.sleep(0.2)
        alone = waited(first)
        for name in names:
            source(place, name, FEW, FEW)
        second = staged(bench, names)
        relay._wake(large[0], CALLS)
        time.sleep(3)
        beside = waited(second)
        large[0].refresh_from_db()
        print(f"when the small ones had ended, the large run was {large[0].status}")
        for what, told in (("alone", alone), ("beside it", beside)):
            print(f"{what}: median {median(told):.1f} s, longest {told[-1]:.1f} s")
        print(f"fair: ratio {beside[-1] / alone[-1]:.2f} (beside {beside[-1]:.1f} s, alone {alone[-1]:.1f} s)")


if __name__ == "__main__":
    given = [int(a) for a in sys.argv[1:]]
    main(*(given + [10_000_000, 50][len(given) :]))
