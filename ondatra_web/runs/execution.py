"""Runs from begin to end: walk the line, deliver, finalize, close. The command does it in one process; workers in
several."""

from __future__ import annotations

import contextlib
import logging
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from django.conf import settings
from django.db import connection, transaction
from django.db.models import F
from django.utils import timezone

from ondatra_web import projects, workers
from ondatra_web.models import Delivery, ModelState, Run, Sync, Workspace
from ondatra_web.runs import outbox, pending, rate_limits, renames, resending, retries
from ondatra_web.runs.dry_runs import DryLedger
from ondatra_web.runs.ledger import DatabaseLedger, set_step
from ondatra_web.tracking import facts, records, stores
from runtime import faults
from runtime.custody.masks import Masker
from runtime.delivery import deliver
from runtime.delivery.deliver import DeliveryRun
from runtime.errors import Cancelled, ConfigError, LeaseLost
from runtime.lake import spark
from runtime.model import Column
from runtime.pipeline import line as pipeline
from runtime.project.check import Project
from runtime.push import apart
from runtime.push.function import CallContext, PushFunction
from runtime.records.query import Filter
from runtime.sources.columns import WithSpark
from runtime.sql import Translated
from runtime.store.base import Store
from runtime.threads import supervised
from runtime.tracking import files

log = logging.getLogger("ondatra.execution")
WORST = [
    Run.Status.COMPLETED,
    Run.Status.SKIPPED,
    Run.Status.COMPLETED_WITH_REJECTS,
    Run.Status.CANCELLED,
    Run.Status.HELD,
    Run.Status.FAILED,
]


@dataclass
class Walk:
    """One checked project with its push functions, ready to run."""

    workspace: Workspace
    project: Project
    pushes: dict[str, PushFunction]
    results: dict[str, pipeline.Result] = field(default_factory=dict)
    runs: dict[str, Run] = field(default_factory=dict)


def prepare(workspace: Workspace, names: Sequence[str] = ()) -> Walk:
    """Checks everything that can be known; raises ProjectError or ConfigError before anything started."""
    project = projects.project_of(workspace, names, analyse=_Remembering(workspace))
    secrets = projects.secrets_of(workspace)
    pushes: dict[str, PushFunction] = {
        name: apart.load(_folder(workspace), m.sink.function, secrets=secrets, sink_args=m.sink.args)
        for name, m in project.models.items()
        if m.sink
    }
    renames.carry_over(workspace, project)
    _save_syncs(workspace, project, whole=not names)
    return Walk(workspace, project, pushes)


def _session() -> Any:
    return spark.isolated(settings.ONDATRA)


class _Remembering(WithSpark):
    """Columns of models in Spark's dialect: remembered while their SQL is the same, else from Spark itself."""

    def __init__(self, workspace: Workspace) -> None:
        super().__init__(_session)
        self.workspace = workspace

    def columns(
        self, name: str, translated: Translated, known: Mapping[str, tuple[Column, ...]]
    ) -> tuple[Column, ...] | None:
        if any(
            table.count(".") > 1 for table in translated.tables
        ):  # a connection's table may have other columns today
            return super().columns(name, translated, known)
        state = ModelState.objects.filter(workspace=self.workspace, name=name, sql_as_run=translated.spark_sql).first()
        return outbox.columns_of(state.columns) if state and state.columns else super().columns(name, translated, known)


def _folder(workspace: Workspace) -> Path:
    return Path(workspace.project_dir)


