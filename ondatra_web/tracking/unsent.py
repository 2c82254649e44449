"""Rows that wait: a run was to send them and has no answer for them. Listed like records, with why they wait.

A chunk's waiting rows become a file of records when somebody looks at them, apart from Sync Tracking and from the
store, masked as its records are; it is made anew when their states change.
"""

from __future__ import annotations

import itertools
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from django.conf import settings
from django.db.models import Q

from ondatra_web.models import UNDELIVERED, Chunk, Delivery, ModelState, Run
from runtime.columns import RECORD
from runtime.custody import private
from runtime.custody.masks import Masker
from runtime.errors import StoreError
from runtime.model import Column, Model
from runtime.project.directives import parse_model
from runtime.records.filter import FileRef
from runtime.staging import chunks, states
from runtime.store.folder import FolderStore
from runtime.tracking.files import to_parquet
from runtime.tracking.info import RunInfo, by_rules
from runtime.tracking.unsent import unsent_table

#: The status of such a row.
WAITING = "waiting"
#: So many rows are listed, and the rest of the chunk at which that is reached.
MOST = 200_000


@dataclass(frozen=True)
class _Part:
    """Rows of one chunk that wait for one reason."""

    chunk: Chunk
    number: int  # of the reason: a chunk may have rows that wait for others
    mask: states.Mask
    why: str
    rules: dict[str, Any]  # of the delivery's records; empty where none were written
    model: Model | None  # as it stands in its file, where there are no rules

    @property
    def name(self) -> str:
        """Another one where the rows, the reason or the masks are others."""
        masks = self.rules.get("masks") or (self.model and self.model.masks)
        said = np.packbits(self.mask).tobytes() + f"{self.why}{masks}{self.chunk.url}".encode()
        return f"{self.stem}{zlib.crc32(said):08x}"

    @property
    def stem(self) -> str:
        return f"{WAITING}.{self.chunk.pk}-{self.number}-"

    @property
    def records(self) -> int:
        if self.chunk.records == self.chunk.rows:
            return int(self.mask.sum())
        return int(np.asarray(chunks.read_column(self.chunk.url, RECORD), dtype=bool)[self.mask].sum())


class _Waiting(FolderStore):
    """Makes a file when it is opened for the first time."""

    def __init__(self, run: Run, parts: list[_Part]) -> None:
        super().__init__(folder_of(run))
        self.run = run
        self.parts = {f"{part.name}.parquet": part for part in parts}

    def local(self, path: str) -> Path:
        place = self.folder / path
        if not place.exists() and path in self.parts:
            self._make(self.parts[path], place)
        return super().local(path)

    def _make(self, part: _Part, place: Path) -> None:
        try:
            table = chunks.read_chunk(part.chunk.url, part.mask)
        except OSError:
            raise StoreError(f"the staged rows of chunk {part.chunk.pk} cannot be read any more") from None
        private.folder(place.parent)
        for old in place.parent.glob(f"{part.stem}*.parquet"):
            old.unlink(missing_ok=True)
        self.replace(place.name, to_parquet(unsent_table(_info(self.run, part), table, WAITING, part.why)))


def folder_of(run: Run) -> Path:
    return Path(settings.ONDATRA.data_dir) / "waiting" / str(run.pk)


def files(run: Run) -> list[FileRef]:
    """The first of what of a run waits; a file is made when it is opened, its rows are counted without that."""
    return listed(run)[0]


def listed(run: Run) -> tuple[list[FileRef], int]:
    """The same, with how many rows wait beside them: a search makes every file, so a page has no room for millions."""
    if run.dry_run or run.status == Run.Status.HELD:
        return [], 0  # a held run staged nothing
    parts = list(_parts(run))
    told = [(f"{part.name}.parquet", part.records) for part in parts]
    before = itertools.accumulate((n for _, n in told), initial=0)
    some = [(path, n) for (path, n), rows in zip(told, before, strict=False) if n and rows < MOST]
    store = _Waiting(run, parts)
    refs = [FileRef(store, path, n, {WAITING: n}, run_id=run.pk) for path, n in some]
    return refs, sum(n for _, n in told) - sum(n for _, n in some)


def _parts(run: Run) -> Iterator[_Part]:
    of_run = Q(staged_by=run) | Q(pk__in=Delivery.objects.filter(run=run).values("chunk"))
    waiting = list(Chunk.objects.filter(UNDELIVERED, of_run, sync_id=run.sync_id).order_by("pk"))
    if not waiting:
        return
    deliveries = {d.chunk_id: d for d in Delivery.objects.filter(run=run, chunk__in=waiting)}
    model = _model(run)
    for chunk in waiting:
        yield from _of_chunk(run, chunk, deliveries.get(chunk.pk), model)


def _of_chunk(run: Run, chunk: Chunk, delivery: Delivery | None, model: Model | None) -> Iterator[_Part]:
    whole = states.unpack(bytes(chunk.states))
    chosen = _selected(delivery, chunk) if delivery else np.zeros(chunk.rows, dtype=bool)
    open_still = delivery is not None and delivery.status in (Delivery.Status.WAITING, Delivery.Status.CLAIMED)
    untried = states.due(whole) if open_still else whole == states.UNTRIED
    reasons = (
        (chosen & untried, _untried(run)),
        (~chosen & (whole == states.UNTRIED) & (chunk.staged_by_id == run.pk), "left out by --limit: the next run"),
        (chosen & (whole == states.BLOCKED), "in an open job at the destination: the next run asks for its end"),
    )
    rules = delivery.sealed if delivery else {}
    yield from (_Part(chunk, n, mask, why, rules, model) for n, (mask, why) in enumerate(reasons) if mask.any())


def _untried(run: Run) -> str:
    if run.status in Run.ACTIVE:
        return "no answer yet: its turn comes in this run"
    stopped = "was cancelled" if run.status == Run.Status.CANCELLED else "stopped early"
    return f"not tried: run {run.pk} {stopped}; the next run sends it"


def _selected(delivery: Delivery, chunk: Chunk) -> states.Mask:
    return (
        states.unpack_mask(bytes(delivery.positions), chunk.rows) if delivery.positions else np.ones(chunk.rows, bool)
    )


def _info(run: Run, part: _Part) -> RunInfo:
    """The rules of the delivery's records, else those of the model as it stands in its file: nothing is shown that a
    mask might hide."""
    columns = tuple(Column(*told) for told in part.chunk.columns)
    place = run.sync.workspace
    if part.rules:
        return by_rules(
            part.rules,
            organization_id=place.organization_id,
            sync_id=run.sync_id,
            run_id=run.pk,
            columns=columns,
            mask_key=place.mask_key,
        )
    model = part.model
    if model is None:
        raise StoreError(
            f"the rows of run {run.pk} that wait are not shown: the file of {run.sync.name} cannot be read, and only "
            "it says what is masked"
        )
    return RunInfo(
        place.organization_id, run.sync_id, run.pk, model.kind, model, Masker(model.masks, place.mask_key), columns
    )


def _model(run: Run) -> Model | None:
    """As its file says it now; None where it cannot be read."""
    place = run.sync.workspace
    state = ModelState.objects.filter(workspace=place, name=run.sync.name, gone_at=None).first()
    folder = Path(place.project_dir)
    if state is None or not state.file or not (folder / state.file).is_file():
        return None
    model, problems = parse_model(folder / state.file, folder)
    return None if problems else model
