"""Syncs that have nothing to do: their runs are written together, by a handful of queries for a thousand of them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cached_property
from typing import Any

from django.db import transaction
from django.utils import timezone

from ondatra_web.alerts import judging
from ondatra_web.models import Job, Run, RunLog, Sync, Workspace
from ondatra_web.runs import waiting
from ondatra_web.runs.beginning import held_by_change
from ondatra_web.runs.patience import patiently
from ondatra_web.tracking import stores
from runtime.errors import StoreError
from runtime.model import Model
from runtime.pipeline.building import Result
from runtime.push.function import PushFunction
from runtime.store.base import Store
from runtime.tracking.info import RunInfo, with_columns
from runtime.tracking.metadata import metadata, write_metadata

Place = tuple[Store, RunInfo]


class Resting:
    """The syncs of a workspace of which nothing waits and no run works, as they are when they are first asked for."""

    def __init__(self, workspace: Workspace) -> None:
        self.workspace = workspace

    @cached_property
    def syncs(self) -> Mapping[str, Sync]:
        """By name."""
        syncs = Sync.objects.filter(workspace=self.workspace, finalize_due=False, archived_at=None).select_related(
            "destination__destination"
        )
        busy = [
            waiting.of_syncs(syncs),
            Job.objects.filter(sync__in=syncs, ended_at=None),
            Run.objects.filter(sync__in=syncs, status__in=Run.AT_WORK),
        ]
        taken = {pk for rows in busy for pk in rows.values_list("sync_id", flat=True)}
        return {sync.name: sync for sync in syncs if sync.pk not in taken}

    def is_idle(self, model: Model, push: PushFunction, version: int | None, columns: Any) -> bool:
        """Whether the sync stands at that version of its table, and its file says what it said."""
        sync = self.syncs.get(model.name)
        if sync is None or model.sink is None or sync.destination is None:
            return False
        told = push.api.destination
        return (
            sync.mark == version
            and not held_by_change(sync, model)
            and sync.sink_args == list(model.sink.args)
            and sync.columns == columns
            and (sync.destination.destination.type, sync.destination.name) == (told.type, told.object)
        )

    def write(
        self,
        results: Sequence[Result],
        *,
        trigger: str,
        options: Mapping[str, Any],
        store_of: Callable[[Run], Place],
        remember: Callable[[Result], None],
        began: Callable[[int, str], None],
    ) -> dict[str, Run]:
        """The completed runs of these idle syncs, by name."""
        runs, places = self._made(results, trigger, options, store_of, remember)
        for run in runs:
            began(run.pk, run.sync.name)
        _describe_all(runs, places)
        judging.ended()
        return {result.model.name: run for run, result in zip(runs, results, strict=True)}

    @patiently
    def _made(
        self,
        results: Sequence[Result],
        trigger: str,
        options: Mapping[str, Any],
        store_of: Callable[[Run], Place],
        remember: Callable[[Result], None],
    ) -> tuple[list[Run], list[Place]]:
        with transaction.atomic():
            runs = self._runs(results, trigger, options)
            Run.objects.bulk_create(runs)

            places: list[Place] = []
            for run, result in zip(runs, results, strict=True):
                store, info = store_of(run)
                places.append((store, with_columns(info, result.columns)))
                run.metadata = metadata(places[-1][1])
                remember(result)
            Run.objects.bulk_update(runs, ["metadata"])
        return runs, places

    def _runs(self, results: Sequence[Result], trigger: str, options: Mapping[str, Any]) -> list[Run]:
        now, (url, bucket) = timezone.now(), stores.current(self.workspace.organization_id)
        shared: dict[str, Any] = {
            "status": Run.Status.COMPLETED,
            "trigger": trigger,
            "started_at": now,
            "ended_at": now,
            "lease": 1,
            "options": dict(options),
            "staged": True,
            "tracking": "written",
            "step": "push",
            "step_times": dict.fromkeys(("build", "changes", "push"), now.isoformat()),
            "store_url": url,
            "bucket": bucket,
        }
        syncs = [self.syncs[result.model.name] for result in results]
        return [
            Run(
                **shared,
                sync=sync,
                table_version=sync.mark,
                source_count=sync.source_rows,
                invalid=sync.invalid_rows,
                unchanged=sync.source_rows - sync.invalid_rows,
            )
            for sync in syncs
        ]


def _describe_all(runs: Sequence[Run], places: Sequence[Place]) -> None:
    """Writes the metadata.json of each, side by side, because each waits for the disk or the network."""
    with ThreadPoolExecutor(8) as pool:
        problems = list(pool.map(_describe, places))
    patiently(RunLog.objects.bulk_create)(
        [RunLog(run=run, level="warning", text=why) for run, why in zip(runs, problems, strict=True) if why]
    )


def _describe(place: Place) -> str:
    """Writes a run's metadata.json; what went wrong."""
    try:
        write_metadata(*place)
    except StoreError as error:
        return f"the files of this run wait: {error}"
    return ""
