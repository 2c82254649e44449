"""The record files of a sealed delivery, from its chunk and its answers."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from runtime.columns import CHANGE_TYPE, KEY, RECORD
from runtime.delivery import answers as codes
from runtime.delivery.answers import Answers
from runtime.delivery.chunk import Index
from runtime.delivery.filing import Reserve
from runtime.delivery.outbox import Claim, Outbox
from runtime.staging import chunks, values
from runtime.store.base import Store
from runtime.tracking import files as tracking
from runtime.tracking import requests
from runtime.tracking.info import RunInfo
from runtime.tracking.rows import LaterRows, RecordBatch


@dataclass(frozen=True)
class Written:
    """Record files, and the URL of the file of requests with how many it holds."""

    files: Sequence[tracking.WrittenFile] = ()
    calls_file: tuple[str, int] | None = None


def write_pending(claim: Claim, info: RunInfo, store: Store, outbox: Outbox) -> Written:
    """The files of a delivery that ended while the store was down. Raises StoreError while it still is."""
    table = chunks.read_chunk(claim.url, claim.selected)
    answers = Answers(table.num_rows, claim.answered)

    def rows(index: Index) -> Sequence[dict[str, Any]]:
        return values.to_rows(table.take(pa.array(index)), claim.columns)

    files = write(claim, table, answers, rows, info, store, outbox.reserve(claim))
    kept = chunks.kept_calls(claim.url, claim.delivery_id)
    return Written(files, requests.put(store, info, claim.chunk_id, kept) if kept else None)


def batch_types(table: pa.Table, answers: Answers) -> Sequence[str]:
    """Of which types `write` makes files."""
    index = _final(answers)
    return tracking.batch_types(
        table.column(CHANGE_TYPE).take(pa.array(index)),
        table.column(RECORD).to_numpy()[index] | (answers.codes[index] != codes.OK),
    )


def write(
    claim: Claim,
    table: pa.Table,
    answers: Answers,
    rows: Callable[[Index], Sequence[dict[str, Any]]],
    info: RunInfo,
    store: Store,
    reserve: Reserve,
) -> Sequence[tracking.WrittenFile]:
    """The files; `rows` gives those of an index as push() got them, where columns do not say enough. Raises
    StoreError."""
    index = _final(answers)
    if not len(index):
        return ()
    picked = table.take(pa.array(index)) if len(index) < table.num_rows else table

    batch = RecordBatch(
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


def _final(answers: Answers) -> Index:
    """The rows whose answers are final."""
    return np.flatnonzero(answers.answered() & (answers.codes != codes.JOB))


def _at(messages: Mapping[int, str], index: Index) -> Mapping[int, str]:
    """The messages by their place among the picked rows."""
    return {place: said for place, i in enumerate(index.tolist()) if (said := messages.get(i))} if messages else {}
