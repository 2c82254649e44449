"""The begin of a run: one run of a sync works at a time, and what keeps it from beginning is said."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from django.db import IntegrityError, transaction
from django.utils import timezone

from ondatra_web import audit, workers
from ondatra_web.models import Delivery, Run, Sync, Worker
from ondatra_web.runs import ending
from ondatra_web.runs.patience import patiently
from runtime.errors import ConfigError
from runtime.model import Model

BUSY = "another run of this sync is working"


def take(
    sync: Sync, given: Run | None, since: datetime | None = None, *, trigger: str, options: Mapping[str, Any]
) -> Run:
    """A working run of this process: the `given` one, or a new one, that began `since` (now). A skipped one where
    another works."""
    workers.me()  # its row outlives a transaction that fails
    since = since or timezone.now()
    told: dict[str, Any] = {"sync": sync, "trigger": trigger, "created_at": since, "started_at": since}
    told |= {"options": dict(options), "started_with": audit.at_the_command_line()}
    return _taken(given, since) if given is not None else _made(told)


@patiently
def _made(told: Mapping[str, Any]) -> Run:
    """Asked again, it finds the run that it made when the connection broke before it heard of it."""
    options = told["options"]
    asked = {"full": bool(options.get("full")), "dry_run": bool(options.get("dry_run"))}
    try:
        with transaction.atomic():
            return Run.objects.create(**told, **asked, status=Run.Status.WORKING, owner=workers.me(), lease=1)
    except IntegrityError:
        mine = Run.objects.filter(sync=told["sync"], owner=workers.me(), started_at=told["started_at"])
        if (made := mine.first()) is not None:
            return made
        return Run.objects.create(**told, status=Run.Status.SKIPPED, ended_at=timezone.now(), error=BUSY)


@patiently
def _taken(run: Run, since: datetime) -> Run:
    """The run as this process's own; as it is where it was cancelled meanwhile, skipped where another one works."""
    try:
        with transaction.atomic():
            _take(run, since)
    except IntegrityError:
        ending.end(run, Run.Status.SKIPPED, BUSY)
    return run


def _take(run: Run, since: datetime, **told: Any) -> None:
    Run.objects.filter(pk=run.pk, status__in=[Run.Status.QUEUED, Run.Status.WORKING]).update(
        status=Run.Status.WORKING,
        started_at=run.started_at or since,
        owner=workers.me(),
        lease=run.lease + 1,
        **told,
    )
    run.refresh_from_db()


@patiently
def take_retry(sync: Sync, earlier: Run, given: Run | None) -> Run:
    """The same for records of an earlier run that are sent again. Raises ConfigError while another run works."""
    workers.me()  # its row outlives a transaction that fails
    with transaction.atomic():
        Sync.objects.select_for_update().get(pk=sync.pk)
        others = Run.objects.filter(sync=sync, status__in=Run.AT_WORK).exclude(pk=given.pk if given else 0)
        if (other := others.first()) is not None:
            raise ConfigError(f"run {other.pk} of {sync.name} is working: wait for its end, or cancel it")
        if given is None:
            by = audit.at_the_command_line()
            given = Run.objects.create(sync=sync, trigger="retry", started_with=by, options={"retry_of": earlier.pk})
        _take(given, timezone.now(), step="changes")
        if given.status != Run.Status.WORKING:
            raise ConfigError(f"run {given.pk} was cancelled")
    return given


def is_alive(run: Run) -> bool:
    """Whether some living process works on the run, or one that waits for its messages will."""
    if run.owner is not None:
        return not workers.is_dead(run.owner)
    claimed = Delivery.objects.filter(run=run, status=Delivery.Status.CLAIMED).select_related("owner")
    if any(not workers.is_dead(d.owner) for d in claimed):
        return True
    kind = "push" if run.staged else "pipeline"
    return any(not workers.is_dead(w) for w in Worker.objects.filter(kind=kind, ended_at=None))


def mark_told(sync: Sync) -> str:
    """What the mark of a sync is, for a sentence."""
    if sync.mark is None:
        return ""
    last = Run.objects.filter(sync=sync, staged=True, dry_run=False, table_version=sync.mark).order_by("-pk").first()
    sent = f", which run {last.pk} of {last.created_at:%Y-%m-%d %H:%M} UTC sent" if last else ", which was sent"
    return f"version {sync.mark}{sent}"


def held_by_change(sync: Sync, model: Model) -> str:
    """Why a person must decide: what was delivered came from another kind, key or push function."""
    if sync.mark is None or model.sink is None:
        return ""
    pairs = [
        ("kind", sync.kind, model.kind),
        ("key", ", ".join(sync.key), ", ".join(model.key)),
        ("push function", sync.function, model.sink.function),
    ]
    found = [
        f"the {what} changed from {old} to {new}"
        for what, old, new in pairs
        if old != new and not (what == "key" and old.lower() == new.lower())
    ]
    return (
        f"{' and '.join(found)}: run with --full to send everything again, or --baseline to take it as delivered"
        if found
        else ""
    )
