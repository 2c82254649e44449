"""The writes that a page, the API and a command share; each has its one home here."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from django.contrib.auth.base_user import AbstractBaseUser
from django.db import transaction
from django.utils import timezone

from ondatra_web import audit, queue
from ondatra_web.alerts import judging
from ondatra_web.models import Run, Sync
from ondatra_web.runs import waiting
from runtime.errors import ConfigError
from runtime.records.filter import Filter


def start_run(
    sync: Sync,
    *,
    user: AbstractBaseUser | None = None,
    trigger: str = "page",
    by: str = "",
    full: bool = False,
    dry_run: bool = False,
    **options: Any,
) -> Run:
    """Makes the run's row and, once that is durable, wakes a worker. `by` is what it was started with beside a person:
    a token's name, a schedule's text; without both it is the command line's user."""
    if sync.archived_at:
        raise ConfigError(f"{sync.name} is archived: its file is gone, so it can only be looked at")
    told = {"full": full, "dry_run": dry_run, **options}
    with transaction.atomic():
        options = {k: v for k, v in told.items() if v}
        run = Run.objects.create(
            sync=sync,
            trigger=trigger,
            started_by=audit.person(user),
            started_with=_with(user, by),
            full=full,
            dry_run=dry_run,
            options=options,
        )
        if trigger != "schedule":  # nobody's doing, and many
            audit.write(sync.workspace.organization_id, user, "start_run", f"run {run.pk}", told, sync=sync)
        transaction.on_commit(lambda: queue.send("pipeline", run.pk))
    return run


def _with(user: AbstractBaseUser | None, by: str) -> str:
    return (by if user or by else audit.at_the_command_line())[:200]


def skip_run(sync: Sync, working: Run, *, trigger: str = "schedule") -> Run:
    """A run that did not begin, for the history."""
    return Run.objects.create(
        sync=sync,
        trigger=trigger,
        started_with=sync.schedule if trigger == "schedule" else "",
        status=Run.Status.SKIPPED,
        ended_at=timezone.now(),
        error=f"its time came while run {working.pk} was {working.status}: it was skipped, and the next time counts",
    )


def retry_run(
    run: Run, chosen: Filter, *, user: AbstractBaseUser | None = None, trigger: str = "retry", by: str = ""
) -> Run:
    """Queues a run that sends the chosen records of a run again; what of them can be sent is found when it begins."""
    if run.sync.archived_at:
        raise ConfigError(f"{run.sync.name} is archived: its file is gone, so it can only be looked at")
    told = {k: v for k, v in asdict(chosen).items() if v}
    with transaction.atomic():
        new = Run.objects.create(
            sync=run.sync,
            trigger=trigger,
            started_by=audit.person(user),
            started_with=_with(user, by),
            options={"retry_of": run.pk, "chosen": told},
        )
        audit.write(
            run.sync.workspace.organization_id,
            user,
            "retry_run",
            f"run {run.pk}",
            {"run": new.pk, "chosen": told},
            sync=run.sync,
        )
        transaction.on_commit(lambda: queue.send("pipeline", new.pk))
    return new


def cancel_run(run: Run, *, user: AbstractBaseUser | None = None) -> Run:
    """Asks a run to stop. One that nobody works on is cancelled at once; what it had not sent stays due."""
    with transaction.atomic():
        now = timezone.now()
        idle = Run.objects.filter(pk=run.pk, status__in=[Run.Status.QUEUED, Run.Status.HELD]).update(
            status=Run.Status.CANCELLED, ended_at=now, cancelled_by=audit.person(user), judged=False
        )
        asked = Run.objects.filter(pk=run.pk, status=Run.Status.WORKING).update(
            status=Run.Status.CANCELING, cancelled_by=audit.person(user)
        )
        if not idle and not asked:
            run.refresh_from_db()
            raise ConfigError(
                f"run {run.pk} is {run.status}: only a run that is queued, held or working can be cancelled"
            )
        audit.write(run.sync.workspace.organization_id, user, "cancel_run", f"run {run.pk}", {}, sync=run.sync)
    judging.ended()
    run.refresh_from_db()
    return run


def confirm_run(
    run: Run, *, user: AbstractBaseUser | None = None, trigger: str = "confirm", by: str = "", send: bool = True
) -> Run:
    """Lets a held run go on, as a new run that may delete as many records as were shown, and no more."""
    with transaction.atomic():
        if not Run.objects.filter(pk=run.pk, status=Run.Status.HELD).update(
            status=Run.Status.CANCELLED, ended_at=timezone.now(), judged=False
        ):
            run.refresh_from_db()
            raise ConfigError(f"run {run.pk} is {run.status}: only a held run can be confirmed")
        options = {**run.options, "confirms": run.pk}
        if not run.options.get("history_gone"):
            options["confirmed_deletes"] = run.options.get("would_delete", run.deleted)
        full = run.full or bool(run.options.get("history_gone"))  # what changed is not known, so everything goes
        new = Run.objects.create(
            sync=run.sync,
            trigger=trigger,
            started_by=audit.person(user),
            started_with=_with(user, by),
            full=full,
            options=options,
        )
        Run.objects.filter(pk=run.pk).update(confirmed_as=new)
        audit.write(
            run.sync.workspace.organization_id, user, "confirm_run", f"run {run.pk}", {"run": new.pk}, sync=run.sync
        )
        if send:
            transaction.on_commit(lambda: queue.send("pipeline", new.pk))
    judging.ended()
    return new


def pause_sync(sync: Sync, *, user: AbstractBaseUser | None = None) -> None:
    """Schedules no longer start it; a person still can."""
    Sync.objects.filter(pk=sync.pk, paused_at=None).update(paused_at=timezone.now())
    audit.write(sync.workspace.organization_id, user, "pause_sync", sync.name, {}, sync=sync)


def resume_sync(sync: Sync, *, user: AbstractBaseUser | None = None) -> None:
    Sync.objects.filter(pk=sync.pk).update(paused_at=None, next_run_at=None)
    audit.write(sync.workspace.organization_id, user, "resume_sync", sync.name, {}, sync=sync)


def discard(sync: Sync, *, user: AbstractBaseUser | None = None) -> dict[str, int]:
    """Drops what waits, as if it had been delivered; the records that it dropped, see `waiting.counted`. Raises
    ConfigError while a run works."""
    with transaction.atomic():
        sync = Sync.objects.select_for_update().get(pk=sync.pk)
        working = Run.objects.filter(sync=sync, status__in=Run.AT_WORK).first()
        if working is not None:
            raise ConfigError(f"run {working.pk} of {sync.name} is working: wait for its end, or cancel it")
        dropped = waiting.counted(sync)
        waiting.forget(sync)
        audit.write(sync.workspace.organization_id, user, "discard", sync.name, dropped, sync=sync)
    return dropped
