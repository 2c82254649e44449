"""A run is shared by the push workers that live, and a long one lets others go first."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import dramatiq
import pytest
from django.utils import timezone
from seaweed import BUCKET, S3Server

from ondatra_web import workers
from ondatra_web.models import Delivery, Run, Worker
from ondatra_web.presence import Presence
from ondatra_web.runs import claims, relay
from ondatra_web.tracking import exporting
from tests.web.filled import a_run, a_sync, workspace
from tests.web.test_large_runs import a_delivery

pytestmark = pytest.mark.django_db


def living(number: int, kind: str = "push") -> None:
    for n in range(number):
        Worker.objects.create(kind=kind, host=f"{kind}-{n}", pid=1)


@pytest.fixture
def woken(monkeypatch: pytest.MonkeyPatch) -> list[tuple[Any, ...]]:
    """What is sent to workers."""
    messages: list[tuple[Any, ...]] = []
    monkeypatch.setattr(relay.queue, "send", lambda *told, queue="": messages.append(told))
    return messages


def waiting(name: str, chunks: int) -> Run:
    run = a_run(a_sync(workspace(), name), "working", staged=True)
    for ordinal in range(chunks):
        a_delivery(run, ordinal)
    return run


@pytest.mark.parametrize(
    ("alive", "chunks", "calls", "messages"),
    [(3, 9, 20, [6, 6, 6]), (9, 2, 20, [10, 10]), (9, 9, 4, [1, 1, 1, 1]), (0, 9, 4, [4]), (3, 0, 4, [4])],
)
def test_a_run_wakes_as_many_workers_as_live_and_can_work_side_by_side(
    woken: list[tuple[Any, ...]], alive: int, chunks: int, calls: int, messages: list[int]
) -> None:
    living(alive)
    living(2, "pipeline")
    run = waiting("sync.large", chunks)

    relay._wake(run, calls)

    assert woken == [("push", run.pk, slots) for slots in messages]


def test_a_worker_that_said_nothing_for_a_minute_is_not_counted(woken: list[tuple[Any, ...]]) -> None:
    living(3)
    Worker.objects.filter(host="push-0").update(heartbeat_at=timezone.now() - timedelta(minutes=2))
    Worker.objects.filter(host="push-1").update(ended_at=timezone.now())
    run = waiting("sync.large", 9)

    relay._wake(run, 6)

    assert woken == [("push", run.pk, 6)]


def test_a_health_check_asks_for_the_workers_of_its_own_machine() -> None:
    living(2)
    Worker.objects.filter(host="push-0").update(heartbeat_at=timezone.now() - timedelta(minutes=2))

    assert [workers.alive("push", host) for host in ("push-0", "push-1", "elsewhere", None)] == [0, 1, 0, 1]


def test_a_worker_takes_no_more_messages_than_it_has_threads(stub_broker: Any) -> None:
    worker = dramatiq.Worker(stub_broker, worker_threads=3)
    Presence().before_worker_boot(stub_broker, worker)

    assert worker.queue_prefetch == 3


def test_a_run_gives_way_to_one_that_nobody_works_on_and_to_no_other() -> None:
    large, small = waiting("sync.large", 3), waiting("sync.small", 1)
    Delivery.objects.filter(run=large, ordinal=0).update(status="claimed")
    assert (claims.others_wait(large), claims.others_wait(small)) == (True, False)

    Delivery.objects.filter(run=small).update(status="claimed")
    assert not claims.others_wait(large)
    Delivery.objects.filter(run=small).update(status="closed")
    assert not claims.others_wait(large)


def test_where_machines_share_a_bucket_an_export_is_fetched_from_it(
    s3: S3Server, settings: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    run = a_run(a_sync(workspace()), "completed")
    for name, value in s3.env.items():
        monkeypatch.setenv(name, value)
    settings.ONDATRA = replace(settings.ONDATRA, staging_url=f"s3://{BUCKET}/staging", data_dir=tmp_path / "worker")
    made = run.export_set.create(format="csv", status="done")
    exporting.place(made).parent.mkdir(parents=True)
    exporting.place(made).write_bytes(b"id\r\n1\r\n")

    exporting._handed_over(made)
    settings.ONDATRA = replace(settings.ONDATRA, data_dir=tmp_path / "web")
    found = exporting.fetched(made)
    assert found is not None and found.read_bytes() == b"id\r\n1\r\n"

    exporting.remove(made)
    assert exporting.fetched(made) is None
