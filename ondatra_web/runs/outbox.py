"""The database's part in delivery: claims, answers, seals, closes. Work is claimed by conditional updates; every later
write names the lease of its claim and fails when another process has taken the work over."""

from __future__ import annotations

import functools
import json
import logging
import time
from collections.abc import Callable, Sequence
from typing import Any, ParamSpec, TypeVar

import numpy as np
from django.db import InterfaceError, OperationalError, connection, transaction
from django.db.models import F, Max, QuerySet
from django.utils import timezone

from ondatra_web import workers
from ondatra_web.models import Answer, ApiCallFile, Chunk, Delivery, Job, MessageGroup, RecordFile, Run, RunLog
from ondatra_web.runs.waiting import save_states
from runtime.delivery import answers
from runtime.delivery.outbox import Claim, Closing, OpenJob
from runtime.errors import LeaseLost
from runtime.model import Column
from runtime.staging import states
from runtime.tracking.files import WrittenFile

P = ParamSpec("P")
T = TypeVar("T")
log = logging.getLogger("ondatra.outbox")
#: How old the answer to "was this run cancelled?" may be; asked before every call.
FRESH_SECONDS = 0.2
#: A claim that was written under so lately (seconds) is ours: nobody takes over what beat less than
#: `workers.LOST_AFTER` ago.
SURE_SECONDS = 20.0
#: Seconds for which a database that is locked or away is asked again.
PATIENCE = 60.0
MOST_LOG_LINES = 1_000
LONGEST_LINE = 10_000


def columns_of(plain: Sequence[Sequence[str]]) -> tuple[Column, ...]:
    return tuple(Column(*c) for c in plain)


def patiently(work: Callable[P, T]) -> Callable[P, T]:
    """Tries again while the database is locked or away for a moment. What it does should bear being done twice."""

    @functools.wraps(work)
    def tried(*args: P.args, **kwargs: P.kwargs) -> T:
        end = time.monotonic() + PATIENCE
        while True:
            try:
                return work(*args, **kwargs)
            except (OperationalError, InterfaceError) as error:
                if connection.in_atomic_block or time.monotonic() > end:
                    raise
                log.warning("the database is asked again: %s", error)
                connection.close()
                time.sleep(0.5)

    return tried


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
        open_ones = list(open_deliveries(run).select_related("owner").defer("positions").order_by("ordinal")[:200])
        dead = [
            d for d in open_ones if d.status != Delivery.Status.WAITING and (workers.is_dead(d.owner) or _is_astray(d))
        ]
        working = [d for d in open_ones if d.status == Delivery.Status.CLAIMED and d not in dead]
        waiting = [d for d in open_ones if d.status == Delivery.Status.WAITING]
        if dead:
            chosen = dead[0]
        elif waiting and len(working) * slots < max_concurrent and all(d.phase >= waiting[0].phase for d in working):
            chosen = waiting[0]
        else:
            return
        status = Delivery.Status.SEALED if chosen.status == Delivery.Status.SEALED else Delivery.Status.CLAIMED
        mine.append((chosen.pk, chosen.lease + 1))
        _taken.update(mine)  # before the commit, after which other threads of this process see it
        Delivery.objects.filter(pk=chosen.pk).update(status=status, owner=workers.me(), lease=chosen.lease + 1)


_taken: set[tuple[int, int]] = set()  # deliveries with the lease under which this process got them


def _is_astray(delivery: Delivery) -> bool:
    """Claimed for this process by a transaction whose end it never heard of, because the connection broke."""
    return delivery.owner_id == workers.me().pk and (delivery.pk, delivery.lease) not in _taken


def open_deliveries(run: Run) -> QuerySet[Delivery]:
    """What of a run is not done; a sealed delivery that has its counts waits only for the store."""
    return (
        Delivery.objects.filter(run=run)
        .exclude(status=Delivery.Status.CLOSED)
        .exclude(status=Delivery.Status.SEALED, counts__has_key="succeeded")
    )


def claim_of(delivery: Delivery, slots: int = 1) -> Claim:
    chunk = delivery.chunk
    whole = states.unpack(bytes(chunk.states))
    selected = (
        states.unpack_mask(bytes(delivery.positions), chunk.rows)
        if delivery.positions
        else np.ones(chunk.rows, dtype=bool)
    )
    said = [
        entry
        for blob in Answer.objects.filter(delivery=delivery).order_by("pk").values_list("blob", flat=True)
        for entry in answers.unpack(bytes(blob))
    ]
    return Claim(
        delivery_id=delivery.pk,
        run_id=delivery.run_id,
        chunk_id=chunk.pk,
        lease=delivery.lease,
        url=chunk.url,
        states=whole,
        selected=selected,
        columns=columns_of(chunk.columns),
        first_call=delivery.first_call,
        answered=tuple(said),
        runs_failed=states.unpack(bytes(chunk.runs_failed)) if chunk.runs_failed else None,
        sealed_digest=delivery.digest,
        slots=slots,
        jobs=tuple(_open_jobs(chunk, selected)),
    )


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


