"""Files of deliveries that ended while their store was down: written once it is back, by the rules that their seal
kept.

Neither the model nor its project is asked: a sync whose file is gone, or whose project has an error, gets its records
too.
"""

from __future__ import annotations

import logging

from django.db import transaction
from django.db.models import QuerySet

from ondatra_web.models import Answer, Delivery, Run, Workspace
from ondatra_web.runs import claims, record_files
from ondatra_web.runs.outbox import DatabaseOutbox
from ondatra_web.runs.patience import patiently
from ondatra_web.tracking import stores
from runtime.delivery import written
from runtime.errors import OndatraError
from runtime.tracking.info import by_rules

log = logging.getLogger("ondatra.pending")


def write_of(run: Run) -> int:
    """Writes the files of one run that wait; for how many deliveries. Raises StoreError."""
    waiting = list(_waiting(run.sync.workspace).filter(run=run))
    for delivery in waiting:
        _write(run.sync.workspace, delivery)
    return len(waiting)


def write(workspace: Workspace) -> int:
    """Writes what waits, store by store; for how many deliveries. What still cannot be written waits on."""
    written, down = 0, set()
    for delivery in _waiting(workspace):
        place = delivery.run.store_url, delivery.run.bucket_id
        if place in down:
            continue
        try:
            _write(workspace, delivery)
        except (OndatraError, OSError) as error:
            log.warning("the record files of run %s still wait: %s", delivery.run_id, error)
            down.add(place)
        else:
            written += 1
    return written


def _waiting(workspace: Workspace) -> QuerySet[Delivery]:
    return (
        Delivery.objects.filter(
            run__sync__workspace=workspace, status=Delivery.Status.SEALED, counts__has_key="succeeded"
        )
        .select_related("run__sync", "run__bucket__organization", "chunk")
        .order_by("pk")
    )


def _write(workspace: Workspace, delivery: Delivery) -> None:
    run, claim = delivery.run, claims.claim_of(delivery)
    info = by_rules(
        delivery.sealed,
        organization_id=workspace.organization_id,
        sync_id=run.sync_id,
        run_id=run.pk,
        columns=claim.columns,
        mask_key=workspace.mask_key,
    )
    made = written.write_pending(claim, info, stores.of_run(run), DatabaseOutbox())
    _name(delivery, made)


@patiently
def _name(delivery: Delivery, made: written.Written) -> None:
    run = delivery.run
    with transaction.atomic():
        Run.objects.select_for_update().get(pk=run.pk)
        if not Delivery.objects.filter(pk=delivery.pk, status=Delivery.Status.SEALED).update(
            status=Delivery.Status.CLOSED
        ):
            return  # another process wrote the same files
        record_files.add(run.pk, delivery.pk, made.files, made.calls_file)
        Answer.objects.filter(delivery=delivery).delete()
        if not Delivery.objects.filter(run=run, status=Delivery.Status.SEALED).exists():
            Run.objects.filter(pk=run.pk).update(tracking="written")
