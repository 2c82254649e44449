"""Who delivers which chunk: work is claimed by conditional updates, and free again once its owner is dead."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import numpy as np
from django.db import transaction
from django.db.models import Exists, F, OuterRef, QuerySet
from django.utils import timezone

from ondatra_web import workers
from ondatra_web.models import Answer, Chunk, Delivery, Job, Run
from ondatra_web.runs import progress
from ondatra_web.runs.patience import patiently
from runtime.delivery import answers
from runtime.delivery.outbox import Claim, OpenJob
from runtime.errors import ConfigError
from runtime.model import Column
from runtime.staging import states


def columns_of(plain: Sequence[Sequence[str]]) -> tuple[Column, ...]:
    return tuple(Column(*c) for c in plain)


@patiently
def take(run: Run, slots: int, max_concurrent: int) -> Claim | None:
    """Claims the next chunk of the run that may be sent now, or one whose worker died; None if there is none."""
    workers.me()  # its row outlives a transaction that fails
    mine: list[tuple[int, int]] = []
    try:
        _choose(run, slots, max_concurrent, mine)
        return claim_of(Delivery.objects.select_related("chunk").get(pk=mine[0][0]), slots) if mine else None
    except BaseException:
        _taken.difference_update(mine)
        raise


def _choose(run: Run, slots: int, max_concurrent: int, mine: list[tuple[int, int]]) -> None:
    with transaction.atomic():
        Run.objects.select_for_update().get(pk=run.pk)
        chosen = _free(run, slots, max_concurrent)
        if chosen is None:
            return

        status = Delivery.Status.SEALED if chosen.status == Delivery.Status.SEALED else Delivery.Status.CLAIMED
        mine.append((chosen.pk, chosen.lease + 1))
        _taken.update(mine)  # before the commit, after which other threads of this process see it
        Delivery.objects.filter(pk=chosen.pk).update(status=status, owner=workers.me(), lease=chosen.lease + 1)
        if chosen.owner is not None and chosen.status != Delivery.Status.WAITING and not workers.is_me(chosen.owner):
            told = f"{chosen.owner} was lost: chunk {chosen.ordinal + 1} goes on with {workers.me()}"
            progress.say(run.pk, [("warning", told)])


def _free(run: Run, slots: int, max_concurrent: int) -> Delivery | None:
    """What a dead process left, else the next one in order if the calls in flight leave room for it."""
    open_ones = list(open_deliveries(run).select_related("owner").defer("positions").order_by("ordinal")[:200])
    for left in open_ones:
        if left.status != Delivery.Status.WAITING and (workers.is_dead(left.owner) or _is_astray(left)):
            return left

    working = [d for d in open_ones if d.status == Delivery.Status.CLAIMED]
    waiting = next((d for d in open_ones if d.status == Delivery.Status.WAITING), None)
    if waiting is None or len(working) * slots >= max_concurrent:
        return None
    return waiting if all(d.phase >= waiting.phase for d in working) else None


_taken: set[tuple[int, int]] = set()  # deliveries with the lease under which this process got them


def _is_astray(delivery: Delivery) -> bool:
    """Claimed for this process by a transaction whose end it never heard of, because the connection broke."""
    return delivery.owner_id == workers.me().pk and (delivery.pk, delivery.lease) not in _taken


@patiently
def others_wait(run: Run) -> bool:
    """Whether there is another run with something to deliver that nobody works on."""
    theirs = Delivery.objects.filter(run=OuterRef("pk"))
    waiting, working = (theirs.filter(status=s) for s in (Delivery.Status.WAITING, Delivery.Status.CLAIMED))
    idle = Run.objects.filter(Exists(waiting), ~Exists(working), status=Run.Status.WORKING, staged=True)
    return idle.exclude(pk=run.pk).exists()


def release(run: Run) -> int:
    """Takes a run and what of it is claimed from whoever works on it; how many claims there were. A process that lives
    on finds its lease lost at its next write; calls that it had begun have no known answer and go again."""
    with transaction.atomic():
        run = Run.objects.select_for_update(of=("self",)).select_related("owner").get(pk=run.pk)
        if run.status not in Run.AT_WORK:
            raise ConfigError(f"run {run.pk} is {run.status}: only a run that works has a lease")
        if not run.staged and not workers.is_dead(run.owner):
            raise ConfigError(f"{run.owner} lives and builds run {run.pk}: cancel the run, or end that process")
        claimed = open_deliveries(run).exclude(status=Delivery.Status.WAITING)
        released = claimed.update(owner=None, lease=F("lease") + 1)
        Run.objects.filter(pk=run.pk).update(owner=None, lease=F("lease") + 1)
    return released


def open_deliveries(run: Run) -> QuerySet[Delivery]:
    """What of a run is not done."""
    return still_open(Delivery.objects.filter(run=run))


def still_open(deliveries: QuerySet[Delivery]) -> QuerySet[Delivery]:
    """Those that are not done; a sealed one that has its counts waits only for the store."""
    return deliveries.exclude(status=Delivery.Status.CLOSED).exclude(
        status=Delivery.Status.SEALED, counts__has_key="succeeded"
    )


def claim_of(delivery: Delivery, slots: int = 1) -> Claim:
    chunk = delivery.chunk
    selected = selected_of(delivery)
    blobs = Answer.objects.filter(delivery=delivery).order_by("pk").values_list("blob", flat=True)
    return Claim(
        delivery_id=delivery.pk,
        run_id=delivery.run_id,
        chunk_id=chunk.pk,
        lease=delivery.lease,
        url=chunk.url,
        states=states.unpack(bytes(chunk.states)),
        selected=selected,
        columns=columns_of(chunk.columns),
        first_call=delivery.first_call,
        answered=tuple(entry for blob in blobs for entry in answers.unpack(bytes(blob))),
        runs_failed=states.unpack(bytes(chunk.runs_failed)) if chunk.runs_failed else None,
        sealed_digest=delivery.digest,
        slots=slots,
        jobs=tuple(_open_jobs(chunk, selected)),
    )


def selected_of(delivery: Delivery) -> states.Mask:
    """Which rows of its chunk a delivery is of."""
    rows = delivery.chunk.rows
    return states.unpack_mask(bytes(delivery.positions), rows) if delivery.positions else np.ones(rows, dtype=bool)


def _open_jobs(chunk: Chunk, selected: np.ndarray[Any, Any]) -> list[OpenJob]:
    """The chunk's open jobs, with their rows as indexes among the selected ones."""
    places = np.cumsum(selected) - 1
    found = []
    for job in Job.objects.filter(chunk=chunk, ended_at=None).order_by("pk"):
        rows = places[np.flatnonzero(states.unpack_mask(bytes(job.positions), chunk.rows) & selected)]
        found.append(
            OpenJob(
                job.pk, json.loads(job.ref), rows, job.batch_number, (timezone.now() - job.created_at).total_seconds()
            )
        )
    return found
