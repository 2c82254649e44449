"""What support does to a run that is stuck or whose numbers are off; each leaves a line in the audit log."""

from __future__ import annotations

from typing import Any

from django.contrib.auth.base_user import AbstractBaseUser
from django.db import transaction

from ondatra_web import audit, queue
from ondatra_web.models import Run, Sync
from ondatra_web.runs import claims, pending, recounting
from ondatra_web.tracking import retention


def release(run: Run, *, user: AbstractBaseUser | None = None) -> int:
    """Takes a run from a process that is gone or stuck, and wakes another; how many chunks were claimed. Raises
    ConfigError."""
    with transaction.atomic():
        claimed = claims.release(run)
        _note(run, user, "release_run", {"claims": claimed})
        actor = ("push", run.pk, 1) if run.staged else ("pipeline", run.pk)
        transaction.on_commit(lambda: queue.send(*actor))
    return claimed


def write_files(run: Run, *, user: AbstractBaseUser | None = None) -> int:
    """Writes record files that wait for the store, now; for how many chunks. Raises StoreError."""
    written = pending.write_of(run)
    _note(run, user, "write_record_files", {"chunks": written})
    return written


def expire(run: Run, *, user: AbstractBaseUser | None = None) -> None:
    """Removes the records of a run before their days are over. Raises StoreError, ConfigError."""
    retention.expire_now(run)
    _note(run, user, "expire_run", {})


def recount(run: Run, *, user: AbstractBaseUser | None = None) -> dict[str, list[int]]:
    """Adds its counts up anew; those that were wrong, as `[before, after]`. Raises ConfigError."""
    with transaction.atomic():
        wrong = recounting.of_run(run)
        _note(run, user, "recount_run", wrong)
    return wrong


def recount_waiting(sync: Sync, *, user: AbstractBaseUser | None = None) -> dict[str, list[int]]:
    """Adds up anew what of a sync waits; what was wrong, as `[before, after]`. Raises ConfigError."""
    with transaction.atomic():
        wrong = recounting.of_sync(sync)
        audit.write(sync.workspace.organization_id, user, "recount_sync", sync.name, wrong, sync=sync)
    return wrong


def _note(run: Run, user: AbstractBaseUser | None, action: str, detail: dict[str, Any]) -> None:
    audit.write(run.sync.workspace.organization_id, user, action, f"run {run.pk}", detail, sync=run.sync)
