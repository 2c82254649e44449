"""The rows of one claim: as columns, as units, and as the dicts that push() gets."""

from __future__ import annotations

from collections.abc import Sequence
from threading import Thread
from typing import Any, cast

import numpy as np

from runtime.delivery.outbox import Claim
from runtime.staging import values
from runtime.staging.chunks import read_chunk
from runtime.staging.units import unit_starts

Index = np.ndarray[Any, Any]
#: Rows that become dicts together: few calls take less than so many, and a column at a time is quick with many only.
ROWS_AT_ONCE = 2_000


class Chunk:
    """The rows that a claim selects of its chunk file. An index names them by their places among those."""

    def __init__(self, claim: Claim, kind: str) -> None:
        self.claim = claim
        self.table = read_chunk(claim.url, claim.selected)
        self.n = self.table.num_rows
        self.starts = unit_starts(self.table, kind)
        self.ends = np.append(self.starts[1:], self.n)
        self.states = claim.states[claim.selected]
        #: The dicts that were made so far.
        self.made: list[dict[str, Any] | None] = [None] * self.n
        self._ahead: Thread | None = None
        self._ahead_from = 0
        self._places = None if bool(claim.selected.all()) else np.flatnonzero(claim.selected)

    def rows_of(self, units: Sequence[int]) -> Index:
        """The index of the rows of these units, which are in order."""
        if units[-1] - units[0] + 1 == len(units):
            return np.arange(self.starts[units[0]], self.ends[units[-1]])
        return np.concatenate([np.arange(self.starts[u], self.ends[u]) for u in units])

    def units_with(self, rows: Index, units: Sequence[int]) -> list[int]:
        """Those of the units that hold any of the rows."""
        if not len(rows):
            return []
        some = set(rows.tolist())
        return [u for u in units if not some.isdisjoint(range(self.starts[u], self.ends[u]))]

    def dicts(self, index: Index) -> list[dict[str, Any]]:
        """The rows as push() gets them."""
        made = self.made
        if self._ahead and len(index) and index[-1] >= self._ahead_from:
            self._ahead.join()
            self._make_ahead(self._ahead_from + ROWS_AT_ONCE)
        if len(index) == self.n and all(made):  # no row is an empty dict
            return cast("list[dict[str, Any]]", made)
        if len(index) and index[-1] - index[0] + 1 == len(index) and all(some := made[index[0] : index[-1] + 1]):
            return cast("list[dict[str, Any]]", some)

        places = index.tolist()
        for i in places:
            if made[i] is None:
                self._make(i)
        return [row for i in places if (row := made[i]) is not None]

    def _make(self, i: int) -> None:
        """The dicts from this place on."""
        if self._ahead:
            self._ahead.join()
        if self.made[i] is None:
            self._made_from(i)
        self._make_ahead(i + ROWS_AT_ONCE)

    def _make_ahead(self, i: int) -> None:
        """Where calls are made one by one, the next dicts are made while these are out."""
        self._ahead = None
        if self.claim.slots <= 1 and i < self.n and self.made[i] is None:
            self._ahead_from = i
            self._ahead = Thread(target=self._made_from, args=(i,), name="rows ahead", daemon=True)
            self._ahead.start()

    def _made_from(self, i: int) -> None:
        self.made[i : i + ROWS_AT_ONCE] = values.to_rows(self.table.slice(i, ROWS_AT_ONCE), self.claim.columns)

    def change_ids(self, index: Index) -> list[str]:
        """The same for the same change however often it is sent."""
        places = index if self._places is None else self._places[index]
        return [f"{self.claim.chunk_id}:{place}" for place in places.tolist()]
