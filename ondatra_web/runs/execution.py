"""Runs from begin to end: walk the line, deliver, finalize, close. The command does it in one process; workers in
several."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

from django.conf import settings

from ondatra_web import stopping, workers
from ondatra_web.models import Run, Workspace
from ondatra_web.runs import claims, ending, pending, progress, resending
from ondatra_web.runs.delivering import Delivering, delivery_run, store_of
from ondatra_web.runs.dry_runs import DryLedger
from ondatra_web.runs.ledger import DatabaseLedger
from ondatra_web.runs.outbox import DatabaseOutbox
from ondatra_web.runs.patience import patiently
from ondatra_web.runs.walk import Walk, prepare, session
from ondatra_web.runs.watch import Watch
from ondatra_web.tracking import stores
from runtime.delivery import deliver
from runtime.delivery.filing import Filing
from runtime.delivery.outbox import Claim
from runtime.errors import LeaseLost
from runtime.pipeline.line import Line

log = logging.getLogger("ondatra.execution")


def run_line(
    walk: Walk,
    options: Mapping[str, Any],
    *,
    trigger: str,
    given: Mapping[str, Run] | None = None,
    watch: Watch | None = None,
) -> None:
    """Plans, builds and stages every model of the walk. Raises ConfigError while too many records wait for their
    store."""
    dry = bool(options.get("dry_run"))
    if not dry:
        pending.write(walk.workspace)
        stores.refuse_if_full(walk.workspace.organization_id)
    ledger = (DryLedger if dry else DatabaseLedger)(
        walk.workspace,
        walk.pushes,
        options=options,
        trigger=trigger,
        given=given,
        close_dead=lambda run: ending.close_dead(walk, run),
        store_of=lambda run: store_of(walk, run),
        watch=watch or Watch(),
    )

    rebuild = bool(options.get("rebuild"))
    try:
        begin = partial(session, watch or Watch())
        line = Line(walk.project, ledger, begin, rebuild=rebuild, builds=settings.ONDATRA.builds, watch=watch)
        walk.results = line.run()
    finally:
        ledger.finish()
        walk.runs = {name: ledger.runs[name] for name in walk.project.order if name in ledger.runs}
        _refresh(walk)


def run_here(
    workspace: Workspace,
    names: Sequence[str],
    options: Mapping[str, Any],
    *,
    trigger: str = "command",
    given: Mapping[str, Run] | None = None,
    watch: Watch | None = None,
) -> Walk:
    """All of a run in this process. Raises ProjectError, ConfigError before anything started, Stopped."""
    with stopping.stoppable():
        walk = prepare(workspace, names, watch)
        if watch:
            watch.planned(walk.project.order)
        for run in (given or {}).values():
            run.sync.refresh_from_db()  # its file may have another name by now
        given = {run.sync.name: run for run in (given or {}).values()}

        try:
            run_line(walk, options, trigger=trigger, given=given, watch=watch)
            for run in walk.runs.values():
                if run.status in Run.AT_WORK and run.staged:
                    deliver_run(walk, run, watch=watch)
        except BaseException as error:
            _break_off(walk, error)
            raise
    _refresh(walk)
    return walk


def resend_here(made: resending.Prepared, watch: Watch) -> Walk:
    """Sends chosen records again, all in this process; tells the run as soon as it exists."""
    with stopping.stoppable():
        try:
            run = resending.start(made)
            watch.began(run.pk, run.sync.name)
            deliver_run(made.walk, run, watch=watch)
        except BaseException as error:
            _break_off(made.walk, error)
            raise
    return made.walk


def deliver_run(
    delivering: Delivering,
    run: Run,
    slots: int | None = None,
    watch: Watch | None = None,
    *,
    give_way: Callable[[], bool] = lambda: False,
) -> bool:
    """Delivers chunk after chunk until none is free; files of one are written while the next is pushed. Whoever closes
    the last one closes the run. Whether it stopped before that, because after a chunk it was to give way."""
    run = Run.objects.select_related("sync").get(pk=run.pk)
    watch = watch or Watch()
    database, shared = DatabaseOutbox(watch.sent), delivery_run(delivering, run)
    most = delivering.push(run).api.push.max_concurrent
    if "push" not in run.step_times:
        patiently(progress.set_step)(run.pk, "push")
    watch.sends(run.sync.name, sum(claims.open_deliveries(run).values_list("rows", flat=True)))

    gives_way = False
    with Filing(database, _give_back) as filing:
        while not gives_way and (claim := claims.take(run, slots or most, most)) is not None:
            try:
                said = deliver.deliver(claim, shared, database, filing)
            except LeaseLost as lost:
                log.warning("%s", lost)
                continue
            except BaseException:
                _give_back(claim)
                raise
            if said.stopped or said.cancelled:
                ending.stop(run, said.stopped)
            gives_way = give_way()
    watch.sends(run.sync.name, 0)
    ending.finish(delivering, run)
    return gives_way


def _give_back(claim: Claim) -> None:
    workers.give_back(claim.delivery_id, claim.lease)


def _break_off(walk: Walk, error: BaseException) -> None:
    """An error that nobody expected, or a signal, must not leave runs that look alive."""
    stopped = isinstance(error, KeyboardInterrupt)
    why = stopping.told(error) if stopped else f"stopped: {type(error).__name__}: {error}"
    for run in walk.runs.values():
        try:
            ending.break_off(walk, run, why)
        except Exception:  # the next run closes it
            log.exception("run %s is left open", run.pk)


def _refresh(walk: Walk) -> None:
    for run in walk.runs.values():
        if run.status != Run.Status.COMPLETED:  # nothing changes any more in one that is
            run.refresh_from_db()
