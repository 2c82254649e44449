"""Which staged chunks stay, and that the rest goes once the sync's days are over."""

from __future__ import annotations

import dataclasses
from datetime import timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ondatra_web.clock import staged
from ondatra_web.models import Chunk, Delivery, RecordFile, Run, Sync
from runtime.staging import states
from tests.web.filled import a_run, a_sync, closing, workspace

pytestmark = pytest.mark.django_db
OLD = timedelta(days=15)


@pytest.fixture
def sync(settings: Any, tmp_path: Path) -> Sync:
    settings.ONDATRA = dataclasses.replace(settings.ONDATRA, staging_url=(tmp_path / "staging").as_uri())
    return a_sync(workspace())


def chunk_of(run: Run, folder: Path, *by: Run, **undelivered: int) -> Chunk:
    """A chunk that the run staged and that it and others delivered of."""
    place = folder / f"staging/{run.sync.workspace_id}/{run.sync_id}/{run.pk}/x/one.parquet"
    place.parent.mkdir(parents=True, exist_ok=True)
    place.write_bytes(b"rows")
    made = Chunk.objects.create(
        sync=run.sync,
        staged_by=run,
        url=place.as_uri(),
        rows=1,
        records=1,
        states=states.pack(np.zeros(1, dtype=np.uint8)),
        **undelivered,
    )
    for each in (run, *by):
        Delivery.objects.create(run=each, chunk=made, ordinal=0, rows=1, records=1, status="closed")
    return made


def folders(folder: Path) -> set[int]:
    return {int(p.name) for p in folder.glob("staging/*/*/*")}


def test_chunks_stay_while_undelivered_waiting_for_the_store_or_of_a_run_whose_records_are_kept(
    sync: Sync, tmp_path: Path
) -> None:
    done, due, blocked, dead, pending, again = (a_run(sync, ago=OLD, **closing(1)) for _ in range(6))
    Run.objects.filter(pk=pending.pk).update(tracking="pending")
    young = a_run(sync, ago=timedelta(days=1), **closing(1))
    gone = chunk_of(done, tmp_path)
    RecordFile.objects.create(
        run=done,
        delivery=Delivery.objects.get(run=done),
        batch_type="records_updated",
        number=0,
        url="file:///r",
        rows=1,
    )
    for run, more in (
        (due, {"due_rows": 1}),
        (blocked, {"blocked_rows": 1}),
        (dead, {"rejected_rows": 1}),
        (pending, {}),
        (young, {}),
    ):
        chunk_of(run, tmp_path, **more)
    chunk_of(again, tmp_path, young)
    orphan = tmp_path / f"staging/{sync.workspace_id}/{sync.pk}/999999/x"  # of a run that is not known any more
    orphan.mkdir(parents=True)

    assert staged.remove_old() == 2 and staged.remove_old() == 0

    assert folders(tmp_path) == {r.pk for r in (due, blocked, dead, pending, young, again)}
    assert not Chunk.objects.filter(pk=gone.pk).exists() and RecordFile.objects.get(run=done).delivery is None


def test_what_a_dead_process_staged_goes_too_and_what_may_be_staging_now_stays(sync: Sync, tmp_path: Path) -> None:
    dead, working = a_run(sync, ago=OLD, status="failed"), a_run(sync, ago=OLD, status="working")
    for run in (dead, working):
        (tmp_path / f"staging/{sync.workspace_id}/{sync.pk}/{run.pk}/y").mkdir(parents=True)

    assert staged.remove_old() == 1

    assert folders(tmp_path) == {working.pk}