def _save_syncs(workspace: Workspace, project: Project, *, whole: bool) -> None:
    """A row for each model with a sink; one whose file is gone is archived."""
    known = {sync.name: sync for sync in Sync.objects.filter(workspace=workspace)}
    for name, model in project.models.items():
        if model.sink is None:
            continue
        told: dict[str, Any] = {
            "description": model.description,
            "tags": list(model.tags),
            "schedule": model.schedule or "",
            "retention_days": model.retention,
            "archived_at": None,
        }
        sync = known.get(name)
        if sync is None:
            Sync.objects.get_or_create(
                workspace=workspace,
                name=name,
                defaults={
                    **told,
                    "kind": model.kind,
                    "key": list(model.key),
                    "function": model.sink.function,
                    "sink_args": list(model.sink.args),
                },
            )
        elif any(getattr(sync, k) != v for k, v in told.items()):
            for key, value in told.items():
                setattr(sync, key, value)
            sync.save(update_fields=list(told))
    if whole:
        kept = [n for n, m in project.models.items() if m.sink]
        Sync.objects.filter(workspace=workspace, archived_at=None).exclude(name__in=kept).update(
            archived_at=timezone.now()
        )
        ModelState.objects.filter(workspace=workspace, gone_at=None).exclude(name__in=project.models).update(
            gone_at=timezone.now()
        )


def run_line(walk: Walk, options: Mapping[str, Any], *, trigger: str, given: Mapping[str, Run] | None = None) -> None:
    """Plans, builds and stages every model of the walk. Raises ConfigError while too many records wait for their
    store."""
    if not options.get("dry_run"):
        pending.write(walk.workspace)
        stores.refuse_if_full(walk.workspace.organization_id)
    kind = DryLedger if options.get("dry_run") else DatabaseLedger
    ledger = kind(
        walk.workspace,
        walk.pushes,
        options=options,
        trigger=trigger,
        given=given,
        close_dead=lambda run: close_dead(walk, run),
        store_of=lambda run: store_of(walk, run),
    )
    line = pipeline.Line(
        walk.project, ledger, _session, rebuild=bool(options.get("rebuild")), builds=settings.ONDATRA.builds
    )
    try:
        walk.results = line.run()
    finally:
        ledger.finish()
        if isinstance(ledger, DryLedger):
            ledger.close()
        walk.runs = {name: ledger.runs[name] for name in walk.project.order if name in ledger.runs}
        _refresh(walk)


def run_here(
    workspace: Workspace,
    names: Sequence[str],
    options: Mapping[str, Any],
    *,
    trigger: str = "command",
    given: Mapping[str, Run] | None = None,
) -> Walk:
    """All of a run in this process. Raises ProjectError, ConfigError before anything started."""
    walk = prepare(workspace, names)
    for run in (given or {}).values():
        run.sync.refresh_from_db()  # its file may have another name by now
    given = {run.sync.name: run for run in (given or {}).values()}
    try:
        run_line(walk, options, trigger=trigger, given=given)
        for name, run in walk.runs.items():
            if run.status in (Run.Status.WORKING, Run.Status.CANCELING) and run.staged:
                deliver_run(walk, name, run)
    except BaseException as error:
        _give_back(walk, error)
        raise
    _refresh(walk)
    return walk


def _refresh(walk: Walk) -> None:
    for run in walk.runs.values():
        if run.status != Run.Status.COMPLETED:  # nothing changes any more in one that is
            run.refresh_from_db()


def _give_back(walk: Walk, error: BaseException) -> None:
    """An error that nobody expected, or Ctrl-C, must not leave runs that look alive. What was answered becomes records:
    it is not sent again."""
    for run in walk.runs.values():
        if Run.objects.filter(pk=run.pk, status__in=Run.ACTIVE).update(
            error=f"stopped: {type(error).__name__}: {error}"[:2000], owner=None
        ):
            try:
                close_dead(walk, run)
            except Exception:  # the next run closes it
                log.exception("run %s is left open", run.pk)


