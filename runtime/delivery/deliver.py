"""Delivers one chunk: cut into push calls, call, record each answer (`runtime.delivery.sending`); then seal. Files and
close follow (`runtime.delivery.filing`)."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa

from runtime import faults
from runtime.columns import CHANGE_TYPE, KEY, RECORD
from runtime.delivery import answers as codes
from runtime.delivery.answers import Answers
from runtime.delivery.filing import Filing, Reserve, Sealed
from runtime.delivery.outbox import Claim, Closing, Outbox, RecordCounts
from runtime.delivery.recorder import Recorder
from runtime.delivery.sending import DeliveryRun, Progress, Sending
from runtime.errors import StoreError
from runtime.staging import chunks, states, values
from runtime.store.base import Store
from runtime.threads import supervised
from runtime.tracking import files as tracking
from runtime.tracking import requests
from runtime.tracking.rows import LaterRows, RunInfo, rules_of

__all__ = ["DeliveryRun", "Filing", "Progress", "Written", "close_dead", "deliver", "write_pending"]


def deliver(claim: Claim, run: DeliveryRun, outbox: Outbox, filing: Filing) -> Progress:
    """Delivers what is selected of a chunk and leaves it to `filing`, which writes its files and closes it. Raises
    LeaseLost, and what went wrong with the chunk before at its close."""
    return _Delivery(claim, run, outbox).deliver(filing)


def close_dead(claim: Claim, run: DeliveryRun, outbox: Outbox) -> None:
    """Closes the chunk of a process that died: its recorded answers become records, calls in flight may have been
    taken."""
    _Delivery(claim, run, outbox).sealed().close(outbox)


def write_pending(claim: Claim, info: RunInfo, store: Store, outbox: Outbox) -> Written:
    """The files of a delivery that ended while the store was down. Raises StoreError while it still is."""
    table = chunks.read_chunk(claim.url, claim.selected)
    files = _write_records(
        claim,
        table,
        Answers(table.num_rows, claim.answered),
        lambda index: values.to_rows(table.take(pa.array(index)), claim.columns),
        info,
        store,
        outbox.reserve(claim),
    )
    kept = chunks.kept_calls(claim.url, claim.delivery_id)
    return Written(files, requests.put(store, info, claim.chunk_id, kept) if kept else None)


@dataclass(frozen=True)
class Written:
    """Record files, and the URL of the file of requests with how many it holds."""

    files: Sequence[tracking.WrittenFile] = ()
    calls_file: tuple[str, int] | None = None


class _Delivery(Sending):
    def deliver(self, filing: Filing) -> Progress:
        if not self.claim.sealed_digest:
            recorder = Recorder(self.outbox, self.claim, self.outbox.failed_in_row(self.claim.run_id))
            try:
                supervised(
                    lambda: self._push_all(recorder),
                    self._cancelled,
                    abandon=lambda: self._abandon(recorder),
                    ends=self.outbox.thread_ends,
                    meanwhile=filing.look,
                )
            finally:
                recorder.close()
            faults.point("after_answers")
        filing.add(self.sealed())
        return self.progress

    # closing

    def sealed(self) -> Sealed:
        """Freezes the answers."""
        runs_failed = self._give_up()
        claim = self.claim
        if not claim.sealed_digest:
            claim = replace(claim, sealed_digest=self._digest())
            self.outbox.seal(claim, claim.sealed_digest, rules_of(self.run.info))
            faults.point("after_seal")
        closing = Closing(
            states=self._new_states(),
            runs_failed=runs_failed,
            counts=self._counts(),
            log=self.log,
            push_ms=int(self.push_seconds * 1000),
            http_ms=int(self.http_seconds * 1000),
        )
        return Sealed(
            claim, _batch_types(self.table, self.answers), lambda reserve: self._written(claim, closing, reserve)
        )

    def _written(self, claim: Claim, closing: Closing, reserve: Reserve) -> Closing:
        """Writes the files; raises no StoreError. May run in another thread."""
        try:
            # records first: requests whose file no database row names would never be shown
            files = _write_records(claim, self.table, self.answers, self._rows, self.run.info, self.run.store, reserve)
            calls = requests.put(self.run.store, self.run.info, claim.chunk_id, self._calls()) if self.calls else None
            return replace(closing, files=files, calls_file=calls)
        except StoreError as error:  # never the end of a delivery: the answers stay until the store is back
            return replace(
                closing,
                files_pending=True,
                log=[*closing.log, ("warning", f"the record files wait: {error}"), *self._keep_calls()],
            )

    def _calls(self) -> bytes:
        return requests.to_parquet(requests.masked(self.calls, self.run.masker, self.rows, self.answers.call.tolist()))

    def _keep_calls(self) -> Sequence[tuple[str, str]]:
        """Keeps the requests beside the chunk until the store is back; a log line where that fails too."""
        try:
            if self.calls:
                chunks.keep_calls(self.claim.url, self.claim.delivery_id, self._calls())
        except OSError as error:
            return [
                ("warning", f"{len(self.calls):,} requests are not kept, because the staging area is down too: {error}")
            ]
        return ()

    def _give_up(self) -> np.ndarray[Any, Any] | None:
        """Counts the runs in which each row ended in error; from `give_up_after` on it becomes a reject."""
        limit = self.api.push.give_up_after
        before = self.claim.runs_failed
        if not limit:
            return before
        whole = np.zeros(len(self.claim.states), dtype=np.uint8) if before is None else before.copy()
        mine = whole[self.claim.selected]
        bad = np.isin(self.answers.worst_of_units(self.starts), (codes.ERROR, codes.UNKNOWN))
        mine[bad & (mine < 255)] += 1
        for i in np.flatnonzero(bad & (mine >= limit) & self.answers.failed(np.arange(self.n))):
            self.answers.codes[i] = codes.REJECT
            self.answers.messages[int(i)] = f"gave up after {limit} runs: {self.answers.messages.get(int(i), '')}"
        whole[self.claim.selected] = mine
        return whole

    def _digest(self) -> str:
        a = self.answers
        said = hashlib.sha256()
        for part in (a.codes, a.attempt, a.call, a.started, a.ended):
            said.update(np.ascontiguousarray(part).tobytes())
        said.update(repr(sorted(a.messages.items())).encode())
        return said.hexdigest()

    def _new_states(self) -> np.ndarray[Any, Any]:
        worst = self.answers.worst_of_units(self.starts)
        mine = self.states.copy()
        for code, state in codes.STATES.items():
            mine[worst == code] = state
        mine[self.in_flight & (worst == codes.NO_ANSWER)] = states.UNKNOWN
        whole = self.claim.states.copy()
        whole[self.claim.selected] = mine
        return whole

    def _counts(self) -> RecordCounts:
        record = self.table.column(RECORD).to_numpy(zero_copy_only=False).astype(bool)
        tally = {code: int((self.answers.codes[record] == code).sum()) for code in codes.SEVERITY}
        lost = int((self.in_flight & record & (self.answers.codes == codes.NO_ANSWER)).sum())
        companions = self.answers.failed(np.flatnonzero(~record))
        return RecordCounts(
            succeeded=tally["k"] + tally["w"],
            warned=tally["w"],
            rejected=tally["r"],
            retrying=tally["e"] + tally["u"] + tally["j"] + lost,
            not_tried=tally["-"] - lost,
            companions_due=int(companions.sum()),
        )


def _recorded(answers: Answers) -> np.ndarray[Any, Any]:
    """The rows whose answers are final."""
    return np.flatnonzero(answers.answered() & (answers.codes != codes.JOB))


def _batch_types(table: pa.Table, answers: Answers) -> Sequence[str]:
    index = _recorded(answers)
    said = answers.codes[index]
    return tracking.batch_types(
        table.column(CHANGE_TYPE).take(pa.array(index)),
        table.column(RECORD).to_numpy()[index] | (said != codes.OK),
    )


def _write_records(
    claim: Claim,
    table: pa.Table,
    answers: Answers,
    rows: Callable[[np.ndarray[Any, Any]], Sequence[dict[str, Any]]],
    info: RunInfo,
    store: Store,
    reserve: Reserve,
) -> Sequence[tracking.WrittenFile]:
    """The record files of a sealed delivery; `rows` gives those of some indexes as push() got them, where columns
    do not say enough. Raises StoreError."""
    index = _recorded(answers)
    if not len(index):
        return ()
    picked = table.take(pa.array(index)) if len(index) < table.num_rows else table
    batch = tracking.RecordBatch(
        rows=LaterRows(len(index), lambda: rows(index)),
        records=picked.column(RECORD).to_numpy(),
        keys=picked.column(KEY).cast(pa.string()).combine_chunks(),
        outcomes=answers.outcomes(index),
        attempts=answers.attempt[index],
        batch_numbers=answers.call[index],
        started=answers.started[index],
        ended=answers.ended[index],
        digest=claim.sealed_digest,
        chunk_id=claim.chunk_id,
        messages=_at(answers.messages, index),
        source=picked,
    )
    return tracking.write(store, info, batch, reserve)


def _at(messages: Mapping[int, str], index: np.ndarray[Any, Any]) -> Mapping[int, str]:
    """The messages by their place among the picked rows."""
    return {place: said for place, i in enumerate(index.tolist()) if (said := messages.get(i))} if messages else {}
