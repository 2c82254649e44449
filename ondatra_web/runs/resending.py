"""A run of records that a person chose: what of them is undelivered from where it lies, the rest as the table has it
now."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from django.conf import settings
from django.db import transaction

from ondatra_web.models import Chunk, Delivery, Run, Sync
from ondatra_web.runs import beginning, deliveries, ending, retries, walk
from ondatra_web.runs.claims import columns_of
from ondatra_web.runs.delivering import store_of
from ondatra_web.runs.lake_tables import place_of
from ondatra_web.runs.walk import Walk
from runtime.errors import ConfigError
from runtime.lake.commits import disagrees
from runtime.lake.table import LakeTable
from runtime.model import Model
from runtime.records.filter import Filter
from runtime.staging import stage
from runtime.staging.request import Staged, StageRequest
from runtime.tracking.info import rules_of


@dataclass(frozen=True)
class Prepared:
    """Chosen records of an earlier run, with all that sends them again."""

    walk: Walk
    earlier: Run
    plan: retries.Plan

    @property
    def told(self) -> str:
        """The preview."""
        return "\n".join(retries.told(self.plan, self.earlier))


def prepare(earlier: Run, chosen: Filter) -> Prepared:
    """Raises ProjectError, ConfigError, StoreError before anything started."""
    made = walk.prepare(earlier.sync.workspace, [earlier.sync.name])
    earlier.sync.refresh_from_db()  # its file may have another name by now
    return Prepared(made, earlier, retries.plan(earlier, chosen))


def prepare_queued(run: Run) -> Prepared:
    """What a page asked for when it made this run. Raises as `prepare`, and where nothing is left to send."""
    earlier = Run.objects.select_related("sync__workspace", "bucket__organization").get(pk=run.options["retry_of"])
    told: dict[str, Any] = {k: tuple(v) if isinstance(v, list) else v for k, v in run.options["chosen"].items()}
    made = prepare(earlier, Filter(**told))
    if made.plan.empty:
        raise ConfigError("nothing was sent: " + made.told.replace("\n", "; "))
    return made


def start(made: Prepared, given: Run | None = None) -> Run:
    """A working run of these records; `given` is its row where a page made it. Raises ConfigError while another run of
    the sync works."""
    sync, model = made.earlier.sync, made.walk.model(made.earlier)
    if why := beginning.held_by_change(sync, model):
        raise ConfigError(why)
    run = beginning.take_retry(sync, made.earlier, given)
    try:
        _, info = store_of(made.walk, run)
        staged = _newest(sync, run, model, made.plan) if made.plan.again else Staged()
        with transaction.atomic():
            _plan(run, sync, made, staged, rules_of(info))
    except BaseException as error:
        ending.fail(run, f"nothing was sent: {error}"[: ending.MOST_OF_AN_ERROR])
        raise
    run.refresh_from_db()
    made.walk.runs = {sync.name: run}
    return run


def _newest(sync: Sync, run: Run, model: Model, plan: retries.Plan) -> Staged:
    """Chunks of the chosen rows as the table holds them at the mark."""
    workspace = sync.workspace_id
    assert sync.mark is not None  # something was delivered
    table = LakeTable(f"{settings.ONDATRA.lake_url}/{workspace}/{place_of(workspace, sync.name)}")
    if why := disagrees(table, sync.mark, sync.mark_commit, walk.session):
        raise ConfigError(f"the table of {sync.name} {why} {beginning.mark_told(sync)}: a run says what to do")
    request = StageRequest(
        model=model,
        table=table,
        mark=sync.mark,
        version=sync.mark,
        own_from=-1,
        waiting=(),
        out_url=f"{settings.ONDATRA.staging_url}/{workspace}/{sync.pk}/{run.pk}",
        full=True,
        columns=columns_of(sync.columns),
    )
    return stage.stage_again(walk.session(), request, plan.again)


def _plan(run: Run, sync: Sync, made: Prepared, staged: Staged, rules: dict[str, Any]) -> None:
    plan = made.plan
    chunks = Chunk.objects.select_related("sync").in_bulk(list(plan.masks))
    found = [deliveries.of_new(run, deliveries.new_chunk(run, sync, c, sync.columns)) for c in staged.chunks]
    found += [deliveries.of_waiting(run, chunks[pk], mask) for pk, mask in plan.masks.items()]
    found.sort(key=lambda d: (d.phase, d.chunk_id))
    Delivery.objects.bulk_create(deliveries.numbered(found, made.walk.push(made.earlier).api.push.batch_size))

    fresh = sum(c.records for c in staged.chunks)
    Run.objects.filter(pk=run.pk).update(
        source_count=sync.source_rows,
        invalid=sync.invalid_rows,
        changed=fresh,
        unchanged=sync.source_rows - sync.invalid_rows - fresh,
        carried=plan.records,
        planned=plan.records + fresh,
        staged=True,
        rules=rules,
        table_version=sync.mark,
        step="push",
    )
