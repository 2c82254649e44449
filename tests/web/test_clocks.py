"""Clocks that jump: nobody living is taken for dead, nobody dead for living, no schedule and no budget waits an
hour."""

from __future__ import annotations

import fcntl
import socket
import time
from datetime import timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from django.utils import timezone
from redis import Redis

from ondatra_web import workers
from ondatra_web.clock import scheduling, throttle
from ondatra_web.models import Delivery, Run, Sync, Worker
from ondatra_web.runs import rate_limits
from runtime.push.http.rate_limits import RedisLimiter
from tests.web.filled import a_run, a_sync, workspace

pytestmark = pytest.mark.django_db


class Clock:
    """The time as some modules see it. `passes` moves both clocks, `jumps` only the one on the wall."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, *modules: Any) -> None:
        self.passed, self.jumped = 0.0, 0.0
        for module in modules:
            if hasattr(module, "time"):
                monkeypatch.setattr(
                    module,
                    "time",
                    SimpleNamespace(
                        monotonic=lambda: time.monotonic() + self.passed,
                        sleep=time.sleep,
                        time=lambda: time.time() + self.passed + self.jumped,
                    ),
                )
            if hasattr(module, "timezone"):
                monkeypatch.setattr(module, "timezone", SimpleNamespace(now=self.now))

    def now(self) -> Any:
        return timezone.now() + timedelta(seconds=self.passed + self.jumped)

    def passes(self, seconds: float) -> None:
        self.passed += seconds

    def jumps(self, seconds: float) -> None:
        self.jumped += seconds


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    monkeypatch.setattr(workers, "_seen", {})
    scheduling.messages_sent.forget()
    return Clock(monkeypatch, workers, scheduling, throttle, rate_limits)


def beats(worker: Worker, clock: Clock) -> Worker:
    worker.heartbeat_at = clock.now()
    worker.save()
    return worker


@pytest.mark.parametrize("jump", [3600, -3600])
def test_a_worker_elsewhere_is_dead_when_it_was_silent_for_a_minute_whatever_the_clock_says(
    clock: Clock, jump: float
) -> None:
    worker = beats(Worker(kind="push", host="elsewhere", pid=1), clock)
    assert not workers.is_dead(worker)
    clock.jumps(jump)
    for _ in range(5):  # it lives on, by the new clock
        clock.passes(9)
        assert not workers.is_dead(worker)
        clock.passes(1)
        beats(worker, clock)
    clock.jumps(-jump)
    clock.passes(5)
    assert not workers.is_dead(worker)  # seen for the last time
    clock.passes(55)
    assert workers.is_dead(worker) is (jump < 0)
    clock.passes(6)
    assert workers.is_dead(worker)


def test_a_stopped_process_of_this_machine_is_known_by_the_clock_that_cannot_be_set(
    clock: Clock, tmp_path: Path
) -> None:
    worker = Worker.objects.create(kind="push", host=socket.gethostname(), pid=1, lock=str(tmp_path / "lock"))
    with open(worker.lock, "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        workers._tell_time(lock)
        for jump in (3600, -7200):
            clock.jumps(jump)
            assert not workers.is_dead(worker)
        clock.passes(59)
        assert not workers.is_dead(worker)
        clock.passes(2)
        assert workers.is_dead(worker)
        workers._tell_time(lock)  # it was woken up: `time` here is the real one, so pass no time
        clock.passed = 0
        assert not workers.is_dead(worker)
    assert workers.is_dead(worker)  # the lock is free


def test_a_schedule_is_made_up_for_once_after_a_jump_forward_and_waits_no_hour_after_one_back(clock: Clock) -> None:
    sync = a_sync(workspace(), schedule="every 15m")
    started = lambda: Run.objects.filter(sync=sync).count()
    scheduling.start_scheduled()
    clock.jumps(3600)
    scheduling.start_scheduled()
    scheduling.start_scheduled()
    assert started() == 1
    Run.objects.all().delete()
    clock.jumps(-3600)
    scheduling.start_scheduled()
    waits = Sync.objects.get(pk=sync.pk).next_run_at - clock.now()  # type: ignore[operator]
    assert started() == 0 and timedelta() < waits <= timedelta(minutes=15)
    clock.passes(15 * 60)
    scheduling.start_scheduled()
    assert started() == 1


def test_the_scheduler_looks_again_when_the_next_time_comes_and_not_all_the_time_for_one_it_cannot_begin(
    clock: Clock,
) -> None:
    sync = a_sync(workspace(), schedule="every 15m")
    pauses = []
    for seconds in (None, 600, 2, -0.2, -30):
        at = None if seconds is None else clock.now() + timedelta(seconds=seconds)
        Sync.objects.filter(pk=sync.pk).update(next_run_at=at)
        pauses.append(round(scheduling.pause(), 1))
    assert pauses == [5.0, 5.0, 2.0, 0.1, 5.0]


def test_times_that_come_while_a_run_works_are_skipped_and_seen_once(clock: Clock) -> None:
    sync = a_sync(workspace(), schedule="every 15m")
    scheduling.start_scheduled()
    working = a_run(sync, "working")
    for _ in range(3):
        clock.passes(15 * 60)
        scheduling.start_scheduled()

    (skipped,) = Run.objects.filter(sync=sync).exclude(pk=working.pk)
    assert (skipped.status, skipped.trigger, skipped.error) == (
        "skipped",
        "schedule",
        f"its time came while run {working.pk} was working: it was skipped, and the next time counts",
    )
    Run.objects.filter(pk=working.pk).update(status="completed")
    clock.passes(15 * 60)
    scheduling.start_scheduled()
    assert Run.objects.filter(sync=sync, status="queued", trigger="schedule").count() == 1


def test_a_message_that_was_lost_is_sent_again_though_the_clock_was_set_back(clock: Clock, stub_broker: Any) -> None:
    run = a_run(a_sync(workspace()), "queued", ago=timedelta())
    queued = lambda: stub_broker.queues["pipeline"].qsize() if "pipeline" in stub_broker.queues else 0
    scheduling.resume_dead()
    assert queued() == 0
    clock.jumps(-3600)
    scheduling.resume_dead()
    scheduling.resume_dead()
    assert (run.status, queued()) == ("queued", 1)
    clock.passes(21)
    scheduling.resume_dead()
    assert queued() == 2


def test_a_budget_waits_no_hour_after_a_jump_back(clock: Clock) -> None:
    limiter = rate_limits.DatabaseLimiter("x:")
    limiter.take("a", 1, 0.2, lambda: False)
    limiter.pause("b", clock.now().timestamp() + 0.2)
    assert limiter._try("x:b", 1, 0.2) > 0
    clock.jumps(-3600)
    began = time.monotonic()
    limiter.take("a", 1, 0.2, lambda: False)
    limiter.take("b", 1, 0.2, lambda: False)
    assert time.monotonic() - began < 20


def test_a_budget_in_redis_waits_no_hour_after_a_jump_back(redis_url: str) -> None:
    limiter, redis = RedisLimiter(redis_url, "jump:"), Redis.from_url(redis_url)
    name = limiter._name("a")
    ahead = time.time() * 1000 + 3_600_000
    redis.zadd(name, {"hit": ahead})  # as if Redis had taken them before its clock was set back
    redis.set(name + ":pause", 300, px=3_600_000)
    began = time.monotonic()
    limiter.take("a", 1, 60, lambda: False)
    assert 0.25 < time.monotonic() - began < 20


def test_a_run_whose_worker_died_is_resumed_though_other_workers_live(clock: Clock, stub_broker: Any) -> None:
    dead = Worker.objects.create(kind="push", host="here", pid=1, ended_at=timezone.now())
    living = beats(Worker(kind="push", host="elsewhere", pid=2), clock)
    run = a_run(a_sync(workspace()), "working", staged=True)
    chunk = run.sync.chunk_set.create(url="file:///chunk", rows=1, records=1, states=b"")
    delivery = Delivery.objects.create(
        run=run, chunk=chunk, ordinal=0, rows=1, records=1, status="claimed", owner=living
    )
    queued = lambda: stub_broker.queues["push"].qsize() if "push" in stub_broker.queues else 0
    scheduling.resume_dead()
    assert queued() == 0
    Delivery.objects.filter(pk=delivery.pk).update(owner=dead)
    scheduling.resume_dead()
    assert queued() == 1
