"""The rows that a held run would delete: kept as records that nobody sent, masked, for whoever decides."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest

from ondatra_web.models import ModelState, Run
from ondatra_web.runs.ledger import DatabaseLedger
from ondatra_web.tracking.records import files_of
from runtime.columns import CHANGE_TYPE, KEY, RECORD, ROWID
from runtime.custody.masks import Masker
from runtime.errors import HeldError
from runtime.model import Mask, Model, Sink
from runtime.records import query
from runtime.tracking.info import RunInfo
from tests.web.filled import a_run, a_sync, workspace

pytestmark = pytest.mark.django_db


@pytest.fixture
def run(settings: Any, tmp_path: Path) -> Run:
    settings.ONDATRA = replace(settings.ONDATRA, data_dir=tmp_path)
    sync = a_sync(workspace(), key=["id"])
    columns = [["id", "INTEGER", "int"], ["mail", "VARCHAR", "string"]]
    ModelState.objects.create(workspace=sync.workspace, name=sync.name, kind="merge", columns=columns)
    return a_run(sync, "working")


def hold(run: Run, rows: pa.Table | None) -> list[tuple[Any, ...]]:
    """The records of the run once it is held."""
    place = run.sync.workspace
    masks = (Mask("mail", "redact"),)
    model = Model(run.sync.name, "m.sql", Path("m.sql"), "", 1, kind="merge", key=("id",), masks=masks, sink=Sink("x"))
    info = RunInfo(place.organization_id, run.sync_id, run.pk, "merge", model, Masker(masks, place.mask_key))
    ledger = DatabaseLedger(
        place, {}, options={}, trigger="command", close_dead=lambda _: None, store_of=lambda _: (None, info), watch=None
    )  # type: ignore[arg-type]
    ledger.held(SimpleNamespace(run_id=run.pk), HeldError("too many", deleted=2, limit=1, rows=rows))  # type: ignore[arg-type]
    run.refresh_from_db()
    shown = ("identifier", "status", "change_type", "record_payload")
    return [tuple(row[name] for name in shown) for row in query.page(files_of(run)).rows]


def test_they_are_kept_as_planned_records_with_their_masks_until_somebody_decides(run: Run) -> None:
    told = {"id": [3, 4], "mail": ["c@x", "d@x"], ROWID: [1, 2], KEY: ["3", "4"]}
    rows = pa.table({**told, CHANGE_TYPE: ["delete"] * 2, RECORD: [True] * 2})

    assert hold(run, rows) == [
        ("3", "planned", "delete", '{"id":3,"mail":"***"}'),
        ("4", "planned", "delete", '{"id":4,"mail":"***"}'),
    ]
    assert (run.status, run.deleted) == ("held", 2)


def test_a_run_is_held_also_where_its_rows_could_not_be_read(run: Run) -> None:
    assert (hold(run, None), run.status) == ([], "held")
