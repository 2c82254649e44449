"""The pipeline's memory: runtime.pipeline.line.Ledger over Django's tables."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import Any

import pyarrow as pa
from django.conf import settings
from django.db import connection, transaction

from ondatra_web.models import ModelState, Run, RunLog, Sync, Workspace
from ondatra_web.runs import beginning, ending, marks, progress, waiting
from ondatra_web.runs.patience import patiently
from ondatra_web.runs.resting import Resting
from ondatra_web.runs.states import ModelStates
from ondatra_web.runs.watch import Watch
from ondatra_web.tracking.records import planned_folder
from runtime import faults
from runtime.errors import HeldError, StoreError
from runtime.model import Column, Model
from runtime.pipeline.building import Remembered, Result, SyncWork
from runtime.push.function import PushFunction
from runtime.staging import states, values
from runtime.staging.chunks import WaitingChunk
from runtime.staging.request import Staged
from runtime.store.base import Store
from runtime.tracking import files
from runtime.tracking.info import RunInfo, rules_of, with_columns
from runtime.tracking.metadata import metadata, write_metadata

LOST = "Spark's executor {} was lost while the table was built: its part was done again by others"


class DatabaseLedger:
    """One walk's memory. `options` are those of the run command; `given` are runs that a page or a schedule made
    before."""

    def __init__(
        self,
        workspace: Workspace,
        pushes: Mapping[str, PushFunction],
        *,
        options: Mapping[str, Any],
        trigger: str,
        given: Mapping[str, Run] | None = None,
        close_dead: Callable[[Run], None],
        store_of: Callable[[Run], tuple[Store, RunInfo]],
        watch: Watch,
    ) -> None:
        self.workspace, self.pushes, self.options, self.trigger = workspace, pushes, dict(options), trigger
        self.given = dict(given or {})
        self.close_dead, self.store_of, self.watch = close_dead, store_of, watch
        self.runs: dict[str, Run] = {}  # by model name
        self.states = ModelStates(workspace)
        self.resting = Resting(workspace)

    # models

    def table_url(self, model: str) -> str:
        return self.states.url(model)

    def remembered(self, model: str) -> Remembered | None:
        return self.states.remembered(model)

    def claim(self, model: Model) -> bool:
        return patiently(self.states.claim)(model.name)

    def remember(self, result: Result) -> None:
        patiently(self.states.note)(result)
        self.states.free(result.model.name)

    def finish(self) -> None:
        """After the walk, however it ended."""
        self.states.finish()

    def writable(self, model: Model, spark: Any) -> None:
        """The lake's own tables are written as they are."""

    # runs

    def idle(self, model: Model, known: Remembered) -> bool:
        if model.name in self.given or any(self.options.values()):
            return False
        columns = self.states.known[model.name].columns
        return self.resting.is_idle(model, self.pushes[model.name], known.version, columns)

    def rested(self, results: Sequence[Result]) -> None:
        if results:
            self.runs |= self.resting.write(
                results,
                trigger=self.trigger,
                options=self.options,
                store_of=self.store_of,
                remember=self.remember,
                began=self.watch.began,
            )

    def begin(self, model: Model, since: datetime) -> SyncWork | None:
        sync = patiently(Sync.objects.get)(workspace=self.workspace, name=model.name)
        self._close_dead(sync)
        given = self.given.get(sync.name)
        run = beginning.take(sync, given, since, trigger=self.trigger, options=self.options)
        self.runs[model.name] = run
        if run.status != Run.Status.WORKING:
            return None

        self.watch.began(run.pk, sync.name)
        changed = beginning.held_by_change(sync, model)
        if changed and not (run.full or run.options.get("baseline")):
            ending.end(run, Run.Status.HELD, changed)
            return None
        return self._work(sync, run, fresh=bool(changed))

    def _close_dead(self, sync: Sync) -> None:
        """Runs whose process died are closed on the way."""
        given = self.given.get(sync.name)
        for run in Run.objects.filter(sync=sync, status__in=Run.AT_WORK).select_related("owner"):
            if not (given and given.pk == run.pk) and not beginning.is_alive(run):
                self.close_dead(run)

    def _work(self, sync: Sync, run: Run, *, fresh: bool) -> SyncWork:
        left = tuple(WaitingChunk(c.pk, c.url, states.unpack(bytes(c.states))) for c in waiting.chunks_of(sync))
        return SyncWork(
            run_id=run.pk,
            mark=sync.mark,
            waiting=() if fresh else left,
            delivered_rows=max(sync.source_rows - sync.invalid_rows, 0),
            out_url=f"{settings.ONDATRA.staging_url}/{self.workspace.pk}/{sync.pk}/{run.pk}",
            mark_commit=sync.mark_commit,
            marked=beginning.mark_told(sync),
            full=run.full,
            confirmed_deletes=run.options.get("confirmed_deletes"),
            baseline=bool(run.options.get("baseline")),
            fresh=fresh,
            forgo=run.full and bool(run.options.get("history_gone")),
        )

    def held(self, work: SyncWork, error: HeldError) -> None:
        run = Run.objects.get(pk=work.run_id)
        told: dict[str, Any] = {
            "source_count": error.source,
            "unchanged": error.unchanged,
            "invalid": error.invalid,
            "changed": error.changed,
            "deleted": error.deleted,
            "planned": error.changed + error.deleted,
            "not_tried": error.changed + error.deleted,
            "options": {
                **run.options,
                "would_delete": error.deleted,
                **({"history_gone": True} if error.gone else {}),
            },
        }
        patiently(Run.objects.filter(pk=run.pk).update)(**told)
        if error.rows is not None:
            self._list(run, error.rows)
        ending.end(run, Run.Status.HELD, str(error))

    def _list(self, run: Run, rows: pa.Table) -> None:
        """Keeps the first rows that it would delete as a dry run keeps what it would send, masked as records are."""
        known = ModelState.objects.filter(workspace=self.workspace, name=run.sync.name).first()
        columns = [Column(*told) for told in known.columns] if known else []
        info = with_columns(self.store_of(run)[1], columns)
        place = planned_folder(run.pk) / "planned.0.parquet"
        files.write_planned(place, info, values.to_rows(rows, info.columns), rows)

    def failed(self, work: SyncWork, error: str) -> None:
        ending.fail(Run.objects.get(pk=work.run_id), error)

    def stopped(self, work: SyncWork) -> None:
        ending.end(Run.objects.get(pk=work.run_id), Run.Status.CANCELLED)

    def step(self, work: SyncWork, name: str) -> None:
        patiently(progress.set_step)(work.run_id, name)

    def mark(self, work: SyncWork, result: Result) -> int | None:
        return None if work.fresh else work.mark

    def cancelled(self, work: SyncWork) -> bool:
        return Run.objects.filter(pk=work.run_id, status=Run.Status.CANCELING).exists()

    def thread_ends(self) -> None:
        connection.close()

    # staging

    def staged(self, work: SyncWork, result: Result, staged: Staged | None) -> None:
        run = Run.objects.select_related("sync").get(pk=work.run_id)
        store, info = self.store_of(run)
        info = with_columns(info, result.columns)
        invalid: Sequence[files.WrittenFile] = ()
        down = ""
        try:
            write_metadata(store, info)
            invalid = marks.write_invalid(run, store, info, result, work.out_url)
        except StoreError as error:  # a store that is down stops no delivery; the next build records the invalid rows
            down = f"the files of this run wait: {error}"

        faults.point("before_mark")
        self._move(run, work, result, staged, invalid, info, down)
        faults.point("after_mark")

    @patiently
    def _move(
        self,
        run: Run,
        work: SyncWork,
        result: Result,
        staged: Staged | None,
        invalid: Sequence[files.WrittenFile],
        info: RunInfo,
        down: str,
    ) -> None:
        with transaction.atomic():
            if not marks.move(run, work, result, staged, self.pushes[result.model.name], invalid):
                return
            Run.objects.filter(pk=run.pk).update(metadata=metadata(info), rules=rules_of(info))
            self.remember(result)
            if result.lost:
                progress.say(run.pk, [("warning", LOST.format(executor)) for executor in result.lost])
            if down:
                RunLog.objects.create(run=run, level="warning", text=down)
                Sync.objects.filter(pk=run.sync_id).update(invalid_digest="")
                name = result.model.name
                ModelState.objects.filter(workspace=self.workspace, name=name).update(fingerprint="")
