"""What delivery needs of a sync: a walk has it of the project that it checked, a push worker finds it with the staged
run. So a push worker checks no project, and needs no Spark."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from ondatra_web import projects
from ondatra_web.models import Run, Workspace
from ondatra_web.runs import rate_limits
from ondatra_web.runs.claims import columns_of
from ondatra_web.runs.outbox import DatabaseOutbox
from ondatra_web.runs.patience import patiently
from ondatra_web.tracking import stores
from runtime.delivery.run import DeliveryRun
from runtime.push import apart
from runtime.push.call import CallContext
from runtime.push.function import PushFunction
from runtime.store.base import Store
from runtime.tracking.info import RunInfo, by_rules, with_columns


class Delivering(Protocol):
    """Of runs of one workspace."""

    @property
    def workspace(self) -> Workspace: ...
    def push(self, run: Run) -> PushFunction: ...
    def info(self, run: Run) -> RunInfo:
        """What every file of the run says of itself, and its model."""
        ...


@dataclass(frozen=True)
class Kept:
    """Of one run, by the rules that were kept when it was staged."""

    workspace: Workspace
    told: RunInfo
    function: PushFunction

    def push(self, run: Run) -> PushFunction:
        return self.function

    def info(self, run: Run) -> RunInfo:
        return self.told


def kept(run: Run) -> Kept:
    """Of a staged run. Raises ProjectError for a push function that is gone or wrong by now, ConfigError."""
    workspace = run.sync.workspace
    told = by_rules(
        run.rules,
        organization_id=workspace.organization_id,
        sync_id=run.sync_id,
        run_id=run.pk,
        columns=columns_of(run.sync.columns),
        mask_key=workspace.mask_key,
    )
    sink = told.model.sink
    assert sink is not None  # only syncs have runs
    secrets = projects.secrets_of(workspace)
    folder = projects.folder_of(workspace)
    return Kept(workspace, told, apart.load(folder, sink.function, secrets=secrets, sink_args=sink.args))


def store_of(delivering: Delivering, run: Run) -> tuple[Store, RunInfo]:
    if not run.store_url:  # a switch of the store later on leaves this run where it began
        run.store_url, run.bucket = stores.current(delivering.workspace.organization_id)
        patiently(Run.objects.filter(pk=run.pk).update)(store_url=run.store_url, bucket=run.bucket)
    return stores.of_run(run), delivering.info(run)


def delivery_run(delivering: Delivering, run: Run) -> DeliveryRun:
    """What all chunks of the run share."""
    store, info = store_of(delivering, run)
    database = DatabaseOutbox()
    context = CallContext(
        secrets=projects.secrets_of(delivering.workspace),
        limiter=rate_limits.limiter(delivering.workspace),
        cancelled=lambda: database.cancelled(run.pk),
    )
    return DeliveryRun(
        info=with_columns(info, columns_of(run.sync.columns)),
        model=info.model,
        push=delivering.push(run),
        context=context,
        masker=info.masks,
        store=store,
    )
