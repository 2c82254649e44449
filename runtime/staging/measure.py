"""What was staged, counted from the files themselves, so that it is true of what will be sent."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from functools import partial

import numpy as np
import pyarrow.compute as pc
from numpy.typing import NDArray

from runtime.columns import CHANGE_TYPE, RECORD
from runtime.staging import chunks as chunk_files
from runtime.staging.chunks import CARRIED, CHANGES, WAITS
from runtime.staging.request import Staged, StagedChunk


def measured(urls: list[str], kind: str, superseded: dict[int, NDArray[np.int64]]) -> Staged:
    """The chunks of these files, in the order in which they are delivered."""
    with ThreadPoolExecutor(8) as pool:
        made = [chunk for chunk in pool.map(partial(_measured, kind=kind), urls) if chunk.rows]
    made.sort(key=lambda c: (c.waits, c.phase))

    own = [c for c in made if not c.carried]
    deleted = sum(c.deletes for c in own)
    return Staged(
        tuple(made),
        superseded,
        changed=sum(c.records for c in own) - deleted,
        deleted=deleted,
        carried=sum(c.records for c in made if c.carried),
    )


def _measured(url: str, kind: str) -> StagedChunk:
    is_scd2 = kind == "scd2"
    table = chunk_files.read_columns(url, [CHANGE_TYPE, RECORD, *(["is_current"] if is_scd2 else [])])
    record = np.asarray(table.column(RECORD).to_numpy(), dtype=np.bool_)
    if is_scd2:
        gone = ~np.asarray(table.column("is_current").to_numpy(), dtype=np.bool_)
    else:
        gone = np.asarray(pc.equal(table.column(CHANGE_TYPE), "delete"))

    part = chunk_files.part_of(url)
    return StagedChunk(
        url,
        table.num_rows,
        int(record.sum()),
        phase=int(bool(part & CHANGES)),
        change_counts=chunk_files.tally(table.column(CHANGE_TYPE)),
        carried=bool(part & CARRIED),
        waits=bool(part & WAITS),
        deletes=int((record & gone).sum()),
    )
