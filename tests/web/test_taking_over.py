"""A run belongs to one builder at a time: whoever has a message for it claims it first, and takes it from the dead."""

from __future__ import annotations

from typing import Any

import pytest
from django.utils import timezone

from ondatra_web import actions, workers
from ondatra_web.clock import scheduling
from ondatra_web.models import Run, RunLog, Worker
from ondatra_web.runs import relay
from tests.web.filled import a_run, a_sync, workspace

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def no_message_was_sent() -> None:
    scheduling.messages_sent.forget()


def a_worker(**told: Any) -> Worker:
    return Worker.objects.create(kind="pipeline", host="hub", pid=7, **told)


def a_dead_one() -> Worker:
    return a_worker(ended_at=timezone.now())


def taken(stub_broker: Any, run: Run) -> Run:
    """The run once a worker has followed what the scheduler sent. Its project folder is gone, with which it fails."""
    scheduling.resume_dead()
    assert stub_broker.queues["pipeline"].qsize() == 1
    relay.stage(run.pk)
    run.refresh_from_db()
    return run


def test_a_run_whose_builder_was_lost_is_taken_over_and_its_log_names_both(stub_broker: Any) -> None:
    lost = a_dead_one()
    run = taken(stub_broker, a_run(a_sync(workspace("elsewhere")), "working", owner=lost, lease=1))

    assert (run.status, run.owner) == ("failed", None)
    assert "/nowhere" in run.error
    told = f"{lost} was lost while it built the run: {workers.me()} begins anew"
    assert list(RunLog.objects.filter(run=run).values_list("level", "text")) == [("warning", told)]


def test_a_run_that_nobody_holds_is_taken_though_pipeline_workers_live(stub_broker: Any) -> None:
    a_worker()
    assert taken(stub_broker, a_run(a_sync(workspace("elsewhere")), "working")).status == "failed"


@pytest.mark.parametrize("status", ["queued", "working"])
def test_a_second_message_leaves_a_run_to_the_living_process_that_claimed_it(status: str) -> None:
    builder = a_worker()
    run = a_run(a_sync(workspace("elsewhere")), status, owner=builder, lease=1)
    relay.stage(run.pk)

    run.refresh_from_db()
    assert (run.status, run.owner, run.lease) == (status, builder, 1)


def test_a_run_that_was_cancelled_when_its_builder_was_lost_is_cancelled(stub_broker: Any) -> None:
    run = a_run(a_sync(workspace("elsewhere")), "working", owner=a_dead_one())
    actions.cancel_run(run)
    assert (taken(stub_broker, run).status, run.error) == ("cancelled", "")


def test_a_run_is_free_again_where_its_claim_came_to_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    run = a_run(a_sync(workspace("elsewhere")), "queued")
    monkeypatch.setattr(relay.walk, "prepare", lambda *asked: {}["nothing that anybody expected"])
    with pytest.raises(KeyError):
        relay.stage(run.pk)

    run.refresh_from_db()
    assert (run.status, run.owner) == ("queued", None)
