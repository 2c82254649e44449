"""Units: the rows of one key stand together, are sent in one call, tried again and counted together."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from runtime.columns import KEY
from runtime.model import Kind

#: Kinds whose rows have a key; in the others each row stands alone.
KEYED: tuple[Kind, ...] = ("merge", "tracked", "scd2")


def unit_starts(table: pa.Table, kind: str) -> NDArray[np.int64]:
    """The first row of each unit of a chunk in delivery order."""
    rows = table.num_rows
    if kind not in KEYED or rows == 0:
        return np.arange(rows, dtype=np.int64)

    codes = table.column(KEY).combine_chunks().dictionary_encode().indices.to_numpy(zero_copy_only=False)
    return np.concatenate(([0], np.flatnonzero(codes[1:] != codes[:-1]) + 1)).astype(np.int64)
