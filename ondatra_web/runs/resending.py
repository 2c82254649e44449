"""A run of records that a person chose: what of them is undelivered from where it lies, the rest as the table has it
now."""

from __future__ import annotations

from typing import Any

import numpy as np
from django.conf import settings
from django.db import transaction
from django.utils import timezone

from ondatra_web import workers
from ondatra_web.models import Chunk, Delivery, Run, Sync
from ondatra_web.runs.lake_tables import place_of
from ondatra_web.runs.ledger import held_by_change
from ondatra_web.runs.outbox import columns_of
from ondatra_web.runs.retries import Plan
from runtime.columns import RECORD
from runtime.errors import ConfigError
from runtime.lake import spark
from runtime.lake.table import LakeTable
from runtime.model import Model
from runtime.staging import chunks, stage, states
from runtime.staging.request import Staged, StageRequest


def start(run: Run, planned: Plan, model: Model, *, batch_size: int, given: Run | None = None) -> Run:
    """A working run of these records; `given` is its row where a page made it. Raises ConfigError while another run of
    the sync works."""
    sync = run.sync
    if why := held_by_change(sync, model):
        raise ConfigError(why)
    new = _begin(sync, run, given)
    try:
        staged = _newest(sync, new, model, planned) if planned.again else Staged()
        with transaction.atomic():
            _plan(new, sync, planned, staged, batch_size)
    except BaseException as error:
        Run.objects.filter(pk=new.pk, status__in=Run.ACTIVE).update(
            status=Run.Status.FAILED, error=f"nothing was sent: {error}"[:2000], ended_at=timezone.now(), owner=None
        )
        raise
    return Run.objects.get(pk=new.pk)


def _begin(sync: Sync, run: Run, given: Run | None) -> Run:
    me = workers.me()
    with transaction.atomic():
        Sync.objects.select_for_update().get(pk=sync.pk)
        others = Run.objects.filter(sync=sync, status__in=[Run.Status.WORKING, Run.Status.CANCELING])
        if given is not None:
            others = others.exclude(pk=given.pk)
        if (other := others.first()) is not None:
            raise ConfigError(f"run {other.pk} of {sync.name} is working: wait for its end, or cancel it")
        if given is None:
            given = Run.objects.create(sync=sync, trigger="retry", options={"retry_of": run.pk})
        if not Run.objects.filter(pk=given.pk, status__in=[Run.Status.QUEUED, Run.Status.WORKING]).update(
            status=Run.Status.WORKING, owner=me, lease=given.lease + 1, started_at=timezone.now(), step="changes"
        ):
            raise ConfigError(f"run {given.pk} was cancelled")
    return given


def _newest(sync: Sync, new: Run, model: Model, planned: Plan) -> Staged:
    """Chunks of the chosen rows as the table holds them at the mark."""
    workspace = sync.workspace_id
    assert sync.mark is not None  # something was delivered
    table = LakeTable(f"{settings.ONDATRA.lake_url}/{workspace}/{place_of(workspace, sync.name)}")
    request = StageRequest(
        model=model,
        table=table,
        mark=sync.mark,
        version=sync.mark,
        own_from=-1,
        waiting=(),
        out_url=f"{settings.ONDATRA.staging_url}/{workspace}/{sync.pk}/{new.pk}",
        full=True,
        columns=columns_of(sync.columns),
    )
    return stage.stage_again(spark.isolated(), request, planned.again)


def _plan(new: Run, sync: Sync, planned: Plan, staged: Staged, batch_size: int) -> None:
    deliveries = []
    for made in staged.chunks:
        chunk = Chunk.objects.create(
            sync=sync,
            staged_by=new,
            url=made.url,
            rows=made.rows,
            records=made.records,
            phase=made.phase,
            change_counts=made.change_counts,
            columns=sync.columns,
            table_version=sync.mark,
            states=states.pack(np.full(made.rows, states.UNTRIED, dtype=np.uint8)),
            due_rows=made.rows,
        )
        deliveries.append(Delivery(run=new, chunk=chunk, phase=made.phase, rows=made.rows, records=made.records))
    for chunk_id, mask in planned.masks.items():
        chunk = Chunk.objects.get(pk=chunk_id)
        flags: Any = np.asarray(chunks.read_column(chunk.url, RECORD), dtype=bool)
        deliveries.append(
            Delivery(
                run=new,
                chunk=chunk,
                phase=chunk.phase,
                carried=True,
                positions=states.pack_mask(mask),
                rows=int(mask.sum()),
                records=int(flags[mask].sum()),
            )
        )
    deliveries.sort(key=lambda d: (d.phase, d.chunk_id))
    first = 1
    for ordinal, delivery in enumerate(deliveries):
        delivery.ordinal, delivery.first_call = ordinal, first
        first += -(-delivery.rows // batch_size)
    Delivery.objects.bulk_create(deliveries)
    fresh = sum(made.records for made in staged.chunks)
    Run.objects.filter(pk=new.pk).update(
        source_count=sync.source_rows,
        invalid=sync.invalid_rows,
        changed=fresh,
        unchanged=sync.source_rows - sync.invalid_rows - fresh,
        carried=planned.records,
        planned=planned.records + fresh,
        staged=True,
        table_version=sync.mark,
        step="push",
    )
