"""A run as workers pass it on: one builds and stages it, others deliver it, whoever is last ends it."""

from __future__ import annotations

from ondatra_web import queue, workers
from ondatra_web.models import Delivery, Run
from ondatra_web.runs import beginning, claims, delivering, ending, execution, progress, resending, walk
from ondatra_web.runs.patience import patiently
from ondatra_web.runs.walk import Walk
from runtime.errors import OndatraError


def stage(run_id: int) -> None:
    """Builds and stages a run that nobody works on, then wakes push workers."""
    run = _run(run_id)
    left_behind = run.status == Run.Status.WORKING and not run.staged and not beginning.is_alive(run)
    if run.status != Run.Status.QUEUED and not left_behind:
        return
    if left_behind and run.owner is not None:
        told = f"{run.owner} was lost while it built the run: {workers.me('pipeline')} begins anew"
        patiently(progress.say)(run.pk, [("warning", told)])
    try:
        made, why = _staged(run)
    except OndatraError as error:
        ending.fail(run, str(error))
        return

    run.refresh_from_db()
    if run.status not in Run.ACTIVE:
        return
    if not run.staged:
        ending.fail(run, why or "nothing was staged")
        return
    patiently(Run.objects.filter(pk=run.pk).update)(owner=None)
    _wake(run, made.push(run).api.push.max_concurrent)


def _staged(run: Run) -> tuple[Walk, str | None]:
    """The walk, and what it says of a sync that it did not come to."""
    if "chosen" in run.options:
        prepared = resending.prepare_queued(run)
        resending.start(prepared, run)
        return prepared.walk, None
    made = walk.prepare(run.sync.workspace, [run.sync.name])
    run.sync.refresh_from_db()  # the file may have another name by now
    execution.run_line(made, run.options, trigger=run.trigger, given={run.sync.name: run})
    result = made.results.get(run.sync.name)
    return made, result.error if result else None


def _wake(run: Run, max_concurrent: int) -> None:
    """A message for each push worker that lives, as far as they can work side by side, with its share of the calls; at
    least one, which also closes a run that has nothing to send."""
    waiting = Delivery.objects.filter(run=run).exclude(status=Delivery.Status.CLOSED).count()
    messages = max(1, min(max_concurrent, waiting, workers.alive("push")))
    for _ in range(messages):
        queue.send("push", run.pk, max(1, max_concurrent // messages))


def push(run_id: int, slots: int = 1) -> None:
    """Delivers what is free of a run's chunks; after each chunk other runs go first that nobody works on."""
    run = _run(run_id)
    if run.status not in Run.AT_WORK or not run.staged:
        return
    try:
        # a run that an earlier version staged has no rules: its project is checked again
        needed = delivering.kept(run) if run.rules else walk.prepare(run.sync.workspace, [run.sync.name])
    except OndatraError as error:
        ending.stop(run, str(error))
        ending.close(run)
        return
    run.sync.refresh_from_db()
    if execution.deliver_run(needed, run, slots, give_way=lambda: claims.others_wait(run)):
        queue.send("push", run.pk, slots)  # behind them


def _run(run_id: int) -> Run:
    return patiently(Run.objects.select_related("sync__workspace", "owner").get)(pk=run_id)
