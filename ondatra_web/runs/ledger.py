"""The pipeline's memory: runtime.pipeline.line.Ledger over Django's tables."""

from __future__ import annotations

import itertools
import logging
import math
import sys
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cached_property
from typing import Any

import numpy as np
from django.conf import settings
from django.db import IntegrityError, connection, transaction
from django.utils import timezone

from ondatra_web import workers
from ondatra_web.models import Chunk, Delivery, Job, ModelState, Run, RunLog, Sync, Worker, Workspace
from ondatra_web.runs import outbox, waiting
from ondatra_web.runs.lake_tables import TableLocks, place_of
from ondatra_web.runs.outbox import columns_of
from ondatra_web.tracking import stores
from runtime import faults
from runtime.columns import RECORD
from runtime.errors import HeldError, StoreError
from runtime.lake.table import H1, KEY
from runtime.model import Model
from runtime.pipeline.line import Remembered, Result, SyncWork
from runtime.push.function import PushFunction
from runtime.staging import chunks, layout, states
from runtime.staging.chunks import WaitingChunk
from runtime.staging.request import Staged
from runtime.staging.units import unit_starts
from runtime.store.base import Store
from runtime.tracking import files
from runtime.tracking.info import RunInfo, with_columns
from runtime.tracking.metadata import metadata, write_metadata

