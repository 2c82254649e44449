"""An outbox in memory and chunk files without Spark, so that deliveries run in a test as they do in a worker."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from runtime.custody.masks import Masker
from runtime.delivery.answers import Entry
from runtime.delivery.filing import Filing
from runtime.delivery.outbox import Claim, Closing
from runtime.delivery.run import DeliveryRun
from runtime.model import Column, Model, Sink
from runtime.push.call import CallContext
from runtime.push.function import PushFunction
from runtime.staging import states
from runtime.store.folder import FolderStore
from runtime.tracking.info import RunInfo

#: What a change is -> its rows in a chunk of kind merge.
IMAGES = {"insert": ("insert",), "update": ("update_preimage", "update_postimage"), "delete": ("delete",)}


class MemoryOutbox:
    """Keeps what a database would."""

    def __init__(self) -> None:
        self.entries: list[Entry] = []
        self.closed: list[Closing] = []
        self.jobs: list[dict[str, Any]] = []
        self.is_cancelled = False
        self._numbers: dict[str, Any] = {}

    def record(self, claim: Claim, entries: Sequence[Entry], *, failed_in_row: int | None) -> None:
        self.entries += entries

    def open_job(self, claim: Claim, entry: Entry, ref: dict[str, Any]) -> int:
        self.entries.append(entry)
        self.jobs.append(ref)
        return len(self.jobs)

    def make_sure(self, claim: Claim) -> None:
        """Nobody else claims."""

    def failed_in_row(self, run_id: int) -> int:
        return 0

    def seal(self, claim: Claim, digest: str, rules: dict[str, Any]) -> None:
        """Nothing dies between seal and close."""

    def reserve(self, claim: Claim) -> Callable[[str], int]:
        return lambda kind: next(self._numbers.setdefault(kind, itertools.count()))

    def close(self, claim: Claim, closing: Closing) -> None:
        self.closed.append(closing)

    def thread_ends(self) -> None:
        """No connection to close."""

    def cancelled(self, run_id: int) -> bool:
        return self.is_cancelled

    def filing(self) -> Filing:
        return Filing(self, lambda claim: None)


def write_chunk(folder: Path, changes: Sequence[tuple[str, Mapping[str, Any]]]) -> Claim:
    """A claim of a chunk of kind merge: (insert, update or delete; cells with an id), in the order of delivery."""
    rows = [
        {
            **cells,
            "__ondatra_rowid": number,
            "__ondatra_change_type": image,
            "__ondatra_key": str(cells["id"]),
            "__ondatra_record": image != "update_preimage",
        }
        for number, (change, cells) in enumerate(changes, 1)
        for image in IMAGES[change]
    ]
    place = folder / "__ondatra_part=1/chunk.parquet"
    place.parent.mkdir(parents=True)
    pq.write_table(pa.Table.from_pylist(rows), place)
    untried = np.full(len(rows), states.UNTRIED, dtype=np.uint8)
    return Claim(1, 3, 11, 1, place.as_uri(), untried, np.ones(len(rows), dtype=bool), (), first_call=1)


def run_of(push: PushFunction, context: CallContext, folder: Path, columns: Sequence[Column] = ()) -> DeliveryRun:
    """What the chunks of a run share, with a store in the folder."""
    place = Path("models/sync/out.sql")
    model = Model("sync.out", str(place), place, "", 1, kind="merge", key=("id",), sink=Sink("crm"))
    masker = Masker((), "ab" * 32)
    info = RunInfo(1, 2, 3, "merge", model, masker, tuple(columns))
    return DeliveryRun(info, model, push, context, masker, FolderStore(folder / "store"))
