"""Delivers one chunk: cut into push calls, call, record each answer (`runtime.sending`); then seal, write the files, close."""
from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa

from runtime import answers as codes
from runtime import faults, states, tracking
from runtime.errors import StoreError
from runtime.outbox import Claim, Closing, Outbox, RecordCounts
from runtime.push import Outcome
from runtime.recorder import Recorder
from runtime.sending import DeliveryRun, Progress, Sending
from runtime.supervise import supervised

__all__ = ["DeliveryRun", "Progress", "close_dead", "deliver", "write_pending"]


def deliver(claim: Claim, run: DeliveryRun, outbox: Outbox) -> Progress:
    """Delivers what is selected of a chunk and closes it. Raises LeaseLost, StoreError."""
    return _Delivery(claim, run, outbox).deliver()


def close_dead(claim: Claim, run: DeliveryRun, outbox: Outbox) -> None:
    """Closes the chunk of a process that died: its recorded answers become records, calls in flight may have been taken."""
    _Delivery(claim, run, outbox).close()


def write_pending(claim: Claim, run: DeliveryRun, outbox: Outbox) -> Sequence[tracking.WrittenFile]:
    """The record files of a delivery that ended while the store was down. Raises StoreError."""
    return _Delivery(claim, run, outbox).write_files()


class _Delivery(Sending):

    def deliver(self) -> Progress:
        if not self.claim.sealed_digest:
            recorder = Recorder(self.outbox, self.claim, self.outbox.failed_in_row(self.claim.run_id))
            try:
                supervised(lambda: self._push_all(recorder), self._cancelled, abandon=lambda: self._abandon(recorder), ends=self.outbox.thread_ends)
            finally:
                recorder.close()
            faults.point("after_answers")
        self.close()
        return self.progress

    # closing

    def close(self) -> None:
        runs_failed = self._give_up()
        digest = self.claim.sealed_digest or self._digest()
        if not self.claim.sealed_digest:
            self.outbox.seal(self.claim, digest)
            faults.point("after_seal")
        closing = Closing(states=self._new_states(), runs_failed=runs_failed, counts=self._counts(), log=self.log,
                          push_ms=int(self.push_seconds * 1000), http_ms=int(self.http_seconds * 1000))
        try:
            closing = replace(closing, **self._write(digest))
        except StoreError as error:             # never the end of a delivery: the answers stay until the store is back
            closing = replace(closing, files_pending=True, log=[*self.log, ("warning", f"the record files wait: {error}")])
        faults.point("after_files")
        self.outbox.close(self.claim, closing)

    def _write(self, digest: str) -> dict[str, Any]:
        files = self._write_records(digest)         # first: requests whose file no database row names would never be shown
        calls_file = tracking.write_calls(self.run.store, self.run.info, self.claim.chunk_id, self.calls, self.run.masker,
                                          rows=self.rows, batch_numbers=self.answers.call.tolist()) if self.calls else None
        return {"files": files, "calls_file": calls_file}

    def write_files(self) -> Sequence[tracking.WrittenFile]:
        """The record files of a sealed delivery whose store was down; raises StoreError while it still is."""
        return self._write_records(self.claim.sealed_digest)

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
        for i in np.flatnonzero(bad & (mine >= limit) & np.isin(self.answers.codes, (codes.ERROR, codes.UNKNOWN))):
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

    def _write_records(self, digest: str) -> Sequence[tracking.WrittenFile]:
        index = np.flatnonzero(self.answers.answered() & (self.answers.codes != codes.JOB))
        if not len(index):
            return ()
        picked = self.table.take(pa.array(index)) if len(index) < self.n else self.table
        a = self.answers
        batch = tracking.RecordBatch(
            rows=self._rows(index), records=picked.column("__ondatra_record").to_pylist(), keys=picked.column("__ondatra_key").to_pylist(),
            outcomes=[Outcome(codes.OUTCOMES[c], a.messages.get(int(i)), c != codes.UNKNOWN) for i, c in zip(index, a.codes[index], strict=True)],
            attempts=a.attempt[index].tolist(), batch_numbers=a.call[index].tolist(),
            started=a.started[index].tolist(), ended=a.ended[index].tolist(), digest=digest, chunk_id=self.claim.chunk_id)
        return tracking.write(self.run.store, self.run.info, batch, self.outbox.reserve(self.claim))

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
        record = self.table.column("__ondatra_record").to_numpy(zero_copy_only=False).astype(bool)
        tally = {code: int((self.answers.codes[record] == code).sum()) for code in codes.SEVERITY}
        lost = int((self.in_flight & record & (self.answers.codes == codes.NO_ANSWER)).sum())
        companions = np.isin(self.answers.codes[~record], (codes.ERROR, codes.UNKNOWN))
        return RecordCounts(succeeded=tally["k"] + tally["w"], warned=tally["w"], rejected=tally["r"],
                            retrying=tally["e"] + tally["u"] + tally["j"] + lost, not_tried=tally["-"] - lost, companions_due=int(companions.sum()))