log = logging.getLogger("ondatra.ledger")


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
    ) -> None:
        self.workspace, self.pushes, self.options, self.trigger = workspace, pushes, dict(options), trigger
        self.given = dict(given or {})
        self.close_dead, self.store_of = close_dead, store_of
        self.runs: dict[str, Run] = {}  # by model name
        self.known = {s.name: s for s in ModelState.objects.filter(workspace=workspace)}
        self.urls: dict[str, str] = {}
        self.locks = TableLocks(workspace.pk)
        self.same: list[int] = []  # states of models of which nothing changed, noted together at the end

    # models

    def table_url(self, model: str) -> str:
        if model not in self.urls:  # builders ask again, who have no database
            self.urls[model] = f"{settings.ONDATRA.lake_url}/{self.workspace.pk}/{place_of(self.workspace.pk, model)}"
        return self.urls[model]

    def remembered(self, model: str) -> Remembered | None:
        state = self.known.get(model)
        return (
            Remembered(state.fingerprint, state.table_version, state.rows, columns_of(state.columns)) if state else None
        )

    def claim(self, model: Model) -> bool:
        if not self.locks.take(model.name):
            return False
        self.known |= {s.name: s for s in ModelState.objects.filter(workspace=self.workspace, name=model.name)}
        return True

    def remember(self, result: Result) -> None:
        self._note(result)
        self.locks.free(result.model.name)

    def _note(self, result: Result) -> None:
        known, model = self.known.get(result.model.name), result.model
        if (
            result.action == "unchanged"
            and known is not None
            and result.fingerprint
            and known.gone_at is None
            and (
                (known.fingerprint, known.table_version, known.file, known.sql_as_written)
                == (result.fingerprint, result.version, model.file, model.sql)
            )
        ):
            self.same.append(known.pk)
            return
        done = result.action in ("built", "unchanged")
        fields: dict[str, Any] = {
            "last_action": result.action,
            "last_error": result.error or "",
            "last_run_at": timezone.now(),
            "kind": model.kind,
            "key": list(model.key),
            "file": model.file,
            "sql_as_written": model.sql,
            "gone_at": None,
        }
        if done:
            fields |= {
                "table_version": result.version,
                "fingerprint": result.fingerprint,
                "rows": result.rows,
                "sql_as_run": result.sql,
                "columns": [[c.name, c.duckdb_type, c.spark_type] for c in result.columns],
                "inputs": list(result.inputs),
            }
        if result.action == "built":
            fields["place"] = place_of(self.workspace.pk, model.name)
        self.known[model.name], _ = ModelState.objects.update_or_create(
            workspace=self.workspace, name=model.name, defaults=fields
        )

    def finish(self) -> None:
        """After the walk, however it ended."""
        self.locks.close()
        ModelState.objects.filter(pk__in=self.same).update(
            last_action="unchanged", last_error="", last_run_at=timezone.now()
        )

    # runs

    def idle(self, model: Model, known: Remembered) -> bool:
        sync = self._resting.get(model.name)
        if sync is None or model.sink is None or model.name in self.given or any(self.options.values()):
            return False
        told = self.pushes[model.name].api.destination
        return (
            sync.mark == known.version
            and not held_by_change(sync, model)
            and sync.sink_args == list(model.sink.args)
            and sync.columns == self.known[model.name].columns
            and sync.destination is not None
            and (sync.destination.destination.type, sync.destination.name) == (told.type, told.object)
        )

    @cached_property
    def _resting(self) -> dict[str, Sync]:
        """Syncs of which nothing waits and no run works, by name."""
        syncs = Sync.objects.filter(workspace=self.workspace, finalize_due=False, archived_at=None).select_related(
            "destination__destination"
        )
        busy = [
            waiting.of_syncs(syncs),
            Job.objects.filter(sync__in=syncs, ended_at=None),
            Run.objects.filter(sync__in=syncs, status__in=[Run.Status.WORKING, Run.Status.CANCELING]),
        ]
        taken = {pk for rows in busy for pk in rows.values_list("sync_id", flat=True)}
        return {sync.name: sync for sync in syncs if sync.pk not in taken}

    def rested(self, results: Sequence[Result]) -> None:
        if not results:
            return
        now, (url, bucket) = timezone.now(), stores.current(self.workspace.organization_id)
        with transaction.atomic():
            runs = []
            for result in results:
                sync = self._resting[result.model.name]
                runs.append(
                    Run(
                        sync=sync,
                        status=Run.Status.COMPLETED,
                        trigger=self.trigger,
                        started_at=now,
                        ended_at=now,
                        lease=1,
                        options=self.options,
                        staged=True,
                        tracking="written",
                        step="push",
                        step_times=dict.fromkeys(("build", "changes", "push"), now.isoformat()),
                        store_url=url,
                        bucket=bucket,
                        table_version=sync.mark,
                        source_count=sync.source_rows,
                        invalid=sync.invalid_rows,
                        unchanged=sync.source_rows - sync.invalid_rows,
                    )
                )
            Run.objects.bulk_create(runs)
            told = []
            for run, result in zip(runs, results, strict=True):
                self.runs[result.model.name] = run
                store, info = self.store_of(run)
                told.append((store, with_columns(info, result.columns)))
                run.metadata = metadata(told[-1][1])
                self.remember(result)
                print(f"run {run.pk} of {run.sync.name} started", file=sys.stderr)
            Run.objects.bulk_update(runs, ["metadata"])
        with ThreadPoolExecutor(8) as pool:  # each of them waits for the disk or the network
            problems = list(pool.map(_describe, told))
        RunLog.objects.bulk_create(
            [RunLog(run=run, level="warning", text=why) for run, why in zip(runs, problems, strict=True) if why]
        )

    def begin(self, model: Model) -> SyncWork | None:
        sync = Sync.objects.get(workspace=self.workspace, name=model.name)
        run = self._start(sync)
        self.runs[model.name] = run
        if run.status != Run.Status.WORKING:
            return None
        print(f"run {run.pk} of {sync.name} started", file=sys.stderr, flush=True)
        changed = held_by_change(sync, model)
        if changed and not (run.full or run.options.get("baseline")):
            self._end(run, Run.Status.HELD, changed)
            return None
        left = tuple(WaitingChunk(c.pk, c.url, states.unpack(bytes(c.states))) for c in waiting.chunks_of(sync))
        return SyncWork(
            run_id=run.pk,
            mark=sync.mark,
            waiting=() if changed else left,
            delivered_rows=max(sync.source_rows - sync.invalid_rows, 0),
            out_url=f"{settings.ONDATRA.staging_url}/{self.workspace.pk}/{sync.pk}/{run.pk}",
            full=run.full,
            confirmed_deletes=run.options.get("confirmed_deletes"),
            baseline=bool(run.options.get("baseline")),
            fresh=bool(changed),
            forgo=run.full and bool(run.options.get("history_gone")),
        )

    def _start(self, sync: Sync) -> Run:
        """A working run of ours, or a skipped one where another works. A dead process's run is closed on the way."""
        for other in Run.objects.filter(
            sync=sync, status__in=[Run.Status.WORKING, Run.Status.CANCELING]
        ).select_related("owner"):
            mine = self.given.get(sync.name)
            if not (mine and mine.pk == other.pk) and not is_alive(other):
                self.close_dead(other)
        given = self.given.get(sync.name)
        now, me = timezone.now(), workers.me()
        try:
            with transaction.atomic():
                if given is None:
                    return Run.objects.create(
                        sync=sync,
                        status=Run.Status.WORKING,
                        trigger=self.trigger,
                        started_at=now,
                        owner=me,
                        lease=1,
                        options=self.options,
                        full=bool(self.options.get("full")),
                        dry_run=bool(self.options.get("dry_run")),
                    )
                Run.objects.filter(pk=given.pk, status__in=[Run.Status.QUEUED, Run.Status.WORKING]).update(
                    status=Run.Status.WORKING, started_at=given.started_at or now, owner=me, lease=given.lease + 1
                )
                given.refresh_from_db()
                return given
        except IntegrityError:
            if given is None:
                return Run.objects.create(
                    sync=sync,
                    status=Run.Status.SKIPPED,
                    trigger=self.trigger,
                    started_at=now,
                    ended_at=now,
                    options=self.options,
                    error="another run of this sync is working",
                )
            self._end(given, Run.Status.SKIPPED, "another run of this sync is working")
            return given

    def _end(self, run: Run, status: str, error: str) -> None:
        Run.objects.filter(pk=run.pk, status__in=Run.ACTIVE).update(
            status=status, error=error, ended_at=timezone.now(), owner=None
        )
        run.refresh_from_db()

    def held(self, work: SyncWork, error: HeldError) -> None:
        run = Run.objects.get(pk=work.run_id)
        run.source_count, run.unchanged, run.invalid = error.source, error.unchanged, error.invalid
        run.changed, run.deleted = error.changed, error.deleted
        run.planned = run.not_tried = run.changed + run.deleted
        run.options["would_delete"] = run.deleted
        if error.gone:
            run.options["history_gone"] = True
        run.save(
            update_fields=[
                "source_count",
                "unchanged",
                "invalid",
                "changed",
                "deleted",
                "planned",
                "not_tried",
                "options",
            ]
        )
        self._end(run, Run.Status.HELD, str(error))

    def failed(self, work: SyncWork, error: str) -> None:
        self._end(Run.objects.get(pk=work.run_id), Run.Status.FAILED, error)

    def step(self, work: SyncWork, name: str) -> None:
        set_step(work.run_id, name)

    def writable(self, model: Model, spark: Any) -> None:
        """The lake's own tables are written as they are."""

    def mark(self, work: SyncWork, result: Result) -> int | None:
        return None if work.fresh else work.mark

    def cancelled(self, work: SyncWork) -> bool:
        return Run.objects.filter(pk=work.run_id, status=Run.Status.CANCELING).exists()

    def stopped(self, work: SyncWork) -> None:
        self._end(Run.objects.get(pk=work.run_id), Run.Status.CANCELLED, "")

    def thread_ends(self) -> None:
        connection.close()

    # staging

    def staged(self, work: SyncWork, result: Result, staged: Staged | None) -> None:
        run = Run.objects.select_related("sync").get(pk=work.run_id)
        store, info = self.store_of(run)
        info = with_columns(info, result.columns)
        store_is_down = False
        invalid_files: Sequence[files.WrittenFile] = ()
        try:
            write_metadata(store, info)
            invalid_files = self._write_invalid(run, store, info, result, work.out_url)
        except StoreError as error:  # a store that is down stops no delivery; the next build records the invalid rows
            store_is_down = True
            RunLog.objects.create(run=run, level="warning", text=f"the files of this run wait: {error}")
        faults.point("before_mark")
        with transaction.atomic():
            self.move(run, result, staged, work, invalid_files)
            Run.objects.filter(pk=run.pk).update(metadata=metadata(info))
            self.remember(result)
            if store_is_down:
                Sync.objects.filter(pk=run.sync_id).update(invalid_digest="")
                ModelState.objects.filter(workspace=self.workspace, name=result.model.name).update(fingerprint="")
        faults.point("after_mark")

    def move(
        self,
        run: Run,
        result: Result,
        staged: Staged | None,
        work: SyncWork,
        invalid_files: Sequence[files.WrittenFile] = (),
    ) -> None:
        """Should be called in a transaction: chunks, deliveries, counts and the mark become true together."""
        push = self.pushes[result.model.name]
        run = Run.objects.select_for_update().get(pk=run.pk)
        sync = Sync.objects.select_for_update().get(pk=run.sync_id)
        self._move_mark(sync, run, result, push, new_invalid=bool(invalid_files))
        outbox.record_files(run.pk, None, invalid_files)
        if work.baseline or work.fresh:
            waiting.forget(sync)
        deliveries = [] if work.baseline else self._deliveries(run, sync, staged, result, push.api.push.batch_size)
        left_out = self._limit(deliveries, run.options.get("limit"))
        Delivery.objects.bulk_create([d for d in deliveries if d.rows])
        self._count(run, sync, staged, deliveries, left_out)

    def _limit(self, deliveries: Sequence[Delivery], most: int | None) -> int:
        """Cuts the deliveries to so many records, at the bounds of units; how many records are left out."""
        left_out = 0
        for delivery in deliveries if most is not None else ():
            assert most is not None
            if delivery.records <= most:
                most -= delivery.records
                continue
            kept = _first_records(delivery, most)
            left_out += delivery.records - int(kept[1])
            delivery.positions, delivery.records, delivery.rows = (
                states.pack_mask(kept[0]),
                int(kept[1]),
                int(kept[0].sum()),
            )
            most -= delivery.records
        return left_out

    def _write_invalid(
        self, run: Run, store: Store, info: RunInfo, result: Result, out_url: str
    ) -> Sequence[files.WrittenFile]:
        """Invalid rows are recorded when they differ from the last run's; else the run refers to that run's file."""
        built = result.built
        if (
            built is None
            or not built.invalid_rows
            or built.invalid is None
            or built.invalid_digest == run.sync.invalid_digest
        ):
            return ()
        urls = layout.write_plain(built.invalid, f"{out_url}/invalid", built.invalid_rows, order=(KEY, H1))
        numbers = itertools.count()
        return [
            file
            for url in urls
            for file in files.write_invalid(store, info, chunks.read_chunk(url, None), lambda _: next(numbers))
        ]

    def _move_mark(self, sync: Sync, run: Run, result: Result, push: PushFunction, *, new_invalid: bool) -> None:
        model, built = result.model, result.built
        assert model.sink is not None
        sync.mark = result.version
        sync.kind, sync.key, sync.function, sync.sink_args = (
            model.kind,
            list(model.key),
            model.sink.function,
            list(model.sink.args),
        )
        sync.destination_type, sync.destination_object = push.api.destination.type, push.api.destination.object
        sync.columns = [[c.name, c.duckdb_type, c.spark_type] for c in result.columns]
        if built is not None:
            sync.source_rows, sync.invalid_rows = built.source, built.invalid_rows
            if not built.invalid_rows:
                sync.invalid_run = None
            elif new_invalid:
                sync.invalid_run = run
            sync.invalid_digest = built.invalid_digest if built.invalid_rows else ""
        sync.save()

    def _deliveries(
        self, run: Run, sync: Sync, staged: Staged | None, result: Result, batch_size: int
    ) -> list[Delivery]:
        """What this run sends, in order: deletes first, rows never tried before rows that failed, then by age."""
        found: list[tuple[tuple[int, int, int], Delivery]] = []
        for chunk_id, positions in (staged.superseded if staged else {}).items():
            chunk = Chunk.objects.get(pk=chunk_id)
            whole = states.unpack(bytes(chunk.states))
            whole[positions] = states.SUPERSEDED
            waiting.save_states(chunk_id, whole)
        for chunk in Chunk.objects.filter(sync=sync).exclude(due_rows=0, blocked_rows=0).order_by("pk"):
            whole = states.unpack(bytes(chunk.states))
            if WaitingChunk(chunk.pk, chunk.url, whole).waits:
                continue
            due = states.due(whole) | (whole == states.BLOCKED)  # rows of an open job: it is asked first
            tried = 0 if sync.kind == "append" else int((whole[due] != states.UNTRIED).all())
            found.append(
                (
                    (chunk.phase, tried, chunk.pk),
                    Delivery(
                        run=run,
                        chunk=chunk,
                        phase=chunk.phase,
                        carried=True,
                        rows=int(due.sum()),
                        records=_records(chunk, due),
                        positions=None if due.all() else states.pack_mask(due),
                    ),
                )
            )
        for made in staged.chunks if staged else ():
            # newer changes of rows whose job is open wait without a delivery until the job has ended
            state = states.BLOCKED if made.waits else states.UNTRIED
            chunk = Chunk.objects.create(
                sync=sync,
                staged_by=run,
                url=made.url,
                rows=made.rows,
                records=made.records,
                phase=made.phase,
                change_counts=made.change_counts,
                columns=[[c.name, c.duckdb_type, c.spark_type] for c in result.columns],
                table_version=result.version,
                states=states.pack(np.full(made.rows, state, dtype=np.uint8)),
                due_rows=0 if made.waits else made.rows,
                blocked_rows=made.rows if made.waits else 0,
            )
            if made.waits:
                continue
            found.append(
                (
                    (made.phase, 0, chunk.pk),
                    Delivery(run=run, chunk=chunk, phase=made.phase, rows=made.rows, records=made.records),
                )
            )
        first, deliveries = 1, []
        for ordinal, (_, delivery) in enumerate(sorted(found, key=lambda pair: pair[0])):
            delivery.ordinal, delivery.first_call = ordinal, first
            first += math.ceil(delivery.rows / batch_size)
            deliveries.append(delivery)
        return deliveries

    def _count(
        self, run: Run, sync: Sync, staged: Staged | None, deliveries: Sequence[Delivery], left_out: int
    ) -> None:
        run.source_count, run.invalid = sync.source_rows, sync.invalid_rows
        run.changed, run.deleted = (staged.changed, staged.deleted) if staged else (0, 0)
        run.planned = sum(d.records for d in deliveries) + left_out
        run.carried = run.planned - run.changed - run.deleted
        run.unchanged = run.source_count - run.invalid - run.changed
        run.not_tried = left_out
        run.staged, run.table_version, run.step = True, sync.mark, "push"
        run.save()


