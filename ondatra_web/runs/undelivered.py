"""Records that the destination refused and does not hold, over all runs of a sync."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from django.conf import settings

from ondatra_web.models import Chunk, RecordFile, Sync
from ondatra_web.runs import waiting
from ondatra_web.tracking import stores
from runtime.columns import RECORD, ROWID
from runtime.staging import chunks, states

#: What is read of a record file.
COLUMNS = ("identifier", "operation", "status", "status_message", "row_id", "change_type")


@dataclass(frozen=True)
class Undelivered:
    """One such record, as the run that was refused last wrote it down. `identifier`, `operation` and `reason` are None
    where the retention has removed that."""

    row_id: int
    run_id: int | None
    identifier: str | None
    operation: str | None
    reason: str | None


def told(sync: str, records: int) -> str:
    """The sentence that stands at every run while there are some."""
    are = "record is" if records == 1 else "records are"
    listing = settings.ONDATRA.command(f"records {sync} --undelivered")
    return f"{records:,} {are} refused and not at the destination: {listing}"


def of_sync(sync: Sync) -> Iterator[Undelivered]:
    """All of them, oldest chunk first; one chunk at a time is in memory. Raises StoreError."""
    for chunk in waiting.chunks_of(sync).filter(rejected_records__gt=0):
        yield from _of_chunk(chunk)


def _of_chunk(chunk: Chunk) -> Iterator[Undelivered]:
    table = chunks.read_columns(chunk.url, [ROWID, RECORD])
    refused = np.asarray(table.column(RECORD), dtype=bool)
    refused &= states.unpack(bytes(chunk.states)) == states.REJECTED
    left = dict.fromkeys(table.column(ROWID).filter(pa.array(refused)).to_pylist())

    files = RecordFile.objects.filter(delivery__chunk=chunk).select_related("run__bucket__organization")
    for file in files.order_by("-pk"):
        for row in _refused(file, list(left)):
            if row.row_id in left:
                del left[row.row_id]
                yield row
        if not left:
            return
    for row_id in left:
        yield Undelivered(row_id, None, None, None, None)


def _refused(file: RecordFile, row_ids: list[int]) -> Iterator[Undelivered]:
    """What a record file says of these rows."""
    store = stores.of_run(file.run)
    table = pq.read_table(store.local(store.path_of(file.url)), columns=list(COLUMNS))
    rejected = pc.and_(
        pc.equal(table.column("status"), "rejected"), pc.not_equal(table.column("change_type"), "update_preimage")
    )
    wanted = pc.and_(rejected, pc.is_in(table.column("row_id"), value_set=pa.array(row_ids, pa.int64())))
    for row in table.filter(wanted).to_pylist():
        yield Undelivered(row["row_id"], file.run_id, row["identifier"], row["operation"], row["status_message"])
