"""The database's part in delivery: answers, seals, closes. Every write names the lease of its claim and fails when
another process has taken the work over."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from django.db import connection, transaction
from django.db.models import F
from django.utils import timezone

from ondatra_web.models import Answer, Delivery, Job, Run
from ondatra_web.runs import progress, record_files
from ondatra_web.runs.claims import still_open
from ondatra_web.runs.patience import patiently
from ondatra_web.runs.waiting import save_states
from runtime.delivery import answers
from runtime.delivery.outbox import Claim, Closing, RecordCounts
from runtime.errors import LeaseLost
from runtime.staging import states

#: How old the answer to "was this run cancelled?" may be; asked before every call.
FRESH_SECONDS = 0.2
#: A claim that was written under so lately (seconds) is ours: nobody takes over what beat less than
#: `workers.LOST_AFTER` ago.
SURE_SECONDS = 20.0


class DatabaseOutbox:
    """runtime.delivery.outbox.Outbox over Django's tables."""

    def __init__(self, heard: Callable[[int], None] = lambda rows: None) -> None:
        """`heard` is told how many rows were answered for the first time."""
        self._heard = heard
        self._asked: dict[int, tuple[float, bool]] = {}
        self._sure: dict[int, float] = {}  # delivery -> when its claim was last known to be ours

    def _held(self, claim: Claim) -> Any:
        return Delivery.objects.filter(pk=claim.delivery_id, lease=claim.lease)

    def _lost(self, claim: Claim) -> LeaseLost:
        return LeaseLost(f"delivery {claim.delivery_id} of run {claim.run_id} was taken over by another process")

    @patiently
    def record(self, claim: Claim, entries: Sequence[answers.Entry], *, failed_in_row: int | None) -> None:
        now = time.monotonic()
        if failed_in_row is None:
            self._append(claim, answers.pack(entries))
        else:
            with transaction.atomic():
                self._append(claim, answers.pack(entries))
                Run.objects.filter(pk=claim.run_id).update(failed_in_row=failed_in_row)
        self._sure[claim.delivery_id] = now
        self._heard(sum(len(e.index) for e in entries if e.attempt == 1 and not e.codes.startswith(answers.BEGUN)))

    def _append(self, claim: Claim, blob: bytes) -> None:
        """One statement, many times a second beside the calls: the ORM takes a millisecond of Python's lock for it.
        Where the claim's row can be locked it is, so that who takes the delivery over reads every answer that was
        committed under the old lease."""
        lock = " FOR UPDATE" if connection.features.has_select_for_update else ""
        sql = (  # names of our own tables and a constant; every value is bound
            f"INSERT INTO {Answer._meta.db_table} (delivery_id, blob, created_at) "  # noqa: S608
            f"SELECT id, %s, %s FROM {Delivery._meta.db_table} WHERE id = %s AND lease = %s AND status = %s{lock}"
        )
        with connection.cursor() as cursor:
            cursor.execute(
                sql,
                [
                    blob,
                    connection.ops.adapt_datetimefield_value(timezone.now()),
                    claim.delivery_id,
                    claim.lease,
                    Delivery.Status.CLAIMED.value,
                ],
            )
            if cursor.rowcount != 1:
                raise self._lost(claim)

    def make_sure(self, claim: Claim) -> None:
        if time.monotonic() - self._sure.get(claim.delivery_id, float("-inf")) > SURE_SECONDS:
            self._look(claim)

    @patiently
    def _look(self, claim: Claim) -> None:
        now = time.monotonic()
        if not self._held(claim).filter(status=Delivery.Status.CLAIMED).exists():
            raise self._lost(claim)
        self._sure[claim.delivery_id] = now

    @patiently
    def open_job(self, claim: Claim, entry: answers.Entry, ref: dict[str, Any]) -> int:
        mask = np.zeros(len(claim.selected), dtype=bool)
        mask[np.flatnonzero(claim.selected)[np.asarray(entry.index)]] = True
        with transaction.atomic():
            run = Run.objects.only("sync_id").get(pk=claim.run_id)
            job = Job.objects.create(
                sync_id=run.sync_id,
                run_id=claim.run_id,
                delivery_id=claim.delivery_id,
                chunk_id=claim.chunk_id,
                positions=states.pack_mask(mask),
                batch_number=entry.call,
                ref=json.dumps(ref),
            )
            self.record(claim, [entry], failed_in_row=None)
        return job.pk

    @patiently
    def failed_in_row(self, run_id: int) -> int:
        return Run.objects.values_list("failed_in_row", flat=True).get(pk=run_id)

    @patiently
    def seal(self, claim: Claim, digest: str, rules: dict[str, Any]) -> None:
        if not self._held(claim).update(status=Delivery.Status.SEALED, digest=digest, sealed=rules):
            raise self._lost(claim)

    def reserve(self, claim: Claim) -> Callable[[str], int]:
        asked: set[str] = set()

        @patiently
        def number(batch_type: str) -> int:
            """The delivery's own number of that type; a second request gets the next free one of the run."""
            with transaction.atomic():
                Run.objects.select_for_update().only("pk").get(pk=claim.run_id)
                mine = Delivery.objects.only("lease", "files").get(pk=claim.delivery_id)
                if mine.lease != claim.lease:
                    raise self._lost(claim)
                if batch_type not in mine.files or batch_type in asked:
                    mine.files[batch_type] = record_files.next_number(claim.run_id, batch_type)
                    mine.save(update_fields=["files"])
            asked.add(batch_type)
            return int(mine.files[batch_type])

        return number

    @patiently
    def close(self, claim: Claim, closing: Closing) -> None:
        status = Delivery.Status.SEALED if closing.files_pending else Delivery.Status.CLOSED

        with transaction.atomic():
            Run.objects.select_for_update().get(pk=claim.run_id)
            if not still_open(self._held(claim)).update(status=status, counts=vars(closing.counts)):
                raise self._lost(claim)

            save_states(claim.chunk_id, closing.states, closing.runs_failed)
            _end_jobs(claim.chunk_id, closing.states)

            record_files.add(claim.run_id, claim.delivery_id, closing.files, closing.calls_file)
            progress.say(claim.run_id, closing.log)
            if closing.files_pending:
                Run.objects.filter(pk=claim.run_id).update(tracking="pending")
            else:
                Answer.objects.filter(delivery_id=claim.delivery_id).delete()
            _count(claim.run_id, closing)

    @patiently
    def cancelled(self, run_id: int) -> bool:
        at, said = self._asked.get(run_id, (0.0, False))
        if time.monotonic() - at > FRESH_SECONDS:
            status = Run.objects.values_list("status", flat=True).get(pk=run_id)
            said = status in (Run.Status.CANCELING, Run.Status.CANCELLED)
            self._asked[run_id] = time.monotonic(), said
        return said

    def thread_ends(self) -> None:
        connection.close()


def _end_jobs(chunk_id: int, now: states.States) -> None:
    """The jobs of a chunk none of whose rows they still block."""
    for job in Job.objects.filter(chunk_id=chunk_id, ended_at=None):
        if not (now[states.unpack_mask(bytes(job.positions), len(now))] == states.BLOCKED).any():
            Job.objects.filter(pk=job.pk).update(ended_at=timezone.now())


def _count(run_id: int, closing: Closing) -> None:
    counts: RecordCounts = closing.counts
    added = {**vars(counts), "push_ms": closing.push_ms, "http_ms": closing.http_ms}
    Run.objects.filter(pk=run_id).update(**{name: F(name) + number for name, number in added.items()})
