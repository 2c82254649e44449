"""Rows that a run was to send and has no answer for stand in its window like records, with why they wait."""

from __future__ import annotations

import io
import json
import re
from html import unescape
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from django.core.management import call_command
from django.test import Client

from ondatra_web.models import Chunk, Delivery, ModelState, Run, Workspace
from ondatra_web.tracking import unsent
from runtime.staging import states
from tests.web.filled import a_run, a_sync, closing, person, put_records, record, workspace

pytestmark = pytest.mark.django_db
SQL = "-- @kind: merge\n-- @unique_key: tailnum\n-- @sink: assets\n{}SELECT tailnum, owner FROM planes\n"


@pytest.fixture
def run(tmp_path: Path) -> Run:
    """Of five rows one was delivered, two were not tried, one is in an open job, one was left out by a limit."""
    place = workspace()
    Workspace.objects.filter(pk=place.pk).update(project_dir=str(tmp_path / "project"))
    place.refresh_from_db()
    found = a_run(a_sync(place), "failed", **closing(5, not_tried=3, retrying=1))
    _write_model(found, tmp_path, "")
    chunk = _chunk(
        found, tmp_path, [states.DONE, states.UNTRIED, states.UNTRIED, states.BLOCKED, states.UNTRIED], due=3, blocked=1
    )
    chosen = states.pack_mask(np.array([True, True, True, True, False]))
    Delivery.objects.create(run=found, chunk=chunk, ordinal=1, rows=4, records=4, positions=chosen, status="closed")
    put_records(found, tmp_path / "store", [record("N0")])
    return found


def _write_model(run: Run, folder: Path, header: str) -> None:
    file = folder / "project/models/sync/aircraft.sql"
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(SQL.format(header))
    ModelState.objects.get_or_create(
        workspace=run.sync.workspace, name=run.sync.name, defaults={"file": "models/sync/aircraft.sql"}
    )


def _chunk(run: Run, folder: Path, each: list[int], *, due: int, blocked: int) -> Chunk:
    n = len(each)
    table = pa.table(
        {
            "tailnum": [f"N{i}" for i in range(n)],
            "owner": [f"ada{i}@example.com" for i in range(n)],
            "__ondatra_rowid": pa.array(range(n), pa.int64()),
            "__ondatra_change_type": ["insert"] * n,
            "__ondatra_key": [f"N{i}" for i in range(n)],
            "__ondatra_record": [True] * n,
        }
    )
    pq.write_table(table, folder / "chunk.parquet")
    return Chunk.objects.create(
        sync=run.sync,
        staged_by=run,
        url=(folder / "chunk.parquet").as_uri(),
        rows=n,
        records=n,
        columns=[["tailnum", "VARCHAR", "string"], ["owner", "VARCHAR", "string"]],
        states=states.pack(np.array(each, dtype=np.uint8)),
        due_rows=due,
        blocked_rows=blocked,
    )


def _rows(client: Client, run: Run, query: str = "") -> list[tuple[str, str, str]]:
    """Identifier, status and reason of each row of the window."""
    text = " ".join(unescape(client.get(f"/runs/{run.pk}/records/{query}").content.decode()).split())
    found = re.findall(
        r'<code>([^<]*)</code> </a> </td> <td data-label="Status"><span class="tag \w*">([^<]*)</span></td> '
        r'<td data-label="Reason" class="why">([^<]*)</td>',
        text,
    )
    return [(identifier, status, why) for identifier, status, why in found]


def test_rows_that_wait_are_listed_behind_the_records_with_their_reason(client: Client, run: Run) -> None:
    client.force_login(person("alice", run.sync.workspace))
    stopped = f"not tried: run {run.pk} stopped early; the next run sends it"

    assert _rows(client, run) == [
        ("N0", "Success", ""),
        ("N1", "Waiting", stopped),
        ("N2", "Waiting", stopped),
        ("N4", "Waiting", "left out by --limit: the next run"),
        ("N3", "Waiting", "in an open job at the destination: the next run asks for its end"),
    ]


def test_they_are_filtered_searched_and_opened_like_records(client: Client, run: Run) -> None:
    client.force_login(person("alice", run.sync.workspace))

    assert [row[0] for row in _rows(client, run, "?status=waiting")] == ["N1", "N2", "N4", "N3"]
    assert [row[0] for row in _rows(client, run, "?q=ADA2&within=payload")] == ["N2"]
    text = client.get(f"/runs/{run.pk}/records/?status=waiting").content.decode()
    place = re.findall(r"record=(waiting[^&\"]*)", text)[0]
    assert "ada1@example.com" in client.get(f"/runs/{run.pk}/records/?record={place}").content.decode()


def test_the_command_lists_them_when_they_are_asked_for_and_a_retry_takes_those_that_nobody_tried(
    client: Client, run: Run
) -> None:
    said = io.StringIO()
    with pytest.raises(SystemExit, match="0"):
        call_command("records", str(run.pk), "--status=waiting", "--format=json", stdout=said)
    client.force_login(person("alice", run.sync.workspace))

    preview = client.get(f"/runs/{run.pk}/retry/?status=waiting").content.decode()

    assert [row["identifier"] for row in json.loads(said.getvalue())] == ["N1", "N2", "N4", "N3"]
    assert f"4 records of run {run.pk} match; 3 are undelivered and would be sent again" in preview
    assert "1 waits for the end of an open job" in preview


def test_more_rows_than_a_page_has_room_for_are_told(client: Client, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(unsent, "MOST", 2)
    client.force_login(person("alice", run.sync.workspace))

    assert [row[0] for row in _rows(client, run)] == ["N0", "N1", "N2"]
    assert "2 more rows wait than are listed here" in client.get(f"/runs/{run.pk}/records/").content.decode()


def test_what_the_model_masks_now_is_masked(client: Client, run: Run, tmp_path: Path) -> None:
    _write_model(run, tmp_path, "-- @mask: owner\n")
    client.force_login(person("alice", run.sync.workspace))

    text = client.get(f"/runs/{run.pk}/records/download/?format=csv&status=waiting")

    told = b"".join(text.streaming_content).decode()  # type: ignore[arg-type]
    assert "N1" in told and "***" in told and "ada1" not in told


def test_without_the_models_file_nothing_is_shown_that_a_mask_might_hide(
    client: Client, run: Run, tmp_path: Path
) -> None:
    (tmp_path / "project/models/sync/aircraft.sql").unlink()
    client.force_login(person("alice", run.sync.workspace))

    text = client.get(f"/runs/{run.pk}/records/").content.decode()

    assert "only it says what is masked" in text
    assert "ada1" not in text
