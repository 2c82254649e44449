"""Claims: each has one owner whatever breaks, and who lost his does not send."""

from __future__ import annotations

import time
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from django.db import OperationalError
from django.utils import timezone

from ondatra_web import workers
from ondatra_web.models import Delivery, Run, Worker
from ondatra_web.runs import beginning, claims, outbox, patience
from runtime.errors import LeaseLost
from runtime.staging import states
from tests.web.filled import a_run, a_sync, workspace

pytestmark = pytest.mark.django_db


@pytest.fixture
def run() -> Run:
    """With one chunk that waits for its delivery."""
    run = a_run(a_sync(workspace()), "working", staged=True)
    chunk = run.sync.chunk_set.create(
        url="file:///chunk", rows=1, records=1, states=states.pack(np.full(1, states.UNTRIED, dtype=np.uint8))
    )
    Delivery.objects.create(run=run, chunk=chunk, ordinal=0, rows=1, records=1)
    return run


def broken(times: int, work: Any) -> Any:
    """`work`, but the connection breaks so often before it has said anything."""
    left = iter(range(times))

    def act(*args: Any, **kwargs: Any) -> Any:
        done = work(*args, **kwargs)
        if next(left, None) is not None:
            raise OperationalError("server closed the connection unexpectedly")
        return done

    return act


@pytest.fixture
def outside(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tests stand in a transaction, in which nothing is asked again."""
    monkeypatch.setattr(patience, "connection", SimpleNamespace(in_atomic_block=False, close=lambda: None))
    monkeypatch.setattr(patience, "time", SimpleNamespace(monotonic=time.monotonic, sleep=lambda _: None))


@pytest.mark.parametrize("where", ["_choose", "claim_of"])
def test_a_claim_whose_answer_was_lost_is_claimed_again(
    run: Run, outside: None, monkeypatch: pytest.MonkeyPatch, where: str
) -> None:
    monkeypatch.setattr(claims, where, broken(1, getattr(claims, where)))
    claim = claims.take(run, 1, 1)
    assert claim and claim.lease == 2
    assert claims.take(run, 1, 9) is None  # held by this process, so by none of its other threads


def test_a_claim_that_is_given_back_is_free_for_others_though_this_process_lives(run: Run) -> None:
    claim = claims.take(run, 1, 1)
    assert claim
    workers.give_back(claim.delivery_id, claim.lease - 1)  # an older one
    assert claims.take(run, 1, 1) is None
    workers.give_back(claim.delivery_id, claim.lease)
    again = claims.take(run, 1, 1)
    assert again and (again.delivery_id, again.lease) == (claim.delivery_id, claim.lease + 1)


def test_a_process_whose_first_run_is_skipped_keeps_its_row(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(workers, "_mine", {})
    Run.objects.filter(pk=run.pk).update(
        owner=Worker.objects.create(kind="run", host="elsewhere", pid=2, heartbeat_at=timezone.now())
    )
    assert beginning.take(run.sync, None, trigger="command", options={}).status == "skipped"
    assert Worker.objects.filter(
        pk=workers.me().pk
    ).exists()  # else its lock's file goes to the next process, which cannot take it


def test_a_process_that_slept_looks_whether_its_claim_is_still_its_own(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    slept = [0.0]
    monkeypatch.setattr(
        outbox, "time", SimpleNamespace(monotonic=lambda: time.monotonic() + slept[0], sleep=time.sleep)
    )
    claim, database = claims.take(run, 1, 1), outbox.DatabaseOutbox()
    assert claim
    database.make_sure(claim)
    other = Worker.objects.create(kind="push", host="elsewhere", pid=2, heartbeat_at=timezone.now())
    Delivery.objects.filter(pk=claim.delivery_id).update(lease=claim.lease + 1, owner=other)
    database.make_sure(claim)  # known a moment ago: no question for each call
    slept[0] = 21
    with pytest.raises(LeaseLost, match="taken over"):
        database.make_sure(claim)


def test_a_database_that_stays_away_is_an_error(outside: None, monkeypatch: pytest.MonkeyPatch) -> None:
    now = [0.0]
    monkeypatch.setattr(
        patience,
        "time",
        SimpleNamespace(monotonic=lambda: now[0], sleep=lambda seconds: now.__setitem__(0, now[0] + seconds)),
    )
    assert patience.patiently(broken(100, lambda: "said"))() == "said" and now[0] == 50
    with pytest.raises(OperationalError):
        patience.patiently(broken(1_000, lambda: "said"))()
    assert 170 <= now[0] <= 171.5
