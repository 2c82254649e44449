"""The workers' actors: an id in, one call. Leases in the database decide who works, so a message that comes twice or
late does no harm; one that is lost is sent again by the scheduler."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import django
from django.apps import apps

if not apps.ready:  # a Dramatiq process imports this module first
    django.setup()

import dramatiq  # noqa: E402
from django.db import close_old_connections  # noqa: E402

from ondatra_web import checks, queue, workers  # noqa: E402
from ondatra_web.alerts import sending  # noqa: E402
from ondatra_web.clock.upkeep import keep_lake  # noqa: E402
from ondatra_web.models import Organization, Workspace  # noqa: E402
from ondatra_web.presence import Presence  # noqa: E402
from ondatra_web.readiness import Readiness  # noqa: E402
from ondatra_web.runs import relay  # noqa: E402
from ondatra_web.tracking import exporting  # noqa: E402
from ondatra_web.tracking import sync_log as log_table  # noqa: E402
from runtime.lake import spark  # noqa: E402

checks.refuse()
queue.broker().add_middleware(Presence())
queue.broker().add_middleware(Readiness())
#: Long runs are cut by their leases, not by a clock: Dramatiq's own limit of ten minutes would kill them.
TIME_LIMIT = 7 * 24 * 3600 * 1000


def actor(kind: str, queue_name: str) -> Callable[[Callable[..., None]], Any]:
    """Makes an actor of a function, for worker processes of that kind; connections that broke meanwhile are gone."""

    def decorate(work: Callable[..., None]) -> Any:
        def act(*args: int) -> None:
            close_old_connections()
            workers.me(kind)
            work(*args)

        act.__doc__ = work.__doc__
        return dramatiq.actor(
            act, actor_name=work.__name__, queue_name=queue_name, max_retries=0, time_limit=TIME_LIMIT
        )

    return decorate


@actor("pipeline", queue_name="pipeline")
def pipeline(run_id: int) -> None:
    """Builds and stages a run, then wakes push workers."""
    relay.stage(run_id)


@actor("push", queue_name="push")
def push(run_id: int, slots: int = 1) -> None:
    """Delivers what is free of a run's chunks."""
    relay.push(run_id, slots)


@actor("push", queue_name="export")
def export(export_id: int) -> None:
    """Writes the records of a run into a file."""
    exporting.work(export_id)


@actor("alerts", queue_name="alerts")
def alert(delivery_id: int) -> None:
    """Sends one message of an alert."""
    sending.work(delivery_id)


@actor("pipeline", queue_name="pipeline")
def sync_log(organization_id: int) -> None:
    """Adds new records to the table sync_log: the pipeline worker has the Spark session."""
    log_table.keep(Organization.objects.get(pk=organization_id))


@actor("pipeline", queue_name="pipeline")
def upkeep(workspace_id: int) -> None:
    """Looks after the lake of a workspace: the pipeline worker has the Spark session."""
    for _ in keep_lake(Workspace.objects.get(pk=workspace_id), spark.isolated):
        pass
