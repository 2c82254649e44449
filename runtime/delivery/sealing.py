"""A delivery is sealed: its answers are frozen, and what they make of states and counts is known."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from runtime import faults
from runtime.columns import RECORD
from runtime.delivery import answers as codes
from runtime.delivery import written
from runtime.delivery.answers import Answers
from runtime.delivery.filing import Reserve, Sealed
from runtime.delivery.outbox import Closing, Outbox, RecordCounts
from runtime.delivery.run import DeliveryRun
from runtime.delivery.sending import Sent
from runtime.errors import StoreError
from runtime.staging import chunks, states
from runtime.tracking import requests
from runtime.tracking.info import rules_of

Numbers = np.ndarray[Any, Any]


def seal(sent: Sent, run: DeliveryRun, outbox: Outbox) -> Sealed:
    """Freezes the answers."""
    runs_failed = give_up(sent, run.api.push.give_up_after)
    claim = sent.claim
    if not claim.sealed_digest:
        claim = replace(claim, sealed_digest=digest(sent.answers))
        outbox.seal(claim, claim.sealed_digest, rules_of(run.info))
        faults.point("after_seal")

    closing = Closing(
        states=new_states(sent),
        runs_failed=runs_failed,
        counts=counts(sent),
        log=sent.log,
        push_ms=int(sent.push_seconds * 1000),
        http_ms=int(sent.http_seconds * 1000),
    )
    sent = replace(sent, claim=claim)
    types = written.batch_types(sent.chunk.table, sent.answers)
    return Sealed(claim, types, lambda reserve: _closed(sent, run, closing, reserve))


def _closed(sent: Sent, run: DeliveryRun, closing: Closing, reserve: Reserve) -> Closing:
    """Writes the files; raises no StoreError. May run in another thread."""
    try:
        # records first: requests whose file no database row names would never be shown
        chunk = sent.chunk
        files = written.write(sent.claim, chunk.table, sent.answers, chunk.dicts, run.info, run.store, reserve)
        calls = requests.put(run.store, run.info, sent.claim.chunk_id, _calls(sent, run)) if sent.calls else None
        return replace(closing, files=files, calls_file=calls)
    except StoreError as error:  # never the end of a delivery: the answers stay until the store is back
        log = [*closing.log, ("warning", f"the record files wait: {error}"), *_keep_calls(sent, run)]
        return replace(closing, files_pending=True, log=log)


def _calls(sent: Sent, run: DeliveryRun) -> bytes:
    numbers = sent.answers.call.tolist()
    return requests.to_parquet(requests.masked(sent.calls, run.masker, sent.chunk.made, numbers))


def _keep_calls(sent: Sent, run: DeliveryRun) -> Sequence[tuple[str, str]]:
    """Keeps the requests beside the chunk until the store is back; a log line where that fails too."""
    try:
        if sent.calls:
            chunks.keep_calls(sent.claim.url, sent.claim.delivery_id, _calls(sent, run))
    except OSError as error:
        lost = f"{len(sent.calls):,} requests are not kept, because the staging area is down too: {error}"
        return [("warning", lost)]
    return ()


def give_up(sent: Sent, limit: int) -> Numbers | None:
    """The runs in which each row of the chunk ended in error. From `limit` on (0 for never) its answer becomes a
    reject."""
    before, answers = sent.claim.runs_failed, sent.answers
    if not limit:
        return before
    whole = np.zeros(len(sent.claim.states), dtype=np.uint8) if before is None else before.copy()
    mine = whole[sent.claim.selected]

    bad = np.isin(answers.worst_of_units(sent.chunk.starts), (codes.ERROR, codes.UNKNOWN))
    mine[bad & (mine < 255)] += 1
    for i in np.flatnonzero(bad & (mine >= limit) & answers.failed(np.arange(sent.chunk.n))):
        answers.codes[i] = codes.REJECT
        answers.messages[int(i)] = f"gave up after {limit} runs: {answers.messages.get(int(i), '')}"

    whole[sent.claim.selected] = mine
    return whole


def digest(answers: Answers) -> str:
    """Tells these answers from any others."""
    said = hashlib.sha256()
    for part in (answers.codes, answers.attempt, answers.call, answers.started, answers.ended):
        said.update(np.ascontiguousarray(part).tobytes())
    said.update(repr(sorted(answers.messages.items())).encode())
    return said.hexdigest()


def new_states(sent: Sent) -> Numbers:
    """The states of the whole chunk."""
    worst = sent.answers.worst_of_units(sent.chunk.starts)
    mine = sent.chunk.states.copy()
    for code, state in codes.STATES.items():
        mine[worst == code] = state
    mine[sent.in_flight & (worst == codes.NO_ANSWER)] = states.UNKNOWN

    whole = sent.claim.states.copy()
    whole[sent.claim.selected] = mine
    return whole


def counts(sent: Sent) -> RecordCounts:
    """Records by their end; what was in flight counts as due again."""
    said = sent.answers.codes
    record = sent.chunk.table.column(RECORD).to_numpy(zero_copy_only=False).astype(bool)
    tally = {code: int((said[record] == code).sum()) for code in codes.SEVERITY}
    lost = int((sent.in_flight & record & (said == codes.NO_ANSWER)).sum())

    return RecordCounts(
        succeeded=tally[codes.OK] + tally[codes.WARN],
        warned=tally[codes.WARN],
        rejected=tally[codes.REJECT],
        retrying=tally[codes.ERROR] + tally[codes.UNKNOWN] + tally[codes.JOB] + lost,
        not_tried=tally[codes.NO_ANSWER] - lost,
        companions_due=int(sent.answers.failed(np.flatnonzero(~record)).sum()),
    )
