"""What the database side takes with many syncs and runs. Usage: python bench/scale.py [syncs, 1000] [runs, 100000]
[workers, 20]

Over PostgreSQL and Redis of its own: a round of the scheduler with nothing due and with a hundred schedules of the same
minute, a claim, the pages, a round of retention; then workers, each a process, on one rate limit. Each time is the
median of five, but for rounds that change something.
"""

from __future__ import annotations

import datetime as dt
import os
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
from _product import ROOT, install, workspace

sys.path[:0] = [str(ROOT / "tests"), str(ROOT / "tests" / "runtime")]
DUE, CHUNKS, EXPIRED = 100, 200, 1_000
REQUESTS, SECONDS, LASTS = 200, 1.0, 10.0
WORKER = """
import sys, time
from runtime.push.http.rate_limits import RedisLimiter
limiter, end, taken = RedisLimiter(sys.argv[1], "1:"), time.time() + float(sys.argv[4]), []
while time.time() < end:
    limiter.take("budget", int(sys.argv[2]), float(sys.argv[3]), lambda: False)
    taken.append(time.time())
print(*taken)
"""


def fill(place: Any, syncs: int, runs: int) -> None:
    """Syncs with as many runs each as there are, and one at work with chunks that wait."""
    from django.conf import settings
    from django.utils import timezone

    from ondatra_web.models import Chunk, Delivery, Run, Sync
    from runtime.staging import states

    untried = states.pack(np.full(9, states.UNTRIED, np.uint8))
    now = timezone.now()
    made = Sync.objects.bulk_create(
        Sync(workspace=place, name=f"sync.s{n:05}", kind="merge", key=["id"], function="f", schedule="every 1d")
        for n in range(syncs)
    )
    Sync.objects.update(next_run_at=now + dt.timedelta(hours=12))
    each, store = runs // syncs, settings.ONDATRA.tracking_url
    counts = {"source_count": 100, "unchanged": 99, "changed": 1, "planned": 1, "succeeded": 1}
    for number in range(each):
        ended = now - dt.timedelta(minutes=17 * (each - number))
        Run.objects.bulk_create(
            Run(
                sync=sync, status="completed", staged=True, **counts, trigger="schedule", started_at=ended,
                ended_at=ended, judged=True, store_url=store,
            )
            for sync in made
        )  # fmt: skip
    Run.objects.update(created_at=now - dt.timedelta(days=3))
    working = Run.objects.create(sync=made[0], status="working", staged=True, started_at=now)
    chunks = Chunk.objects.bulk_create(
        Chunk(sync=made[0], staged_by=working, url=f"file:///{n}", rows=9, records=9, states=untried)
        for n in range(CHUNKS)
    )
    Delivery.objects.bulk_create(
        Delivery(run=working, chunk=c, ordinal=n, rows=9, records=9) for n, c in enumerate(chunks)
    )


def timed(what: str, act: Callable[[], Any], times: int = 5) -> Any:
    taken = []
    for _ in range(times):
        begun = time.perf_counter()
        said = act()
        taken.append(time.perf_counter() - begun)
    print(f"{what}: {1000 * median(taken):.0f} ms", flush=True)
    return said


def rounds(place: Any) -> None:
    from django.utils import timezone

    from ondatra_web.clock import scheduling
    from ondatra_web.models import Run, Sync
    from ondatra_web.tracking import retention

    timed("scheduler round, nothing due", scheduling.start_scheduled)
    due = list(Sync.objects.exclude(run__status="working").values_list("pk", flat=True)[:DUE])
    Sync.objects.filter(pk__in=due).update(next_run_at=timezone.now())
    timed(f"scheduler round, {DUE} schedules of one minute", scheduling.start_scheduled, 1)
    scheduling.start_scheduled()
    queued = list(Run.objects.filter(status="queued").values_list("sync_id", flat=True))
    assert sorted(queued) == sorted(due), "each is queued once, and none is lost"
    timed("a look for dead runs", scheduling.resume_dead)

    old = Run.objects.filter(status="completed").order_by("pk").values_list("pk", flat=True)[:EXPIRED]
    Run.objects.filter(pk__in=list(old)).update(created_at=timezone.now() - dt.timedelta(days=30))
    gone = timed("a round of retention", retention.expire, 1)
    print(f"  of {gone:,} runs")
    assert gone > 0


def claims_and_pages(place: Any) -> None:
    from django.contrib.auth.models import User
    from django.test import Client

    from ondatra_web.models import Membership, Run
    from ondatra_web.runs import claims

    run = Run.objects.get(status="working")
    timed("a claim", lambda: claims.take(run, 1, 1000))
    timed("whether others wait", lambda: claims.others_wait(run))
    user = User.objects.create_user("alice")
    Membership.objects.create(user=user, organization=place.organization, role="admin")
    client = Client(headers={"host": "localhost"})
    client.force_login(user)
    some = Run.objects.filter(status="completed").latest("pk")
    pages = {"all syncs": "/", "a sync": f"/syncs/{some.sync_id}/", "a run": f"/runs/{some.pk}/"}
    for name, path in pages.items():
        assert timed(f"page of {name}", lambda path=path: client.get(path)).status_code == 200


def budget(url: str, workers: int) -> None:
    """Requests that workers on one budget may send: at most so many in any window, and how near to that."""
    told = [sys.executable, "-c", WORKER, url, str(REQUESTS), str(SECONDS), str(LASTS)]
    env = {**os.environ, "PYTHONPATH": str(ROOT)}
    running = [subprocess.Popen(told, stdout=subprocess.PIPE, text=True, env=env) for _ in range(workers)]
    taken = sorted(float(t) for process in running for t in process.communicate()[0].split())
    most = max(sum(1 for u in taken[i : i + REQUESTS + 2] if u < t + SECONDS * 0.98) for i, t in enumerate(taken))
    rate = len(taken) / (taken[-1] - taken[0]) if len(taken) > 1 else 0
    print(f"{workers} workers on {REQUESTS} requests a second: {rate:.0f} a second, at most {most} in one window")
    assert most <= REQUESTS + 1


def main(syncs: int, runs: int, workers: int) -> None:
    import services

    with ExitStack() as stack:
        os.environ["DATABASE_URL"] = stack.enter_context(services.postgres())
        folder = install("scale")
        os.environ["REDIS_URL"] = url = stack.enter_context(services.redis(Path(folder, "redis")))
        (folder / "project" / "models").mkdir(parents=True)
        (folder / "project" / "lib").mkdir()
        place = workspace(folder / "project")
        begun = time.perf_counter()
        fill(place, syncs, runs)
        from django.db import connection

        with connection.cursor() as cursor:
            cursor.execute("VACUUM ANALYZE")
        print(f"{syncs:,} syncs, {runs:,} runs in PostgreSQL ({time.perf_counter() - begun:.0f} s to make)")
        claims_and_pages(place)
        rounds(place)
        budget(url, workers)


if __name__ == "__main__":
    given = [int(a) for a in sys.argv[1:]]
    main(*(given + [1_000, 100_000, 20][len(given) :]))
