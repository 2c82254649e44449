"""Counts that are sums of what stands elsewhere, added up anew: a run's from its deliveries, a sync's from the states
of its chunks."""

from __future__ import annotations

from collections import Counter

from django.db import transaction

from ondatra_web.models import Chunk, Delivery, Run, Sync
from ondatra_web.runs import waiting
from runtime.delivery.outbox import RecordCounts
from runtime.errors import ConfigError
from runtime.staging import states

#: What a delivery adds to its run when it is closed.
COUNTED = tuple(vars(RecordCounts()))
#: What a chunk says of its rows.
OF_A_CHUNK = ("due_rows", "blocked_rows", "rejected_rows", "rejected_records")


def of_run(run: Run) -> dict[str, list[int]]:
    """Sets its counts; those that were wrong, as `[before, after]`. Raises ConfigError once deliveries are gone."""
    with transaction.atomic():
        run = Run.objects.select_for_update().get(pk=run.pk)
        records, added = 0, Counter[str]()
        for number, counts in Delivery.objects.filter(run=run).values_list("records", "counts").iterator():
            records += number
            added.update(counts)
        if records != run.planned:
            raise ConfigError(
                f"run {run.pk} planned {run.planned:,} records and its deliveries hold {records:,}: the others were "
                f"removed with their staged chunks, so its counts cannot be added up any more"
            )
        wrong = {name: [getattr(run, name), added[name]] for name in COUNTED if getattr(run, name) != added[name]}
        Run.objects.filter(pk=run.pk).update(**{name: after for name, (_, after) in wrong.items()})
    return wrong


def of_sync(sync: Sync) -> dict[str, list[int]]:
    """Sets what the chunks of a sync say of their rows; sums that were wrong, as `[before, after]`. Raises ConfigError
    while a run works."""
    before, after = Counter[str](), Counter[str]()
    with transaction.atomic():
        sync = Sync.objects.select_for_update().get(pk=sync.pk)
        if (working := Run.objects.filter(sync=sync, status__in=Run.AT_WORK).first()) is not None:
            raise ConfigError(f"run {working.pk} of {sync.name} is working: wait for its end, or cancel it")
        for chunk in Chunk.objects.filter(sync=sync).order_by("pk").iterator(chunk_size=50):
            before.update(_of_chunk(chunk))
            waiting.save_states(chunk.pk, states.unpack(bytes(chunk.states)))
            chunk.refresh_from_db(fields=OF_A_CHUNK)
            after.update(_of_chunk(chunk))
    return {name: [before[name], after[name]] for name in OF_A_CHUNK if before[name] != after[name]}


def _of_chunk(chunk: Chunk) -> dict[str, int]:
    return {name: getattr(chunk, name) for name in OF_A_CHUNK}