def _describe(place: tuple[Store, RunInfo]) -> str:
    """Writes a run's metadata.json; what went wrong."""
    try:
        write_metadata(*place)
    except StoreError as error:
        return f"the files of this run wait: {error}"
    return ""


def _records(chunk: Chunk, due: np.ndarray[Any, Any]) -> int:
    """How many records stand among the due rows of a chunk."""
    if due.all():
        return chunk.records
    flags = chunks.read_column(chunk.url, RECORD)
    return int(np.asarray(flags, dtype=bool)[due].sum())


def _first_records(delivery: Delivery, most: int) -> tuple[np.ndarray[Any, Any], int]:
    """The mask of the first units of a delivery that hold at most so many records, and how many they hold."""
    chunk = delivery.chunk
    selected = (
        states.unpack_mask(bytes(delivery.positions), chunk.rows)
        if delivery.positions
        else np.ones(chunk.rows, dtype=bool)
    )
    table = chunks.read_chunk(chunk.url, selected)
    starts = unit_starts(table, chunk.sync.kind)
    records = np.asarray(table.column(RECORD).to_pylist(), dtype=np.int64)
    upto = np.cumsum(np.add.reduceat(records, starts)) if len(starts) else np.array([], dtype=np.int64)
    units = int(np.searchsorted(upto, most, side="right"))
    rows = int(starts[units]) if units < len(starts) else table.num_rows
    kept = np.zeros(chunk.rows, dtype=bool)
    kept[np.flatnonzero(selected)[:rows]] = True
    return kept, int(upto[units - 1]) if units else 0


