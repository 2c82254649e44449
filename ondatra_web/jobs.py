"""The workers' actors: an id in, the row loaded, one call. Leases in the database decide who works, so a message that
comes twice or late does no harm; one that is lost is sent again by the scheduler."""

from __future__ import annotations

import logging

import django
from django.apps import apps

if not apps.ready:  # a Dramatiq process imports this module first
    django.setup()

import dramatiq  # noqa: E402
from django.db import close_old_connections, transaction  # noqa: E402

from ondatra_web import queue, workers
from ondatra_web.clock.upkeep import keep_lake  # noqa: E402
from ondatra_web.models import Delivery, Organization, Run, Workspace  # noqa: E402
from ondatra_web.runs import execution
from ondatra_web.runs.ledger import is_alive  # noqa: E402
from ondatra_web.tracking import exporting  # noqa: E402
from ondatra_web.tracking import sync_log as log_table  # noqa: E402
from runtime.errors import OndatraError  # noqa: E402
from runtime.lake import spark  # noqa: E402

queue.broker()
log = logging.getLogger("ondatra.jobs")
#: Long runs are cut by their leases, not by a clock: Dramatiq's own limit of ten minutes would kill them.
TIME_LIMIT = 7 * 24 * 3600 * 1000
PUSH_WORKERS = 2


@dramatiq.actor(queue_name="pipeline", max_retries=0, time_limit=TIME_LIMIT)
def pipeline(run_id: int) -> None:
    """Builds and stages a run, then wakes push workers."""
    close_old_connections()
    workers.me("pipeline")
    run = Run.objects.select_related("sync__workspace", "owner").get(pk=run_id)
    if run.status == Run.Status.QUEUED or (run.status == Run.Status.WORKING and not run.staged and not is_alive(run)):
        stage(run)


def stage(run: Run) -> None:
    try:
        if "chosen" in run.options:
            walk = execution.stage_retry(run)
        else:
            walk = execution.prepare(run.sync.workspace, [run.sync.name])
            run.sync.refresh_from_db()  # the file may have another name by now
            execution.run_line(walk, run.options, trigger=run.trigger, given={run.sync.name: run})
    except OndatraError as error:
        execution.fail(run, str(error))
        return
    run.refresh_from_db()
    if run.status in Run.ACTIVE and not run.staged:
        skipped = walk.results.get(run.sync.name)
        execution.fail(run, (skipped and skipped.error) or "nothing was staged")
    elif run.status in Run.ACTIVE:
        Run.objects.filter(pk=run.pk).update(owner=None)
        wake(run, walk.pushes[run.sync.name].api.push.max_concurrent)


def wake(run: Run, max_concurrent: int) -> None:
    """As many push messages as can work side by side, at least one: it also closes a run that has nothing to send."""
    waiting = Delivery.objects.filter(run=run).exclude(status=Delivery.Status.CLOSED).count()
    messages = max(1, min(max_concurrent, waiting, PUSH_WORKERS))
    for _ in range(messages):
        queue.send("push", run.pk, max(1, max_concurrent // messages))


@dramatiq.actor(queue_name="push", max_retries=0, time_limit=TIME_LIMIT)
def push(run_id: int, slots: int = 1) -> None:
    """Delivers what is free of a run's chunks."""
    close_old_connections()
    workers.me("push")
    run = Run.objects.select_related("sync__workspace").get(pk=run_id)
    if run.status not in (Run.Status.WORKING, Run.Status.CANCELING) or not run.staged:
        return
    try:
        walk = execution.prepare(run.sync.workspace, [run.sync.name])
    except OndatraError as error:
        execution.stop(run, str(error))
        with transaction.atomic():
            execution.close(run)
        return
    run.sync.refresh_from_db()
    execution.deliver_run(walk, run.sync.name, run, slots)


@dramatiq.actor(queue_name="export", max_retries=0, time_limit=TIME_LIMIT)
def export(export_id: int) -> None:
    """Writes the records of a run into a file."""
    close_old_connections()
    workers.me("push")
    exporting.work(export_id)


@dramatiq.actor(queue_name="pipeline", max_retries=0, time_limit=TIME_LIMIT)
def sync_log(organization_id: int) -> None:
    """Adds new records to the table sync_log: the pipeline worker has the Spark session."""
    close_old_connections()
    workers.me("pipeline")
    try:
        written = log_table.write(Organization.objects.get(pk=organization_id))
    except OndatraError as error:
        log.warning("the sync log of organization %s waits: %s", organization_id, error)
    else:
        for problem in written.problems:
            log.warning("the sync log of organization %s: %s", organization_id, problem)


@dramatiq.actor(queue_name="pipeline", max_retries=0, time_limit=TIME_LIMIT)
def upkeep(workspace_id: int) -> None:
    """Looks after the lake of a workspace: the pipeline worker has the Spark session."""
    close_old_connections()
    workers.me("pipeline")
    keep_lake(Workspace.objects.get(pk=workspace_id), spark.isolated)
