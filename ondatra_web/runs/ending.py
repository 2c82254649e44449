"""The end of a run: its status follows from its counts, then finalize(). Of all who see it, one process does it."""

from __future__ import annotations

import contextlib
import logging
import threading
from collections.abc import Sequence
from typing import Any

from django.db import connection, transaction
from django.db.models import F
from django.utils import timezone

from ondatra_web import workers
from ondatra_web.alerts import judging
from ondatra_web.models import Delivery, Run, Sync
from ondatra_web.runs import claims, progress
from ondatra_web.runs.delivering import Delivering, delivery_run
from ondatra_web.runs.outbox import DatabaseOutbox
from ondatra_web.runs.patience import patiently
from runtime import faults
from runtime.custody.redact import everywhere
from runtime.delivery import deliver
from runtime.errors import Cancelled
from runtime.threads import supervised

log = logging.getLogger("ondatra.ending")
#: What a person reads of an error that nobody expected.
MOST_OF_AN_ERROR = 2_000
_at_end: set[int] = set()  # runs whose end this process sees to
_guard = threading.Lock()


@patiently
def stop(run: Run, why: str) -> None:
    """The rest of the run is not tried and stays due. With a reason the run has failed, whatever its counts say."""
    with transaction.atomic():
        Run.objects.select_for_update().get(pk=run.pk)
        for waiting in Delivery.objects.filter(run=run, status=Delivery.Status.WAITING):
            counts = {"not_tried": waiting.records}
            Delivery.objects.filter(pk=waiting.pk).update(status=Delivery.Status.CLOSED, counts=counts)
            Run.objects.filter(pk=run.pk).update(not_tried=F("not_tried") + waiting.records)
        if why:
            Run.objects.filter(pk=run.pk, failed=False).update(failed=True, error=everywhere.text(why))


def finish(delivering: Delivering, run: Run) -> None:
    """Ends the run if its last chunk is closed."""
    with _guard:  # threads of this process are one owner
        ending = None if run.pk in _at_end else _claim(run)
        if ending is None:
            return
        _at_end.add(run.pk)

    run, sync, clean = ending
    try:
        if clean and sync.finalize_due:
            faults.point("before_finalize")
            patiently(progress.set_step)(run.pk, "finish")
            if not _finalize(delivering, run, sync):
                log.warning("run %s was taken over by another process while finalize() was called", run.pk)
                return
        close(run)
    except BaseException:
        workers.give_back_run(run.pk, run.lease)
        raise
    finally:
        _at_end.discard(run.pk)


@patiently
def _claim(run: Run) -> tuple[Run, Sync, bool] | None:
    """Claims the end of the run: the run, its sync, and whether all went so well that finalize() may be due. None if
    the run goes on, has ended, or a living process sees to its end."""
    me = workers.me()
    with transaction.atomic():
        run = Run.objects.select_for_update(of=("self",)).select_related("owner").get(pk=run.pk)
        if run.status not in Run.AT_WORK or claims.open_deliveries(run).exists() or workers.is_anothers(run.owner):
            return None
        run.owner, run.lease = me, run.lease + 1
        run.save(update_fields=["owner", "lease"])

        sync = Sync.objects.select_for_update().get(pk=run.sync_id)
        clean = _is_clean(run) and not run.failed and run.status == Run.Status.WORKING
        if clean and run.succeeded + run.rejected and not run.finalized:
            sync.finalize_due, sync.finalize_counts = True, [run.succeeded, run.rejected]
            sync.save(update_fields=["finalize_due", "finalize_counts"])
    return run, sync, clean


def _is_clean(run: Run) -> bool:
    """Whether everything was answered for good."""
    return not (run.retrying or run.not_tried or run.companions_due)


def _finalize(delivering: Delivering, run: Run, sync: Sync) -> bool:
    """Whether the end of the run is still ours, with the answer recorded."""
    run = Run.objects.select_related("sync").get(pk=run.pk)
    push = delivering.push(run)
    if not push.has_finalize:
        Sync.objects.filter(pk=sync.pk).update(finalize_due=False)
        return True

    succeeded, failed = (int(n) for n in sync.finalize_counts)
    context = delivery_run(delivering, run).context
    said = ["the run was cancelled before finalize() had answered"]
    prints: list[tuple[str, str]] = []

    def call() -> None:
        with contextlib.suppress(Cancelled):
            result = push.finalize(succeeded, failed, context)
            said[:] = [result.error]
            prints.extend(("print", line) for line in result.prints)

    supervised(call, context.cancelled, abandon=lambda: None, ends=lambda: connection.close())  # the thread's own
    return _record_finalize(run, said[0], prints)