def held_by_change(sync: Sync, model: Model) -> str:
    """Why a person must decide: what was delivered came from another kind, key or push function."""
    if sync.mark is None or model.sink is None:
        return ""
    pairs = [
        ("kind", sync.kind, model.kind),
        ("key", ", ".join(sync.key), ", ".join(model.key)),
        ("push function", sync.function, model.sink.function),
    ]
    found = [f"the {what} changed from {old} to {new}" for what, old, new in pairs if old != new]
    return (
        f"{' and '.join(found)}: run with --full to send everything again, or --baseline to take it as delivered"
        if found
        else ""
    )


def is_alive(run: Run) -> bool:
    """Whether some living process works on the run, or one that waits for its messages will."""
    if run.owner is not None:
        return not workers.is_dead(run.owner)
    claimed = Delivery.objects.filter(run=run, status=Delivery.Status.CLAIMED).select_related("owner")
    if any(not workers.is_dead(d.owner) for d in claimed):
        return True
    kind = "push" if run.staged else "pipeline"
    return any(not workers.is_dead(w) for w in Worker.objects.filter(kind=kind, ended_at=None))


def set_step(run_id: int, name: str) -> None:
    """The run's step for the page, with the time at which it began."""
    run = Run.objects.only("step_times").get(pk=run_id)
    run.step_times[name] = timezone.now().isoformat()
    Run.objects.filter(pk=run_id).update(step=name, step_times=run.step_times)
