"""A database that another process holds for a moment ends no run."""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from django.db import OperationalError, connection, transaction

from ondatra_web import workers
from ondatra_web.models import RateLimitHit, Run
from ondatra_web.runs import beginning, ending, rate_limits, relay
from tests.web.filled import a_run, a_sync, workspace

pytestmark = pytest.mark.django_db(transaction=True, serialized_rollback=True)


@contextmanager
def held(seconds: float) -> Iterator[None]:
    """Another process writes for so long; ours does not wait for it, so that it meets a locked database."""
    connection.cursor().execute("PRAGMA busy_timeout = 0")
    other = sqlite3.connect(connection.settings_dict["NAME"], isolation_level=None, check_same_thread=False)
    other.execute("BEGIN IMMEDIATE")
    over = threading.Timer(seconds, lambda: other.execute("ROLLBACK"))
    over.start()
    try:
        yield
    finally:
        over.join()
        other.close()


def test_the_end_of_a_run_whose_project_cannot_be_read_waits_for_the_database(monkeypatch: pytest.MonkeyPatch) -> None:
    run = a_run(a_sync(workspace("elsewhere")), "working", staged=True)
    workers.me("push")
    stop = ending.stop
    holds: list[Any] = []

    def stop_and_hold(*args: Any) -> None:
        stop(*args)
        holds.append(held(0.3))
        holds[0].__enter__()

    monkeypatch.setattr(ending, "stop", stop_and_hold)

    relay.push(run.pk)

    holds[0].__exit__(None, None, None)
    ended = Run.objects.get(pk=run.pk)
    assert ended.status == "failed"
    assert ended.error.startswith("the project folder /nowhere of workspace elsewhere does not exist")


def test_a_run_begins_once_though_the_database_is_held_when_it_does() -> None:
    sync = a_sync(workspace("elsewhere"))
    workers.me()

    with held(0.3):
        run = beginning.take(sync, None, trigger="command", options={})

    assert [(r.pk, r.status) for r in Run.objects.filter(sync=sync)] == [(run.pk, "working")]


def test_what_a_rate_limit_counts_waits_for_the_database() -> None:
    with held(0.3):
        rate_limits.DatabaseLimiter("x:").take("budget", 1, 60, lambda: False)

    assert RateLimitHit.objects.filter(key="x:budget").count() == 1


def test_a_run_whose_begin_was_committed_and_not_heard_of_is_the_same_run(monkeypatch: pytest.MonkeyPatch) -> None:
    sync = a_sync(workspace("elsewhere"))
    create = Run.objects.create
    breaks = iter([OperationalError("server closed the connection unexpectedly")])

    def committed_then_broken(**told: Any) -> Run:
        made = create(**told)
        transaction.on_commit(lambda: _raise(next(breaks, None)))
        return made

    monkeypatch.setattr(Run.objects, "create", committed_then_broken)

    run = beginning.take(sync, None, trigger="command", options={})

    assert [(r.pk, r.status) for r in Run.objects.filter(sync=sync)] == [(run.pk, "working")]


def _raise(error: Exception | None) -> None:
    if error is not None:
        raise error
