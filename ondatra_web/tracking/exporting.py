"""Whole results as a file: a job that a worker does, with progress, to be fetched for some days."""

from __future__ import annotations

import datetime as dt
import logging
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from typing import Any, cast

from django.conf import settings
from django.contrib.auth.base_user import AbstractBaseUser
from django.db import transaction
from django.db.models import F
from django.utils import timezone

from ondatra_web import audit, queue, workers
from ondatra_web.models import Export, Run
from ondatra_web.tracking import records as web_records
from runtime.custody import private
from runtime.custody.redact import everywhere
from runtime.errors import Cancelled, ConfigError, OndatraError, StoreError
from runtime.records import exports, query
from runtime.records.filter import Filter
from runtime.store.base import Store
from runtime.store.opening import open_store

log = logging.getLogger("ondatra.exporting")
KEPT = dt.timedelta(days=3)
#: A message older than this without a claim is taken for lost.
LOST_MESSAGE = dt.timedelta(seconds=20)
#: How often the row is told the progress, and asked whether somebody cancelled.
TELL_SECONDS = 0.5
#: Exports of one run that may wait or work at a time.
MOST_OPEN = 5


def start(run: Run, filter: Filter, format: str, *, user: AbstractBaseUser | None = None) -> Export:
    """Makes the job and, once that is durable, wakes a worker. Raises ConfigError."""
    if format not in exports.FORMATS:
        raise ConfigError(f"there is no format {format!r}; there are: {', '.join(exports.FORMATS)}")
    filter.where()  # a wrong status is said before anything starts
    filter = web_records.without_plain(filter, run)
    told = {name: value for name, value in asdict(filter).items() if value not in (None, ())}
    with transaction.atomic():
        Run.objects.select_for_update().get(pk=run.pk)
        same = Export.objects.filter(run=run, format=format, filter=told, status__in=Export.OPEN).first()
        if same is not None:
            return same  # asked for twice
        if Export.objects.filter(run=run, status__in=Export.OPEN).count() >= MOST_OPEN:
            raise ConfigError(f"{MOST_OPEN} exports of run {run.pk} are under way: wait for one of them, or cancel it")
        made = Export.objects.create(run=run, format=format, filter=told, created_by=audit.person(user))
        audit.write(
            run.sync.workspace.organization_id,
            user,
            "export_records",
            f"run {run.pk}",
            {"export": made.pk, "format": format, **told},
            sync=run.sync,
        )
        transaction.on_commit(lambda: queue.send("export", made.pk))
    return made


def cancel(export: Export, *, user: AbstractBaseUser | None = None) -> None:
    """Its worker stops at the next look."""
    Export.objects.filter(pk=export.pk, status__in=Export.OPEN).update(
        status=Export.Status.CANCELLED, ended_at=timezone.now(), owner=None
    )
    sync = export.run.sync
    told = {"export": export.pk}
    audit.write(sync.workspace.organization_id, user, "cancel_export", f"run {export.run_id}", told, sync=sync)


def place(export: Export) -> Path:
    """Where the worker that does the job writes; where staging is a folder, the file stays there."""
    return Path(settings.ONDATRA.data_dir) / "exports" / f"{export.pk}.{export.format}"


def _bucket(export: Export) -> tuple[Store, str] | None:
    """Where workers and pages are different machines, which share a bucket and no folder: the file's place in it."""
    if not settings.ONDATRA.staging_url.startswith("s3:"):
        return None
    return open_store(settings.ONDATRA.staging_url), f"exports/{export.pk}.{export.format}"


def fetched(export: Export) -> Path | None:
    """The file on this machine; None where there is none any more."""
    there = _bucket(export)
    if export.status != Export.Status.DONE:
        return None
    if there is None or place(export).exists():
        return place(export) if place(export).exists() else None
    store, path = there
    return store.local(path) if store.exists(path) else None


def _handed_over(export: Export) -> None:
    if there := _bucket(export):
        store, path = there
        store.put_file(path, place(export))
        place(export).unlink()


