"""The records of a run: which files they lie in, and questions about them."""
from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path

from django.conf import settings

from ondatra_web.models import RecordFile, Run, Sync
from runtime import records
from runtime.errors import StoreError
from runtime.masks import Masker
from runtime.model import Mask
from runtime.records import FileRef, Filter, Page
from runtime.store import FolderStore, Store, open_store


def store_of(run: Run) -> Store:
    """The store that the run's files were written to."""
    return open_store(run.store_url or settings.ONDATRA.tracking_url)


def files_of(run: Run) -> list[FileRef]:
    """The run's record files in the order in which they were written. Invalid rows that did not change lie in an earlier run's file."""
    if run.dry_run:
        return planned_files(run.pk)
    own = list(RecordFile.objects.filter(run=run).order_by("pk"))
    files = _refs(own, store_of(run))
    if run.invalid and not any(f.batch_type == "records_invalid" for f in own):
        earlier = RecordFile.objects.filter(run__sync_id=run.sync_id, run_id__lt=run.pk, batch_type="records_invalid").select_related("run")
        if (last := earlier.order_by("-run_id").first()) is not None:
            files += _refs(earlier.filter(run_id=last.run_id).order_by("pk"), store_of(last.run))
    return files


def _refs(rows: Iterable[RecordFile], store: Store) -> list[FileRef]:
    return [FileRef(store, store.path_of(f.url) if "://" in f.url else f.url, f.rows, f.counts, f.operations, f.min_identifier, f.max_identifier, f.run_id)
            for f in rows]


def planned_files(run_id: int) -> list[FileRef]:
    """What a dry run would have sent, apart from Sync Tracking."""
    folder = Path(settings.ONDATRA.data_dir) / "dry_runs" / str(run_id)
    store = FolderStore(folder)
    names = sorted(folder.glob("planned.*.parquet"), key=lambda p: int(p.name.split(".")[1]))
    return [records.planned_file(store, p.name, run_id) for p in names]


def history_files(sync: Sync) -> list[FileRef]:
    """The files of all runs of a sync that are still kept, newest first."""
    rows = RecordFile.objects.filter(run__sync=sync, run__rows_expired_at=None).select_related("run").order_by("-pk")
    return [ref for row in rows for ref in _refs([row], store_of(row.run))]


def masker_of(run: Run, masks: Sequence[Mask]) -> Masker:
    return Masker(masks, run.sync.workspace.mask_key)


def with_masked(filter: Filter, run: Run) -> Filter:
    """People search by the plain identifier or by the masked one; both forms are looked for."""
    if filter.identifier is None:
        return filter
    hashed = Masker([Mask("identifier", "hash")], run.sync.workspace.mask_key).value("identifier", filter.identifier)
    return replace(filter, identifiers=(*filter.identifiers, hashed))


def records_of(run: Run, filter: Filter | None = None, *, after: str | None = None, offset: int = 0, limit: int = 100) -> Page:
    """One page of the run's records. Raises ConfigError for a wrong filter, StoreError when the store is down."""
    return records.page(files_of(run), with_masked(filter or Filter(), run), after=after, offset=offset, limit=limit)


def count_of(run: Run, filter: Filter | None = None) -> int:
    return records.count(files_of(run), with_masked(filter or Filter(), run))


__all__ = ["Filter", "Page", "StoreError", "count_of", "files_of", "history_files", "planned_files", "records_of", "store_of", "with_masked"]
