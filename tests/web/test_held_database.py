"""A database that another process holds for a moment ends no run."""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from django.db import connection

from ondatra_web import workers
from ondatra_web.models import Run
from ondatra_web.runs import ending, relay
from tests.web.filled import a_run, a_sync, workspace

pytestmark = pytest.mark.django_db(transaction=True)


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