@patiently
def _record_finalize(run: Run, error: str, prints: Sequence[tuple[str, str]]) -> bool:
    """Writes what finalize() said, all or nothing: a process that dies before has it called again. False if the run is
    another's by now."""
    told: dict[str, Any] = {"failed": True, "error": f"finalize failed: {error}"} if error else {"finalized": True}
    with transaction.atomic():
        mine = Run.objects.filter(pk=run.pk, lease=run.lease, status__in=Run.ACTIVE)
        if mine.exclude(**told).update(**told):
            progress.say(run.pk, prints)
            if not error:
                Sync.objects.filter(pk=run.sync_id).update(finalize_due=False)
        return mine.exists()  # one that is written already: its commit was not heard of


def close(run: Run) -> None:
    """The last transition of a run that delivered; outside of a transaction, so that a database that is held for a
    moment is asked again."""
    _close(run)
    judging.ended()


@patiently
def _close(run: Run) -> None:
    with transaction.atomic():
        run = Run.objects.select_for_update().get(pk=run.pk)
        if run.status not in Run.AT_WORK:
            return
        ended = run.succeeded + run.rejected + run.retrying + run.not_tried
        if ended != run.planned and not run.failed:
            run.failed = True
            run.error = f"the counts do not close: {run.planned} planned, {ended} ended; please report this"
        run.status = _status(run)
        run.tracking = run.tracking or "written"
        run.ended_at, run.owner = timezone.now(), None
        run.save(update_fields=["status", "failed", "error", "tracking", "ended_at", "owner"])


def _status(run: Run) -> Run.Status:
    """A run is completed only when its counts close and its files are written or known to wait."""
    if run.status == Run.Status.CANCELING:
        return Run.Status.CANCELLED
    if run.failed:
        return Run.Status.FAILED
    if run.not_tried:  # with a limit that was asked for: the rest stays due
        return Run.Status.COMPLETED_WITH_REJECTS if run.options.get("limit") else Run.Status.FAILED
    return Run.Status.COMPLETED if _is_clean(run) and not run.rejected else Run.Status.COMPLETED_WITH_REJECTS


# ends that are not the deliveries' own


def end(run: Run, status: Run.Status, why: str = "") -> None:
    """Ends a run that delivered nothing; one that has ended stays as it is."""
    _end(run, status, why)
    run.refresh_from_db()
    judging.ended()


@patiently
def _end(run: Run, status: Run.Status, why: str) -> None:
    Run.objects.filter(pk=run.pk, status__in=Run.ACTIVE).update(
        status=status,
        failed=status == Run.Status.FAILED,
        error=everywhere.text(why),
        ended_at=timezone.now(),
        owner=None,
    )


def fail(run: Run, why: str) -> None:
    """Ends a run that could not be staged."""
    end(run, Run.Status.FAILED, why)


def break_off(delivering: Delivering, run: Run, why: str) -> None:
    """Ends a run whose process goes on without it. What was answered becomes records: it is not sent again."""
    broken = patiently(Run.objects.filter(pk=run.pk, status__in=Run.ACTIVE).update)
    if broken(failed=True, error=everywhere.text(why)[:MOST_OF_AN_ERROR], owner=None):
        close_dead(delivering, run)


def close_dead(delivering: Delivering, run: Run) -> None:
    """Closes a run whose process died: recorded answers become its records, the rest stays due for the next run."""
    run = Run.objects.select_related("sync").get(pk=run.pk)
    Run.objects.filter(pk=run.pk).update(lease=F("lease") + 1)
    if run.staged:
        _close_deliveries(delivering, run)
        stop(run, "")
    _close_dead(run)
    judging.ended()


def _close_deliveries(delivering: Delivering, run: Run) -> None:
    shared, database = delivery_run(delivering, run), DatabaseOutbox()
    for delivery in claims.open_deliveries(run).exclude(status=Delivery.Status.WAITING).order_by("ordinal"):
        Delivery.objects.filter(pk=delivery.pk).update(lease=F("lease") + 1, owner=None)
        claim = claims.claim_of(Delivery.objects.select_related("chunk").get(pk=delivery.pk))
        deliver.close_dead(claim, shared, database)


@patiently
def _close_dead(run: Run) -> None:
    with transaction.atomic():
        run = Run.objects.select_for_update().get(pk=run.pk)
        if run.staged and run.planned and _is_clean(run) and not run.finalized:
            Sync.objects.filter(pk=run.sync_id).update(finalize_due=True, finalize_counts=[run.succeeded, run.rejected])
        cancelled = run.status == Run.Status.CANCELING
        Run.objects.filter(pk=run.pk, status__in=Run.ACTIVE).update(
            status=Run.Status.CANCELLED if cancelled else Run.Status.FAILED,
            failed=not cancelled,
            error=run.error or "worker died",
            tracking=run.tracking or "written",
            ended_at=timezone.now(),
            owner=None,
        )
