"""What happened to a thing over runs: the index of an organization's histories, and the record files that it lacks."""

from __future__ import annotations

import logging
import shutil
from collections.abc import Collection, Iterable, Iterator, Sequence
from datetime import timedelta
from pathlib import Path
from typing import Any, NamedTuple

from django.conf import settings
from django.db import connection
from django.db.models import F, Q, QuerySet
from django.db.models.functions import Collate
from django.utils import timezone

from ondatra_web.models import Bucket, Organization, RecordFile, Sync
from ondatra_web.tracking import stores
from ondatra_web.tracking.records import forms
from runtime.errors import ConfigError, OndatraError
from runtime.records.filter import FileRef
from runtime.records.history import HistoryIndex, Settled
from runtime.records.newest import LAST
from runtime.records.unindexed import key
from runtime.store.base import Store

log = logging.getLogger("ondatra.tracking")

#: Between a file's id and its commit lies less than this.
COMMITTED = timedelta(minutes=10)


class _Kept(NamedTuple):
    """A record file that is still kept."""

    pk: int
    sync: int
    file: FileRef


def index_of(organization_id: int) -> HistoryIndex:
    return HistoryIndex(_folder() / f"organization-{organization_id}")


def _folder() -> Path:
    return Path(settings.ONDATRA.data_dir) / "history"


def history_of(sync: Sync, identifier: str, *, limit: int = 200) -> list[dict[str, Any]]:
    """What happened to one thing over the runs, newest first; `place` is `RUN/FILE:ROW`, see `records.record_at`."""
    called = forms(sync.workspace, identifier)
    index = index_of(sync.workspace.organization_id)
    return index.find(files_of(sync, called), called, sync=sync.pk, limit=limit)


def files_of(sync: Sync, called: Sequence[str] = ()) -> list[FileRef]:
    """The files of all runs of a sync that are still kept, newest first; only what a history needs of them. With forms
    of an identifier only the files whose bounds leave room for it: of a large sync the database names a few."""
    problems: list[str] = []
    found = [one.file for one in _read(_with_room(_kept().filter(run__sync=sync), called), problems)]
    if problems:
        raise ConfigError(problems[0])
    return found


def unindexed(
    organization_id: int,
    syncs: Collection[int],
    called: Sequence[str],
    prefix: str | None,
    upto: int,
    problems: list[str],
) -> dict[int, list[FileRef]]:
    """The files of these syncs' runs up to one that the index does not cover and that have room for what is looked for,
    by sync."""
    index = index_of(organization_id)
    covered = index.covered()
    found: dict[int, list[FileRef]] = {}
    for one in _read(_with_room(_unsettled(index.settled()), called, prefix), problems):
        if one.sync in syncs and (one.file.run_id or 0) <= upto and key(one.file) not in covered:
            found.setdefault(one.sync, []).append(one.file)
    return found


# the scheduler's work


def refresh(organization: Organization) -> int:
    """Brings the index up to date; what is no longer kept leaves it. How many record files were added."""
    for old in _folder().glob("[0-9]*"):  # each sync had one of its own
        shutil.rmtree(old, ignore_errors=True)

    index, upto = index_of(organization.pk), _committed()
    files = list(_told(_kept().filter(run__sync__workspace__organization=organization)))
    added = index.refresh([one.file for one in files])
    runs = {name.partition("/")[0] for name in index.covered()}
    _settle(index, files, upto, runs - {str(one.file.run_id) for one in files})
    return added


def add_new(organization: Organization) -> int:
    """Adds the files that were written since; how many."""
    index, upto = index_of(organization.pk), _committed()
    settled = index.settled()
    own = set(Sync.objects.filter(workspace__organization=organization).values_list("pk", flat=True))
    files = [one for one in _told(_unsettled(settled)) if one.sync in own]
    added = index.refresh([one.file for one in files], all_kept=False)
    _settle(index, files, upto, settled.gone)
    return added


def _told(files: QuerySet[RecordFile]) -> Iterator[_Kept]:
    problems: list[str] = []
    yield from _read(files, problems)
    for problem in problems:
        log.warning("records stay out of the index of histories: %s", problem)


def _settle(index: HistoryIndex, files: Iterable[_Kept], upto: int, gone: Iterable[str]) -> None:
    """The next question compares with the index only what was written lately, and what could not be read."""
    covered = index.covered()
    left = (one.pk for one in files if one.pk <= upto and key(one.file) not in covered)
    index.settle(Settled(upto, tuple(left), tuple(sorted(gone))))


def _committed() -> int:
    """All files with at most this id are there: what got its id at the same time is committed."""
    old = RecordFile.objects.filter(written_at__lt=timezone.now() - COMMITTED)
    return old.order_by("-pk").values_list("pk", flat=True).first() or 0


# record files


def _kept() -> QuerySet[RecordFile]:
    return RecordFile.objects.filter(run__rows_expired_at=None)


def _unsettled(settled: Settled) -> QuerySet[RecordFile]:
    """Of all organizations, because few are so new, and an index of the database leads to them."""
    return _kept().filter(Q(pk__gt=settled.upto) | Q(pk__in=settled.left))


def _with_room(files: QuerySet[RecordFile], called: Sequence[str], prefix: str | None = None) -> QuerySet[RecordFile]:
    """Those whose bounds leave room for one of these identifiers, or for what begins so; the database compares."""
    ranges = [(form, form) for form in called] + ([(prefix, prefix + LAST)] if prefix else [])
    if not ranges:
        return files
    room = Q(min_identifier=None) | Q(max_identifier=None)
    for first, last in ranges:
        # PostgreSQL has no text for NUL, and the bounds end there too
        room |= Q(low__lte=last.partition("\0")[0], high__gte=first.partition("\0")[0])
    return files.alias(low=_bytes("min_identifier"), high=_bytes("max_identifier")).filter(room)


def _bytes(column: str) -> Any:
    """The text ordered as its bytes are, which is how the bounds were found; SQLite does so anyway."""
    return Collate(column, "C") if connection.vendor == "postgresql" else F(column)


def _read(files: QuerySet[RecordFile], problems: list[str]) -> Iterator[_Kept]:
    """Newest first; those of a store that cannot be opened are told and left out."""
    rows = files.order_by("-pk").values_list(
        "pk", "run__sync", "url", "rows", "min_identifier", "max_identifier", "run_id", "run__store_url", "run__bucket"
    )
    buckets = Bucket.objects.select_related("organization").in_bulk({row[-1] for row in rows if row[-1]})
    opened: dict[tuple[str, int | None], Store | None] = {}
    for pk, sync, url, n, low, high, run, root, bucket in rows:
        if (root, bucket) not in opened:
            opened[root, bucket] = _opened(root, buckets.get(bucket), problems)
        if (store := opened[root, bucket]) is not None:
            yield _Kept(pk, sync, FileRef(store, store.path_of(url), n, None, None, low, high, run))


def _opened(root: str, bucket: Bucket | None, problems: list[str]) -> Store | None:
    try:
        return stores.at(root, bucket)
    except OndatraError as error:
        problems.append(str(error))
        return None
