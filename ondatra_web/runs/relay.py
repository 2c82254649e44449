"""A run as workers pass it on: one builds and stages it, others deliver it, whoever is last ends it."""

from __future__ import annotations

from ondatra_web import queue, workers
from ondatra_web.models import Delivery, Run
from ondatra_web.runs import claims, delivering, ending, execution, progress, resending, walk
from ondatra_web.runs.patience import patiently
from ondatra_web.runs.walk import Walk
from runtime.errors import OndatraError


def stage(run_id: int) -> None:
    """Builds and stages a run that nobody works on, then wakes push workers."""
    run = _claimed(run_id)
    if run is None:
        return
    try:
        made, why = _staged(run)
    except OndatraError as error:
        ending.fail(run, str(error))
        return
    except BaseException:
        workers.give_back_run(run.pk, run.lease)
        raise

    run.refresh_from_db()
    if run.status not in Run.ACTIVE:
        return
    if not run.staged:
        ending.fail(run, why or "nothing was staged")
        return
    patiently(Run.objects.filter(pk=run.pk).update)(owner=None)
    _wake(run, made.push(run).api.push.max_concurrent)


def _claimed(run_id: int) -> Run | None:
    """The run for this process alone to build, before anything is read for it: whoever else has a message for it finds
    it claimed. None where it is built, has ended, or a living process has claimed it."""
    run, me = _run(run_id), workers.me("pipeline")
    if run.staged or run.status not in Run.ACTIVE or not workers.is_dead(run.owner):
        return None
    if run.status == Run.Status.CANCELING:  # its builder was lost before it heard of it
        ending.end(run, Run.Status.CANCELLED)
        return None

    lease = run.lease + 1
    free = Run.objects.filter(pk=run.pk, status=run.status, staged=False, lease=run.lease)
    patiently(free.update)(owner=me, lease=lease)
    claimed = _run(run_id)
    if (claimed.owner, claimed.lease) != (me, lease):
        return None
    if run.owner is not None and run.status == Run.Status.WORKING:
        told = f"{run.owner} was lost while it built the run: {me} begins anew"
        patiently(progress.say)(run.pk, [("warning", told)])
    return claimed


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