def stage_retry(run: Run) -> Walk:
    """Stages a run that a page made to send records again. Raises ProjectError, ConfigError, StoreError."""
    walk = prepare(run.sync.workspace, [run.sync.name])
    earlier = Run.objects.select_related("sync__workspace", "bucket__organization").get(pk=run.options["retry_of"])
    told: dict[str, Any] = {k: tuple(v) if isinstance(v, list) else v for k, v in run.options["chosen"].items()}
    planned = retries.plan(earlier, Filter(**told))
    if planned.empty:
        raise ConfigError("nothing was sent: " + "; ".join(retries.told(planned, earlier)))
    resending.start(
        earlier,
        planned,
        walk.project.models[run.sync.name],
        batch_size=walk.pushes[run.sync.name].api.push.batch_size,
        given=run,
    )
    return walk


# delivery


def store_of(walk: Walk, run: Run) -> tuple[Store, files.RunInfo]:
    model, push = walk.project.models[run.sync.name], walk.pushes[run.sync.name]
    if not run.store_url:  # a switch of the store later on leaves this run where it began
        run.store_url, run.bucket = stores.current(walk.workspace.organization_id)
        Run.objects.filter(pk=run.pk).update(store_url=run.store_url, bucket=run.bucket)
    return stores.of_run(run), facts.run_info(walk.workspace, run, model, push)


def delivery_run(walk: Walk, run: Run) -> DeliveryRun:
    name = run.sync.name
    model, push = walk.project.models[name], walk.pushes[name]
    store, info = store_of(walk, run)
    masker = Masker(model.masks, walk.workspace.mask_key)
    database = outbox.DatabaseOutbox()
    context = CallContext(
        secrets=projects.secrets_of(walk.workspace),
        limiter=rate_limits.limiter(walk.workspace),
        masks=masker,
        cancelled=lambda: database.cancelled(run.pk),
        check=lambda: None,
    )
    return DeliveryRun(
        info=files.with_columns(info, outbox.columns_of(run.sync.columns)),
        model=model,
        push=push,
        context=context,
        masker=masker,
        store=store,
    )


def deliver_run(walk: Walk, name: str, run: Run, slots: int | None = None) -> None:
    """Delivers chunk after chunk until none is free; files of one are written while the next is pushed. Whoever closes
    the last one closes the run."""
    run = Run.objects.select_related("sync").get(pk=run.pk)
    database = outbox.DatabaseOutbox()
    shared = delivery_run(walk, run)
    most = walk.pushes[name].api.push.max_concurrent
    if "push" not in run.step_times:
        set_step(run.pk, "push")
    with deliver.Filing(database, lambda claim: workers.give_back(claim.delivery_id, claim.lease)) as filing:
        while (claim := outbox.take(run, slots or most, most)) is not None:
            try:
                progress = deliver.deliver(claim, shared, database, filing)
            except LeaseLost as lost:
                log.warning("%s", lost)
                continue
            except BaseException:
                workers.give_back(claim.delivery_id, claim.lease)
                raise
            if progress.stopped or progress.cancelled:
                stop(run, progress.stopped)
    finish(walk, name, run)


@outbox.patiently
def stop(run: Run, why: str) -> None:
    """The rest of the run is not tried and stays due."""
    with transaction.atomic():
        Run.objects.select_for_update().get(pk=run.pk)
        for waiting in Delivery.objects.filter(run=run, status=Delivery.Status.WAITING):
            Delivery.objects.filter(pk=waiting.pk).update(
                status=Delivery.Status.CLOSED, counts={"not_tried": waiting.records}
            )
            Run.objects.filter(pk=run.pk).update(not_tried=F("not_tried") + waiting.records)
        if why:
            Run.objects.filter(pk=run.pk, error="").update(error=why)


def finish(walk: Walk, name: str, run: Run) -> None:
    """Ends the run if its last chunk is closed: its status follows from its counts, then finalize(). Of all who see its
    end, one does it."""
    with _guard:  # threads of this process are one owner
        ending = None if run.pk in _at_end else _ending(run)
        if ending is None:
            return
        _at_end.add(run.pk)
    run, sync, clean = ending
    try:
        if clean and sync.finalize_due:
            faults.point("before_finalize")
            outbox.patiently(set_step)(run.pk, "finish")
            if not _finalize(walk, name, run, sync):
                log.warning("run %s was taken over by another process while finalize() was called", run.pk)
                return
        close(run)
    except BaseException:
        workers.give_back_run(run.pk, run.lease)
        raise
    finally:
        _at_end.discard(run.pk)


