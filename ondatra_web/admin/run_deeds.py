"""What support may do to a run."""

from __future__ import annotations

from typing import Any

from ondatra_web import actions, models, repairs, workers
from ondatra_web.admin.deeds import Deed, corrected
from ondatra_web.runs import retries
from runtime.records.filter import Filter


def _asks_release(run: models.Run) -> list[str]:
    at_work = [run.owner, *(d.owner for d in run.delivery_set.exclude(owner=None).select_related("owner")[:200])]
    alive = sorted({str(owner) for owner in at_work if owner is not None and not workers.is_dead(owner)})
    lines = ["Its claims are free at once, and another worker goes on with what has no answer yet."]
    if alive:
        lines.append(
            f"Alive and at work on it: {', '.join(alive)}. They stop at their next write; calls that they have begun "
            f"have no known answer then and are sent again, so that the destination may get these rows twice."
        )
    return lines


def _release(run: models.Run, user: Any) -> str:
    claimed = repairs.release(run, user=user)
    return f"The lease of run {run.pk} is released, with {claimed:,} of its chunks; a worker was woken."


def _asks_retry(run: models.Run) -> list[str]:
    plan = retries.plan(run, Filter())
    return [
        f"{plan.records:,} of its {plan.matched:,} records are undelivered: a new run sends them again.",
        f"{plan.superseded:,} were delivered since or are gone, {plan.blocked:,} wait for an open job, "
        f"{plan.invalid:,} have no key that can be sent.",
    ]


def _retry(run: models.Run, user: Any) -> str:
    return f"Run {actions.retry_run(run, Filter(), user=user).pk} is queued: it sends them again."


def _asks_expire(run: models.Run) -> list[str]:
    return [
        f"The files of its records, {run.recordfile_set.count():,} so far, are removed from the store for good, "
        f"though their {run.sync.retention_days} days may not be over.",
        "Its counts and reasons stay.",
    ]


def _expire(run: models.Run, user: Any) -> str:
    repairs.expire(run, user=user)
    return f"The records of run {run.pk} are removed."


def _asks_files(run: models.Run) -> list[str]:
    waits = run.delivery_set.filter(status=models.Delivery.Status.SEALED).count()
    return [f"The record files of {waits:,} chunks wait for {run.store_url or 'the store'}: they are written now."]


def _write_files(run: models.Run, user: Any) -> str:
    return f"The record files of {repairs.write_files(run, user=user):,} chunks are written."


def _asks_recount(run: models.Run) -> list[str]:
    return ["Succeeded, warned, rejected, retrying and not tried are added up anew from its deliveries."]


def _recount(run: models.Run, user: Any) -> str:
    return corrected(repairs.recount(run, user=user))


OF_A_RUN = (
    Deed("release", "Release its lease", _asks_release, _release, lambda r: r.status in models.Run.AT_WORK),
    Deed(
        "retry",
        "Send again",
        _asks_retry,
        _retry,
        lambda r: bool(r.ended_at and r.planned and not r.dry_run and not r.rows_expired_at),
    ),
    Deed(
        "files",
        "Write its record files",
        _asks_files,
        _write_files,
        lambda r: r.tracking == "pending" and r.ended_at,
    ),
    Deed("expire", "Expire its records", _asks_expire, _expire, lambda r: bool(r.ended_at) and not r.rows_expired_at),
    Deed("recount", "Recompute its counts", _asks_recount, _recount, lambda r: r.staged),
)
