"""Units and calls: the rows of one key stand together, and no call cuts them apart."""
from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa

from runtime.chunk_files import KEYED_UNITS


def unit_starts(table: pa.Table, kind: str) -> np.ndarray[Any, Any]:
    """The first row of each unit; rows of a unit stand together."""
    n = table.num_rows
    if kind not in KEYED_UNITS or n == 0:
        return np.arange(n)
    keys = table.column("__ondatra_key").combine_chunks().dictionary_encode().indices.to_numpy(zero_copy_only=False)
    return np.concatenate(([0], np.flatnonzero(keys[1:] != keys[:-1]) + 1))


def cut_calls(starts: np.ndarray[Any, Any], n: int, wanted: np.ndarray[Any, Any], batch_size: int) -> Iterator[list[int]]:
    """Calls as lists of units; one that does not fit goes into the next call, one that is larger goes alone."""
    ends = np.append(starts[1:], n)
    call: list[int] = []
    rows = 0
    for unit in np.flatnonzero(wanted):
        size = int(ends[unit] - starts[unit])
        if call and rows + size > batch_size:
            yield call
            call, rows = [], 0
        call.append(int(unit))
        rows += size
    if call:
        yield call
