"""Columns of record files out of Python values."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from runtime.tracking import payloads
from runtime.tracking.info import RunInfo


def strings(texts: Sequence[str | None]) -> pa.Array:
    """Half a surrogate pair has no UTF-8: it is shown as \\ud800."""
    try:
        return pa.array(texts, pa.string())
    except UnicodeEncodeError:
        return pa.array(
            [None if t is None else t.encode(errors="backslashreplace").decode() for t in texts], pa.string()
        )


def same(number: int, rows: int) -> pa.DictionaryArray:
    return pa.DictionaryArray.from_arrays(
        pa.array(np.zeros(rows, dtype=np.int32)), pa.array([str(number)], pa.string())
    )


def payloads_of(info: RunInfo, rows: Sequence[dict[str, Any]]) -> list[str]:
    return payloads.texts(info.columns, info.masks, rows[:])
