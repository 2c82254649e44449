"""The records of a run: which files they lie in, and questions about them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from django.conf import settings
from django.db.models import QuerySet
from django.utils import timezone

from ondatra_web.models import ApiCallFile, MessageGroup, RecordFile, Run, Sync, Workspace
from ondatra_web.tracking import stores, unsent
from runtime.custody.masks import Masker
from runtime.model import Mask
from runtime.records import exports, query
from runtime.records.filter import FileRef, Filter
from runtime.records.query import Page
from runtime.store.base import Store
from runtime.store.folder import FolderStore
from runtime.tracking import requests


def files_of(run: Run) -> list[FileRef]:
    """The run's record files in the order in which they were written. Invalid rows that did not change lie in an
    earlier run's file."""
    if run.dry_run:
        return planned_files(run.pk)
    files = planned_files(run.pk) if run.status == Run.Status.HELD else []
    files += _refs(RecordFile.objects.filter(run=run), stores.of_run(run))
    if run.invalid and not any(f.name.startswith("records_invalid.") for f in files):
        earlier = RecordFile.objects.filter(
            run__sync_id=run.sync_id, run_id__lt=run.pk, batch_type="records_invalid"
        ).select_related("run")
        if (last := earlier.order_by("-run_id").first()) is not None:
            files += _refs(earlier.filter(run_id=last.run_id), stores.of_run(last.run))
    return files


def listed_files(run: Run, status: str | None = None) -> list[FileRef]:
    """With the rows that wait behind them, as windows, downloads and exports list them; of one status only those that
    may have it."""
    waiting = unsent.files(run) if status in (None, "", unsent.WAITING) else []
    return waiting if status == unsent.WAITING else files_of(run) + waiting


def asked_files(run: Run, filter: Filter) -> list[FileRef]:
    """The records of a run, as the API has them; rows that wait are none, unless they are asked for."""
    return unsent.files(run) if filter.status == unsent.WAITING else files_of(run)


def visible(run: Run) -> str:
    """`shown`, `expired`, or empty where a run has no records: the one answer for pages, API, downloads and exports."""
    if not (run.planned or run.invalid):
        return ""
    return "expired" if run.rows_expired_at or kept_until(run) < timezone.now() else "shown"


def kept_until(run: Run) -> datetime:
    return run.created_at + timedelta(days=run.sync.retention_days)


def _refs(rows: QuerySet[RecordFile], store: Store) -> list[FileRef]:
    """Values and no objects: every page of a run asks for all its files."""
    told = rows.order_by("pk").values_list(
        "url", "rows", "counts", "operations", "min_identifier", "max_identifier", "run_id"
    )
    return [FileRef(store, store.path_of(url), *rest) for url, *rest in told]


def planned_folder(run_id: int) -> Path:
    """Where what a dry run would have sent lies, and the first rows that a held run would delete."""
    return Path(settings.ONDATRA.data_dir) / "dry_runs" / str(run_id)


def planned_files(run_id: int) -> list[FileRef]:
    """The same as files, apart from Sync Tracking."""
    folder = planned_folder(run_id)
    store = FolderStore(folder)
    names = sorted(folder.glob("planned.*.parquet"), key=lambda p: int(p.name.split(".")[1]))
    return [query.planned_file(store, p.name, run_id) for p in names]


def first_requests(run: Run) -> dict[str, Any]:
    """What a dry run's push function would have asked for first: `requests` (call, method, url, headers, body) and what
    it `said`; empty for other runs."""
    place = planned_folder(run.pk) / "requests.json"
    return dict(json.loads(place.read_text(encoding="utf-8"))) if run.dry_run and place.exists() else {}


def record_at(sync: Sync, place: str) -> dict[str, Any] | None:
    """The whole record at a place that the history names."""
    run_id, _, address = place.partition("/")
    run = Run.objects.filter(sync=sync, pk=int(run_id)).first() if query.is_row(run_id) else None
    return query.record(files_of(run), address) if run else None


def forms(workspace: Workspace, identifier: str) -> list[str]:
    """People search by the plain identifier or by the masked one."""
    return [identifier, Masker([Mask("identifier", "hash")], workspace.mask_key).value("identifier", identifier)]


def with_masked(filter: Filter, run: Run) -> Filter:
    """The same filter, looking for both forms of its identifiers."""
    plain = [] if filter.identifier is None else [filter.identifier]
    found = [form for text in (*plain, *filter.identifiers) for form in forms(run.sync.workspace, text)]
    return replace(filter, identifier=None, identifiers=tuple(dict.fromkeys(found)))


def without_plain(filter: Filter, run: Run) -> Filter:
    """The same filter for keeping: what a person searched for is left out where the records hold only its masked
    form."""
    filter = with_masked(filter, run)
    if not filter.identifiers:
        return filter
    told = exports.selected(files_of(run), Filter(identifiers=filter.identifiers), "DISTINCT identifier")
    found = {identifier for batch in told for identifier in batch.column(0).to_pylist()}
    return replace(filter, identifiers=tuple(i for i in filter.identifiers if i in found) or filter.identifiers[-1:])


def records_of(
    run: Run, filter: Filter | None = None, *, after: str | None = None, offset: int = 0, limit: int = 100
) -> Page:
    """One page of the run's records. Raises ConfigError for a wrong filter, StoreError when the store is down."""
    chosen = filter or Filter()
    return query.page(asked_files(run, chosen), with_masked(chosen, run), after=after, offset=offset, limit=limit)


def count_of(run: Run, filter: Filter | None = None) -> int:
    chosen = filter or Filter()
    return query.count(asked_files(run, chosen), with_masked(chosen, run))


def calls_of(run: Run, record: Mapping[str, Any], place: str = "") -> list[dict[str, Any]]:
    """The requests and answers of the push call that sent this record; with its `place` only the file of its chunk is
    opened."""
    store = stores.of_run(run)
    kept = ApiCallFile.objects.filter(run=run).order_by("pk")
    kind, _, number = place.rpartition(":")[0].partition(".")
    if query.is_row(number):
        delivery = (
            RecordFile.objects.filter(run=run, batch_type=kind, number=int(number))
            .values_list("delivery_id", flat=True)
            .first()
        )
        kept = kept.filter(delivery_id=delivery) if delivery else kept
    return requests.calls_of(store.locals([store.path_of(url) for url in kept.values_list("url", flat=True)]), record)


def reasons(run_id: int, most: int = 5) -> list[str]:
    """The commonest messages of a run, a line each: how many records, what became of them, one message as it came, and
    an identifier that had it."""
    found: list[tuple[int, str]] = []
    for group in MessageGroup.objects.filter(run_id=run_id).order_by("-rows", "pk"):
        said = f"{(group.sample_message.splitlines() or [''])[0]} ({group.sample_identifier})"
        counts = (group.ended, group.status), (group.due, "due again")
        lines = [(number, f"{number:>7,} {what}: {said}") for number, what in counts if number]
        found += lines or [(0, f"{group.beside:>7,} old images: {said}")]
    found.sort(key=lambda pair: -pair[0])
    more = len(found) - most
    return [line for _, line in found[:most]] + ([f"        and {more} other reasons"] if more > 0 else [])