class DatabaseOutbox:
    """runtime.delivery.outbox.Outbox over Django's tables."""

    def __init__(self) -> None:
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

    def _append(self, claim: Claim, blob: bytes) -> None:
        """One statement, many times a second beside the calls: the ORM takes a millisecond of Python's lock for it.
        Where the claim's row can be locked it is, so that who takes the delivery over reads every answer that was
        committed under the old lease."""
        lock = " FOR UPDATE" if connection.features.has_select_for_update else ""
        with connection.cursor() as cursor:
            cursor.execute(
                f"INSERT INTO {Answer._meta.db_table} (delivery_id, blob, created_at) SELECT id, %s, %s FROM "
                f"{Delivery._meta.db_table}"
                f" WHERE id = %s AND lease = %s AND status = %s{lock}",
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
        @patiently
        def number(batch_type: str) -> int:
            """The delivery's own number of that type; a second request gets the next free one of the run."""
            with transaction.atomic():
                Run.objects.select_for_update().only("pk").get(pk=claim.run_id)
                mine = Delivery.objects.only("lease", "files").get(pk=claim.delivery_id)
                if mine.lease != claim.lease:
                    raise self._lost(claim)
                given = mine.files.get(batch_type)
                if given is None or batch_type in asked:
                    taken = [
                        n
                        for files in Delivery.objects.filter(run_id=claim.run_id).values_list("files", flat=True)
                        if (n := files.get(batch_type)) is not None
                    ]
                    taken += [
                        n
                        for n in (
                            RecordFile.objects.filter(run_id=claim.run_id, batch_type=batch_type).aggregate(
                                n=Max("number")
                            )["n"],
                        )
                        if n is not None
                    ]
                    given = max(taken, default=-1) + 1
                    mine.files[batch_type] = given
                    mine.save(update_fields=["files"])
                asked.add(batch_type)
                return int(given)

        asked: set[str] = set()
        return number

    @patiently
    def close(self, claim: Claim, closing: Closing) -> None:
        c = closing.counts
        with transaction.atomic():
            Run.objects.select_for_update().get(pk=claim.run_id)
            status = Delivery.Status.SEALED if closing.files_pending else Delivery.Status.CLOSED
            still_open = (
                self._held(claim)
                .exclude(status=Delivery.Status.CLOSED)
                .exclude(status=Delivery.Status.SEALED, counts__has_key="succeeded")
            )
            if not still_open.update(status=status, counts=vars(c)):
                raise self._lost(claim)
            save_states(claim.chunk_id, closing.states, closing.runs_failed)
            for job in Job.objects.filter(chunk_id=claim.chunk_id, ended_at=None):
                if not (
                    closing.states[states.unpack_mask(bytes(job.positions), len(closing.states))] == states.BLOCKED
                ).any():
                    Job.objects.filter(pk=job.pk).update(ended_at=timezone.now())
            record_files(claim.run_id, claim.delivery_id, closing.files)
            if closing.calls_file:
                ApiCallFile.objects.create(
                    run_id=claim.run_id,
                    delivery_id=claim.delivery_id,
                    url=closing.calls_file[0],
                    calls=closing.calls_file[1],
                )
            say(claim.run_id, closing.log)
            if closing.files_pending:
                Run.objects.filter(pk=claim.run_id).update(tracking="pending")
            else:
                Answer.objects.filter(delivery_id=claim.delivery_id).delete()
            Run.objects.filter(pk=claim.run_id).update(
                succeeded=F("succeeded") + c.succeeded,
                warned=F("warned") + c.warned,
                rejected=F("rejected") + c.rejected,
                retrying=F("retrying") + c.retrying,
                not_tried=F("not_tried") + c.not_tried,
                companions_due=F("companions_due") + c.companions_due,
                push_ms=F("push_ms") + closing.push_ms,
                http_ms=F("http_ms") + closing.http_ms,
            )

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


def _line(text: str) -> str:
    """A log line as any database takes it: no NUL, no half surrogates, of a length that a page can show."""
    text = text.replace("\0", "\ufffd").encode(errors="backslashreplace").decode()
    return text if len(text) <= LONGEST_LINE else text[: LONGEST_LINE - 1] + "…"


def say(run_id: int, lines: Sequence[tuple[str, str]]) -> None:
    """Adds lines (level, text) to a run's log, which people read: it has its limit."""
    room = MOST_LOG_LINES - RunLog.objects.filter(run_id=run_id).count()
    RunLog.objects.bulk_create(
        [RunLog(run_id=run_id, level=level, text=_line(text)) for level, text in lines[: max(room, 0)]]
    )


def record_files(run_id: int, delivery_id: int | None, files: Sequence[WrittenFile]) -> None:
    """Names written files and adds up their message groups."""
    run = Run.objects.only("sync_id").get(pk=run_id)
    for f in files:
        RecordFile.objects.get_or_create(
            run_id=run_id,
            batch_type=f.batch_type,
            number=f.number,
            defaults={
                "delivery_id": delivery_id,
                "url": f.path,
                "rows": f.rows,
                "size": f.size,
                "counts": f.counts,
                "operations": f.operations,
                "min_identifier": f.min_identifier,
                "max_identifier": f.max_identifier,
                "written_at": timezone.now(),
            },
        )
        for group in f.groups:
            pattern = group.pattern[:500]
            known, made = MessageGroup.objects.get_or_create(
                run_id=run_id,
                status=group.status,
                pattern=pattern,
                defaults={
                    "sample_message": group.sample_message,
                    "sample_identifier": group.sample_identifier,
                    "rows": group.rows,
                    "first_run_id": _first_run(run, group.status, pattern),
                },
            )
            if not made:
                MessageGroup.objects.filter(pk=known.pk).update(rows=F("rows") + group.rows)


def _first_run(run: Run, status: str, pattern: str) -> int:
    """The run in which this sync first said so: the newest earlier group knows it."""
    earlier = (
        MessageGroup.objects.filter(run__sync_id=run.sync_id, status=status, pattern=pattern, run_id__lt=run.pk)
        .order_by("-run_id")
        .values_list("first_run_id", flat=True)
        .first()
    )
    return earlier or run.pk
