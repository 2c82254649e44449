"""The mark of a sync moves: chunks, deliveries, counts and the mark become true together."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

from ondatra_web.models import Delivery, Run, Sync
from ondatra_web.runs import deliveries, record_files, waiting
from runtime.columns import H1, KEY
from runtime.pipeline.building import Result, SyncWork
from runtime.push.function import PushFunction
from runtime.staging import chunks, layout
from runtime.staging.request import Staged
from runtime.staging.units import KEYED
from runtime.store.base import Store
from runtime.tracking import files
from runtime.tracking.info import RunInfo


def move(
    run: Run,
    work: SyncWork,
    result: Result,
    staged: Staged | None,
    push: PushFunction,
    invalid_files: Sequence[files.WrittenFile] = (),
) -> bool:
    """Should be called in a transaction. False where it was done already, and the commit not heard of."""
    run = Run.objects.select_for_update().get(pk=run.pk)
    if run.staged:
        return False

    sync = Sync.objects.select_for_update().get(pk=run.sync_id)
    _move(sync, run, result, push, new_invalid=bool(invalid_files))
    record_files.add(run.pk, None, invalid_files)
    if work.baseline or work.fresh or (result.severed and sync.kind not in KEYED):
        waiting.forget(sync)

    planned = [] if work.baseline else deliveries.planned(run, sync, staged, sync.columns)
    deliveries.numbered(planned, push.api.push.batch_size)
    left_out = deliveries.limited(planned, run.options.get("limit"))
    Delivery.objects.bulk_create([d for d in planned if d.rows])
    _count(run, sync, staged, sum(d.records for d in planned), left_out)
    return True


def _move(sync: Sync, run: Run, result: Result, push: PushFunction, *, new_invalid: bool) -> None:
    model, built = result.model, result.built
    assert model.sink is not None
    told: dict[str, Any] = {
        "mark": result.version,
        "mark_commit": result.commit,
        "kind": model.kind,
        "key": list(model.key),
        "function": model.sink.function,
        "sink_args": list(model.sink.args),
        "destination_type": push.api.destination.type,
        "destination_object": push.api.destination.object,
        "columns": [[c.name, c.duckdb_type, c.spark_type] for c in result.columns],
    }
    if built is not None:
        told |= {
            "source_rows": built.source,
            "invalid_rows": built.invalid_rows,
            "invalid_digest": built.invalid_digest if built.invalid_rows else "",
            "invalid_run": run if new_invalid else sync.invalid_run if built.invalid_rows else None,
        }
    for name, value in told.items():
        setattr(sync, name, value)
    sync.save()


def _count(run: Run, sync: Sync, staged: Staged | None, planned: int, left_out: int) -> None:
    run.source_count, run.invalid = sync.source_rows, sync.invalid_rows
    run.changed, run.deleted = (staged.changed, staged.deleted) if staged else (0, 0)
    run.planned = planned + left_out
    run.carried = run.planned - run.changed - run.deleted
    run.unchanged = run.source_count - run.invalid - run.changed
    run.not_tried = left_out
    run.staged, run.table_version, run.step = True, sync.mark, "push"
    run.save()


def write_invalid(run: Run, store: Store, info: RunInfo, result: Result, out_url: str) -> Sequence[files.WrittenFile]:
    """Invalid rows are recorded when they differ from the last run's; else the run refers to that run's file."""
    built = result.built
    if built is None or built.invalid is None or built.invalid_digest == run.sync.invalid_digest:
        return ()
    urls = layout.write_plain(built.invalid, f"{out_url}/invalid", built.invalid_rows, order=(KEY, H1))
    numbers = itertools.count()
    return [
        file
        for url in urls
        for file in files.write_invalid(store, info, chunks.read_chunk(url, None), lambda _: next(numbers))
    ]