_at_end: set[int] = set()  # runs whose end this process sees to
_guard = threading.Lock()


@outbox.patiently
def _ending(run: Run) -> tuple[Run, Sync, bool] | None:
    """Claims the end of the run: the run, its sync, and whether all went so well that finalize() may be due. None if
    the run goes on, has ended, or a living process sees to its end."""
    me = workers.me()
    with transaction.atomic():
        run = Run.objects.select_for_update(of=("self",)).select_related("owner").get(pk=run.pk)
        if run.status not in (Run.Status.WORKING, Run.Status.CANCELING) or outbox.open_deliveries(run).exists():
            return None
        if workers.is_anothers(run.owner):
            return None
        run.owner, run.lease = me, run.lease + 1
        run.save(update_fields=["owner", "lease"])
        sync = Sync.objects.select_for_update().get(pk=run.sync_id)
        clean = (
            not (run.retrying or run.not_tried or run.companions_due or run.error) and run.status == Run.Status.WORKING
        )
        if clean and run.succeeded + run.rejected and not run.finalized:
            sync.finalize_due, sync.finalize_counts = True, [run.succeeded, run.rejected]
            sync.save(update_fields=["finalize_due", "finalize_counts"])
    return run, sync, clean


def _finalize(walk: Walk, name: str, run: Run, sync: Sync) -> bool:
    """Whether the end of the run is still ours, with the answer recorded."""
    push = walk.pushes[name]
    if not push.has_finalize:
        Sync.objects.filter(pk=sync.pk).update(finalize_due=False)
        return True
    succeeded, failed = (int(n) for n in sync.finalize_counts)
    context = delivery_run(walk, Run.objects.select_related("sync").get(pk=run.pk)).context
    said = ["the run was cancelled before finalize() had answered"]
    prints: list[tuple[str, str]] = []

    def call() -> None:
        with contextlib.suppress(Cancelled):
            result = push.finalize(succeeded, failed, context)
            said[:] = [result.error]
            prints.extend(("print", line) for line in result.prints)

    supervised(call, context.cancelled, abandon=lambda: None, ends=lambda: connection.close())  # the thread's own
    return _record_finalize(run, said[0], prints)


@outbox.patiently
def _record_finalize(run: Run, error: str, prints: Sequence[tuple[str, str]]) -> bool:
    """Writes what finalize() said, all or nothing: a process that dies before has it called again. False if the run is
    another's by now."""
    told: dict[str, Any] = {"error": f"finalize failed: {error}"} if error else {"finalized": True}
    with transaction.atomic():
        mine = Run.objects.filter(pk=run.pk, lease=run.lease, status__in=Run.ACTIVE)
        if mine.exclude(**told).update(**told):
            outbox.say(run.pk, prints)
            if not error:
                Sync.objects.filter(pk=run.sync_id).update(finalize_due=False)
        return mine.exists()  # one that is written already: its commit was not heard of


@outbox.patiently
def close(run: Run) -> None:
    """The last transition. A run is completed only when its counts close and its files are written or known to wait."""
    with transaction.atomic():
        run = Run.objects.select_for_update().get(pk=run.pk)
        if run.status not in (Run.Status.WORKING, Run.Status.CANCELING):
            return
        ended = run.succeeded + run.rejected + run.retrying + run.not_tried
        if ended != run.planned and not run.error:
            run.error = f"the counts do not close: {run.planned} planned, {ended} ended; please report this"
        if run.status == Run.Status.CANCELING:
            run.status = Run.Status.CANCELLED
        elif run.not_tried and run.options.get("limit") and not run.error:
            run.status = Run.Status.COMPLETED_WITH_REJECTS  # asked for: the rest stays due
        elif run.error or run.not_tried:
            run.status = Run.Status.FAILED
        elif run.rejected or run.retrying or run.companions_due:
            run.status = Run.Status.COMPLETED_WITH_REJECTS
        else:
            run.status = Run.Status.COMPLETED
        run.tracking = run.tracking or "written"
        run.ended_at, run.owner = timezone.now(), None
        run.save(update_fields=["status", "error", "tracking", "ended_at", "owner"])


