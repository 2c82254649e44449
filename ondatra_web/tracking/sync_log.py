"""Keeps the table `sync_log` of each organization: every record file that the database knows goes in once.

Files are given a batch number in the database before Spark writes them under that number; a batch that a dead process
left is written again under the same number, which Delta takes once. So no row is missing and none stands twice.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from django.conf import settings
from django.db import transaction
from django.db.models import QuerySet

from ondatra_web import workers
from ondatra_web.models import Organization, RecordFile, Run, SyncLog
from ondatra_web.tracking import stores
from runtime.errors import ConfigError, OndatraError, StoreError
from runtime.tracking import sync_log
from runtime.tracking.sync_log import LogFile

log = logging.getLogger("ondatra.sync_log")
#: Record files of one commit: some ten million rows.
BATCH_FILES = 200
#: Whether Spark's executors read buckets themselves; None: as SPARK_MASTER says.
ON_A_CLUSTER: bool | None = None


@dataclass
class Written:
    """What one call added."""

    url: str
    files: int = 0
    rows: int = 0
    problems: list[str] = field(default_factory=list)


def url_of(organization: Organization) -> str:
    return f"{settings.ONDATRA.lake_url}/sync_log/{organization.pk}"


def waiting(organization: Organization) -> bool:
    """Whether there is a record file that is not in the table."""
    done = SyncLog.objects.filter(organization=organization).values_list("done", flat=True).first() or 0
    return (
        _files(organization).filter(log_batch=None).exists() or _files(organization).filter(log_batch__gt=done).exists()
    )


def write(organization: Organization, progress: Callable[[int], None] = lambda rows: None) -> Written:
    """Brings the table up to date; without new files nothing is started. `progress` is told the records so far. Raises
    ConfigError where another process is at it."""
    written = Written(url_of(organization))
    if not waiting(organization):
        return written
    _claim(organization)
    set_aside: set[int] = set()
    try:
        while files := _next(organization, set_aside):
            _write(organization, files, written, set_aside)
            progress(written.rows)
    finally:
        SyncLog.objects.filter(organization=organization).update(owner=None)
    return written


def keep(organization: Organization) -> None:
    """The same for a worker, who tells the log what went wrong."""
    try:
        written = write(organization)
    except OndatraError as error:
        log.warning("the sync log of organization %s waits: %s", organization.pk, error)
        return
    for problem in written.problems:
        log.warning("the sync log of organization %s: %s", organization.pk, problem)


def _files(organization: Organization) -> QuerySet[RecordFile]:
    return RecordFile.objects.filter(run__sync__workspace__organization=organization)


def _claim(organization: Organization) -> None:
    me = workers.me()
    with transaction.atomic():
        SyncLog.objects.get_or_create(organization=organization)
        row = SyncLog.objects.select_for_update(of=("self",)).select_related("owner").get(organization=organization)
        if workers.is_anothers(row.owner):
            raise ConfigError(
                f"the sync log of organization {organization.pk} is being written by {row.owner}: wait for it"
            )
        SyncLog.objects.filter(pk=row.pk).update(owner=me)


def _next(organization: Organization, set_aside: set[int]) -> list[RecordFile]:
    """The batch that was begun and not ended, else a new one of files that are in none."""
    related = "run__sync__workspace", "run__sync__destination", "run__bucket__organization"
    with transaction.atomic():
        row = SyncLog.objects.select_for_update().get(organization=organization)
        files = _files(organization).select_related(*related)
        begun = list(files.filter(log_batch__gt=row.done).order_by("pk"))
        if begun:
            return begun
        new = list(files.filter(log_batch=None).exclude(pk__in=set_aside).order_by("pk")[:BATCH_FILES])
        if not new:
            return []
        number = row.begun + 1  # never again one whose files were removed meanwhile
        SyncLog.objects.filter(pk=row.pk).update(begun=number)
        RecordFile.objects.filter(pk__in=[f.pk for f in new]).update(log_batch=number)
        for file in new:
            file.log_batch = number
        return new


def _write(organization: Organization, files: Sequence[RecordFile], written: Written, set_aside: set[int]) -> None:
    from runtime.lake import spark

    number = files[0].log_batch
    assert number is not None
    given = [_given(f) for f in files]
    try:
        sync_log.append(spark.isolated(settings.ONDATRA), written.url, given, number, cluster=ON_A_CLUSTER)
    except Exception as error:
        broken = sync_log.damaged(given)
        if not broken:
            raise StoreError(
                f"the sync log {written.url} could not be written: {str(error).splitlines()[0][:500]}"
            ) from error
        away = [f.pk for f, g in zip(files, given, strict=True) if g.path in broken]
        RecordFile.objects.filter(pk__in=away).update(log_batch=None)
        set_aside.update(away)
        written.problems += [f"{path} is left out for now: {why}" for path, why in broken.items()]
        return
    SyncLog.objects.filter(organization=organization).update(done=number)
    written.files += len(files)
    written.rows += sum(f.rows for f in files)


def _given(file: RecordFile) -> LogFile:
    run, store = file.run, stores.of_run(file.run)
    return LogFile(store, store.path_of(file.url), file.rows, run.pk, ids_of(run))


def ids_of(run: Run) -> tuple[int | None, int | None, int | None]:
    """As the run's metadata.json has them; of a run that a retry made, those of its sync."""
    if run.metadata:
        return tuple(run.metadata.get(name) for name in sync_log.IDS)  # type: ignore[return-value]
    found = run.sync.destination
    return run.sync_id, found.destination_id if found else None, found.pk if found else None