def _gone(export: Export) -> None:
    place(export).unlink(missing_ok=True)
    if there := _bucket(export):
        store, path = there
        store.delete(path)


def name_of(export: Export) -> str:
    """What the fetched file is called."""
    status = f".{export.filter['status']}" if export.filter.get("status") else ""
    return f"{export.run.sync.name}.run{export.run_id}{status}.{export.format}"


def work(export_id: int) -> None:
    """Does the job unless another living process does; begins anew where one died."""
    export = _claimed(export_id)
    if export is None:
        return
    file, problems = place(export), list[str]()
    private.folder(file.parent)
    part = file.with_name(f"{file.name}.{export.lease}.part")
    told: dict[str, Any] = {k: tuple(v) if isinstance(v, list) else v for k, v in export.filter.items()}
    chosen = Filter(**told)
    try:
        files = web_records.listed_files(export.run, chosen.status)
        Export.objects.filter(pk=export.pk).update(wanted=query.count(files, chosen), rows=0)
        with private.file(part).open("wb") as sink:
            rows = exports.export(
                files, chosen, cast(exports.Format, export.format), sink, progress=_teller(export), problems=problems
            )
        part.replace(file)
        size = file.stat().st_size
        _handed_over(export)
        _end(export, Export.Status.DONE, "; ".join(problems[:20]), rows=rows, size=size)
    except Cancelled:
        log.info("export %s was cancelled or taken over", export.pk)
    except (OndatraError, OSError) as error:
        _end(export, Export.Status.FAILED, str(error))
    except BaseException as error:
        _end(export, Export.Status.FAILED, f"stopped: {type(error).__name__}: {error}"[:2000])
        raise
    finally:
        with suppress(OSError):
            part.unlink(missing_ok=True)


def _claimed(export_id: int) -> Export | None:
    with transaction.atomic():
        export = (
            Export.objects.select_for_update(of=("self",))
            .select_related("owner")
            .filter(pk=export_id, status__in=Export.OPEN)
            .first()
        )
        if export is None or (export.status == Export.Status.WORKING and not workers.is_dead(export.owner)):
            return None
        Export.objects.filter(pk=export_id).update(
            status=Export.Status.WORKING, owner=workers.me("push"), lease=F("lease") + 1, started_at=timezone.now()
        )
    return Export.objects.select_related("run__sync__workspace", "run__bucket__organization").get(pk=export_id)


def _teller(export: Export) -> Callable[[int], None]:
    told = [time.monotonic()]

    def tell(rows: int) -> None:
        if time.monotonic() - told[0] < TELL_SECONDS:
            return
        told[0] = time.monotonic()
        if not Export.objects.filter(pk=export.pk, lease=export.lease, status=Export.Status.WORKING).update(rows=rows):
            raise Cancelled(f"export {export.pk} is no longer wanted here")

    return tell


def _end(export: Export, status: str, error: str, **more: int) -> None:
    if (
        not Export.objects.filter(pk=export.pk, lease=export.lease, status=Export.Status.WORKING).update(
            status=status, error=everywhere.text(error), ended_at=timezone.now(), owner=None, **more
        )
        and status == Export.Status.DONE
    ):
        _gone(export)  # cancelled at the last moment


# by the clock


def resume() -> None:
    """Wakes workers for exports whose message or worker was lost."""
    for export in Export.objects.filter(status__in=Export.OPEN).select_related("owner"):
        waits = export.status == Export.Status.QUEUED and timezone.now() - export.created_at > LOST_MESSAGE
        if waits or (export.status == Export.Status.WORKING and workers.is_dead(export.owner)):
            queue.send("export", export.pk)


def remove_old() -> None:
    """Removes files whose time is over."""
    for export in Export.objects.filter(status=Export.Status.DONE, ended_at__lt=timezone.now() - KEPT):
        remove(export)


def remove(export: Export) -> None:
    try:
        _gone(export)
    except StoreError as error:
        log.warning("the file of export %s stays for now: %s", export.pk, error)
        return
    Export.objects.filter(pk=export.pk).update(status=Export.Status.REMOVED)