def close_dead(walk: Walk, run: Run) -> None:
    """Closes a run whose process died: recorded answers become its records, the rest stays due for the next run."""
    run = Run.objects.select_related("sync").get(pk=run.pk)
    Run.objects.filter(pk=run.pk).update(lease=F("lease") + 1)
    if run.staged:
        shared, database = delivery_run(walk, run), outbox.DatabaseOutbox()
        for delivery in outbox.open_deliveries(run).exclude(status=Delivery.Status.WAITING).order_by("ordinal"):
            Delivery.objects.filter(pk=delivery.pk).update(lease=F("lease") + 1, owner=None)
            deliver.close_dead(
                outbox.claim_of(Delivery.objects.select_related("chunk").get(pk=delivery.pk)), shared, database
            )
        stop(run, "")
    with transaction.atomic():
        run = Run.objects.select_for_update().select_related("sync").get(pk=run.pk)
        everything = run.staged and run.planned and not (run.retrying or run.not_tried or run.companions_due)
        if everything and not run.finalized:
            Sync.objects.filter(pk=run.sync_id).update(finalize_due=True, finalize_counts=[run.succeeded, run.rejected])
        Run.objects.filter(pk=run.pk, status__in=Run.ACTIVE).update(
            status=Run.Status.CANCELLED if run.status == Run.Status.CANCELING else Run.Status.FAILED,
            error=run.error or "worker died",
            tracking=run.tracking or "written",
            ended_at=timezone.now(),
            owner=None,
        )


# what a run came to


def report(walk: Walk) -> dict[str, Any]:
    """The object that `run --json` prints."""
    fresh = Run.objects.select_related("sync").in_bulk([run.pk for run in walk.runs.values()])
    syncs = [run_report(fresh[run.pk]) for name in walk.project.order if (run := walk.runs.get(name))]
    models = [
        {"model": r.model.name, "kind": r.model.kind, "action": r.action, "rows": r.rows, "error": r.error}
        for r in walk.results.values()
    ]
    statuses = [s["status"] for s in syncs] + [Run.Status.FAILED for m in models if m["action"] == "failed"]
    worst = max(statuses, key=lambda s: WORST.index(Run.Status(s)), default=Run.Status.COMPLETED)
    return {"status": str(worst), "models": models, "syncs": syncs}


def run_report(run: Run) -> dict[str, Any]:
    return {
        "sync": run.sync.name,
        "sync_id": run.sync_id,
        "run_id": run.pk,
        "status": run.status,
        "error": run.error or None,
        "counts": run.counts,
        "tracking": run.tracking or None,
        "trigger": run.trigger,
        "dry_run": run.dry_run,
        **({"first_requests": records.first_requests(run)} if run.dry_run else {}),
    }


def exit_code(said: Mapping[str, Any]) -> int:
    """0: everything due was delivered, or nothing was due."""
    good = all(
        s["status"] == Run.Status.COMPLETED or s["dry_run"] and s["status"] != Run.Status.FAILED for s in said["syncs"]
    )
    return 0 if good and not any(m["action"] in ("failed", "skipped") for m in said["models"]) else 1


def fail(run: Run, why: str) -> None:
    """Ends a run that could not be staged."""
    Run.objects.filter(pk=run.pk, status__in=Run.ACTIVE).update(
        status=Run.Status.FAILED, error=why, ended_at=timezone.now(), owner=None
    )
