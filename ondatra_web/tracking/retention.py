"""What is kept for how long: records of runs past their retention are removed, file by file; counts and message groups
stay.

May be broken off at any place: a run counts as expired once all its files are gone, and the next round begins where
this one ended.
"""

from __future__ import annotations

import datetime as dt
import logging
import re
import shutil
from collections.abc import Iterator
from pathlib import Path

from django.conf import settings
from django.db import transaction
from django.db.models import QuerySet
from django.utils import timezone

from ondatra_web.models import ApiCallFile, Bucket, Export, RecordFile, Run, RunLog
from ondatra_web.tracking import exporting, stores
from runtime.errors import ConfigError, OndatraError
from runtime.store.base import Store

log = logging.getLogger("ondatra.retention")
#: Runs whose records one round removes; the next round goes on.
MOST = 50
INVALID = "records_invalid"
#: What we write into a run's folders. Anything else in there is somebody else's and stays.
OURS = re.compile(r"(?:records_(?:updated|deleted|invalid)\.\d+|\d+(?:-\d+)?)\.parquet|metadata\.json")


def expire() -> int:
    """One round; how many runs expired. A store that is down is left for a later round."""
    gone, down = 0, set()
    for run, days in _due():
        place = run.store_url, run.bucket_id
        if place in down:
            continue
        try:
            _expire(run, f"after {days} days")
        except OndatraError as error:
            down.add(place)
            log.warning("the records of run %s past their retention of %s days stay for now: %s", run.pk, days, error)
        else:
            gone += 1
    _remove_left_behind()
    return gone


def _due() -> Iterator[tuple[Run, int]]:
    """Runs past their retention, oldest first, with the days. A bucket of an organization's own is cleaned only where
    it has days of its own."""
    ended = (
        Run.objects.filter(rows_expired_at=None, ended_at__isnull=False)
        .exclude(status__in=Run.ACTIVE)
        .exclude(tracking="pending")
        .select_related("sync__workspace", "bucket__organization")
        .order_by("pk")
    )
    ours = ended.filter(bucket=None).exclude(store_url="", dry_run=False)
    for days in ours.order_by().values_list("sync__retention_days", flat=True).distinct():
        yield from ((run, days) for run in _older(ours.filter(sync__retention_days=days), days))
    for bucket in Bucket.objects.filter(retention_days__isnull=False):
        assert bucket.retention_days is not None
        yield from ((run, bucket.retention_days) for run in _older(ended.filter(bucket=bucket), bucket.retention_days))


def _older(runs: QuerySet[Run], days: int) -> QuerySet[Run]:
    return runs.filter(created_at__lt=timezone.now() - dt.timedelta(days=days))[:MOST]


def expire_now(run: Run) -> None:
    """Removes the records of one run that has ended, whatever its days are. Raises StoreError, ConfigError."""
    if run.ended_at is None:
        raise ConfigError(f"run {run.pk} is {run.status}: its records can be removed once it has ended")
    if run.tracking == "pending":
        raise ConfigError(f"record files of run {run.pk} still wait for the store: write them first")
    if run.rows_expired_at is not None:
        raise ConfigError(f"the records of run {run.pk} expired already, at {run.rows_expired_at:%Y-%m-%d %H:%M} UTC")
    _expire(run, "by hand")


def _expire(run: Run, when: str) -> None:
    kept = list(RecordFile.objects.filter(run=run, batch_type=INVALID)) if _still_shown(run) else []
    for kind in ("dry_runs", "waiting"):
        shutil.rmtree(Path(settings.ONDATRA.data_dir) / kind / str(run.pk), ignore_errors=True)
    if run.dry_run:
        removed = 0
    else:
        store = stores.of_run(run)
        removed = _remove(store, run, {store.path_of(f.url) for f in kept})
    for export in Export.objects.filter(run=run, status=Export.Status.DONE):
        exporting.remove(export)
    with transaction.atomic():
        RecordFile.objects.filter(run=run).exclude(pk__in=[f.pk for f in kept]).delete()
        ApiCallFile.objects.filter(run=run).delete()
        if removed:
            RunLog.objects.create(run=run, text=f"the records were removed {when}: {removed:,} files")
        Run.objects.filter(pk=run.pk).update(rows_expired_at=timezone.now())
    log.info("the records of run %s of %s were removed %s: %s files", run.pk, run.sync.name, when, removed)


def _remove(store: Store, run: Run, kept: set[str]) -> int:
    """The run's files but the kept ones and what is not ours; how many are gone."""
    removed = 0
    for kind in ("sync_tracking_datasets", "api_calls"):
        folder = f"{kind}/{run.sync.workspace.organization_id}/{run.sync_id}/{run.pk}/"
        paths = list(store.list(folder))
        mine = [path for path in paths if path not in kept and OURS.fullmatch(path.removeprefix(folder))]
        if mine and len(mine) == len(paths):
            store.delete_prefix(folder)
        else:
            for path in mine:
                store.delete(path)
        removed += len(mine)
    return removed


# invalid rows that did not change lie in an earlier run's file


def _still_shown(run: Run) -> bool:
    """Whether a later run that is still kept shows the invalid rows that lie in this run's file."""
    files = RecordFile.objects.filter(run__sync_id=run.sync_id, batch_type=INVALID)
    if not files.filter(run=run).exists():
        return False
    following = files.filter(run_id__gt=run.pk).order_by("run_id").values_list("run_id", flat=True).first()
    later = Run.objects.filter(sync_id=run.sync_id, pk__gt=run.pk, invalid__gt=0, dry_run=False, rows_expired_at=None)
    return (later.filter(pk__lt=following) if following else later).exists()


def _remove_left_behind() -> None:
    """Files of expired runs that a later run showed until now."""
    for run in (
        Run.objects.filter(pk__in=RecordFile.objects.filter(run__rows_expired_at__isnull=False).values("run"))
        .select_related("sync__workspace", "bucket__organization")
        .order_by("pk")[:MOST]
    ):
        if _still_shown(run):
            continue
        try:
            removed = _remove(stores.of_run(run), run, set())
        except OndatraError as error:
            log.warning("files of the expired run %s stay for now: %s", run.pk, error)
            continue
        RecordFile.objects.filter(run=run).delete()
        log.info("run %s of %s had expired: its last %s files removed", run.pk, run.sync.name, removed)
