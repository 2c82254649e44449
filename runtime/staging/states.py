"""The state of each row of a chunk file, one byte a row, kept compressed in the database."""

from __future__ import annotations

import zlib
from typing import Any

import numpy as np
from numpy.typing import NDArray

DONE, UNTRIED, REFUSED, REJECTED, UNKNOWN, BLOCKED, SUPERSEDED = range(7)
#: What a run sends without being asked. A rejected row waits for a person or for a change of its source row.
DUE = (UNTRIED, REFUSED, UNKNOWN)
#: What a newer change of the same row is composed with; BLOCKED only once its job has ended.
UNDELIVERED = (UNTRIED, REFUSED, REJECTED, UNKNOWN, BLOCKED)

States = NDArray[np.uint8]
Mask = NDArray[np.bool_]


def pack(states: NDArray[Any]) -> bytes:
    """The states as the database keeps them."""
    return zlib.compress(np.ascontiguousarray(states, dtype=np.uint8).tobytes(), 6)


def unpack(blob: bytes) -> States:
    """A writable copy of packed states."""
    return np.frombuffer(bytearray(zlib.decompress(blob)), dtype=np.uint8)


def pack_mask(mask: NDArray[Any]) -> bytes:
    """A mask of positions, one bit a row."""
    return zlib.compress(np.packbits(np.asarray(mask, dtype=np.bool_)).tobytes(), 6)


def unpack_mask(blob: bytes, rows: int) -> Mask:
    """The mask of a chunk with so many rows."""
    bits = np.frombuffer(zlib.decompress(blob), dtype=np.uint8)
    return np.unpackbits(bits, count=rows).astype(np.bool_)


def due(states: NDArray[Any]) -> Mask:
    """The rows that are sent without being asked."""
    return np.isin(states, DUE)


def undelivered(states: NDArray[Any]) -> Mask:
    """The rows that a newer change is composed with."""
    return np.isin(states, UNDELIVERED)
