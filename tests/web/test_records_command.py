"""`manage.py records` and `fact_tables` over files that were written as a run writes them."""

from __future__ import annotations

import csv
import dataclasses
import io
import itertools
import json
import sys
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from django.core.management import call_command

from ondatra_web.models import Destination, DestinationObject, Organization, Run, Sync, Workspace
from ondatra_web.runs import record_files
from ondatra_web.tracking import facts, history, records
from runtime.custody.masks import Masker
from runtime.model import Column, Mask, Model
from runtime.records import query
from runtime.records.filter import Filter
from runtime.store.folder import FolderStore
from runtime.store.opening import open_store
from runtime.tracking import files
from runtime.tracking.info import RunInfo
from runtime.tracking.rows import RecordBatch
from runtime.tracking.schema import SCHEMA

pytestmark = pytest.mark.django_db
KEY = "ab" * 32
COLUMNS = (Column("id", "BIGINT", "bigint"), Column("email", "VARCHAR", "string"))


@dataclasses.dataclass(frozen=True)
class Answer:
    kind: str = "ok"
    message: str | None = None


@pytest.fixture
def place(settings, tmp_path):
    settings.ONDATRA = dataclasses.replace(
        settings.ONDATRA, data_dir=tmp_path, tracking_url=(tmp_path / "store").as_uri()
    )
    return tmp_path


@pytest.fixture
def sync(place):
    organization = Organization.objects.create(name="Ours")
    workspace = Workspace.objects.create(organization=organization, slug="w", project_dir=str(place), mask_key=KEY)
    return Sync.objects.create(workspace=workspace, name="sync.contacts", kind="merge", key=["id"], function="crm")


def info(run, masks=()):
    model = Model("sync.contacts", "c.sql", Path("c.sql"), "", 1, kind="merge", key=("id",), masks=tuple(masks))
    return RunInfo(run.sync.workspace.organization_id, run.sync_id, run.pk, "merge", model, Masker(masks, KEY), COLUMNS)


def make_run(sync, answers, masks=(), **fields):
    """A run with one record for each id: its answer."""
    run = Run.objects.create(sync=sync, store_url=records.settings.ONDATRA.tracking_url, **fields)
    n = len(answers)
    rows = [{"id": i, "email": f"p{i}@x", "__ondatra_rowid": i, "__ondatra_change_type": "insert"} for i in answers]
    batch = RecordBatch(
        rows,
        [True] * n,
        [str(i) for i in answers],
        [a.kind for a in answers.values()],
        [1] * n,
        [1] * n,
        [0] * n,
        [1] * n,
        "d",
        1,
        {at: a.message for at, a in enumerate(answers.values()) if a.message},
    )
    numbers = itertools.count()
    record_files.add(
        run.pk, None, files.write(open_store(run.store_url), info(run, masks), batch, lambda _: next(numbers))
    )
    return run


@pytest.fixture
def run(sync):
    return make_run(sync, {1: Answer(), 2: Answer("reject", "bad address"), 3: Answer("warn", "cut")})


def command(*args):
    out, err, code = io.StringIO(), io.StringIO(), 0
    try:
        call_command(*map(str, args), stdout=out, stderr=err)
    except SystemExit as ended:
        code = ended.code
    return code, out.getvalue(), err.getvalue()


def test_json_is_a_list_of_objects_with_the_columns_of_the_files(run):
    code, out, _ = command("records", run.pk, "--format", "json")
    rows = json.loads(out)
    assert (code, list(rows[0])) == (0, SCHEMA.names)
    assert [(r["identifier"], r["status"], r["status_message"]) for r in rows] == [
        ("1", "succeeded", None),
        ("2", "rejected", "bad address"),
        ("3", "succeeded", "cut"),
    ]


@pytest.mark.parametrize(
    ("args", "expected"),
    [
        (["--status", "rejected"], ["2"]),
        (["--status", "Success"], ["1", "3"]),
        (["--identifier", "3"], ["3"]),
        (["--identifier", "99"], []),
        (["--status", "invalid"], []),
    ],
)
def test_records_are_filtered_by_status_and_identifier(run, args, expected):
    assert [r["identifier"] for r in json.loads(command("records", run.pk, "--format", "json", *args)[1])] == expected


def test_a_table_shows_identifier_status_and_reason(run):
    assert command("records", run.pk)[1].splitlines() == [
        "identifier                   status     operation reason",
        "1                            succeeded  upsert",
        "2                            rejected   upsert    bad address",
        "3                            succeeded  upsert    cut",
    ]


def test_csv_has_the_files_columns_in_order(run):
    rows = list(csv.DictReader(io.StringIO(command("records", run.pk, "--format", "csv")[1])))
    assert (list(rows[0]), [r["identifier"] for r in rows]) == (SCHEMA.names, ["1", "2", "3"])


def test_parquet_goes_to_a_file(run, tmp_path):
    assert command("records", run.pk, "--format", "parquet", "--output", tmp_path / "out.parquet")[0] == 0
    assert pq.read_table(tmp_path / "out.parquet").column("identifier").to_pylist() == ["1", "2", "3"]


@pytest.mark.parametrize(
    ("args", "said"),
    [
        (["--format", "parquet"], "--output FILE"),
        (["--status", "nope"], "there are: success"),
        (["--format", "csv", "--output", "/no/such/dir/x"], "cannot be written"),
    ],
)
def test_a_wrong_use_is_exit_2_with_the_way_out(run, args, said):
    code, out, err = command("records", run.pk, *args)
    assert (code, out) == (2, "")
    assert said in err


def test_an_unknown_run_is_exit_2(db):
    assert command("records", 999)[0] == 2


def test_a_masked_key_is_found_by_its_plain_form(sync):
    run = make_run(sync, {17: Answer(), 18: Answer()}, masks=[Mask("id", "hash")])
    (found,) = json.loads(command("records", run.pk, "--identifier", "17", "--format", "json")[1])
    assert found["identifier"] == info(run, [Mask("id", "hash")]).masks.value("id", "17") != "17"


def test_a_run_whose_invalid_rows_did_not_change_shows_those_of_the_earlier_run(sync):
    import pyarrow as pa

    first, second = make_run(sync, {1: Answer()}, invalid=1), make_run(sync, {2: Answer()}, invalid=1)
    table = pa.table(
        {
            "id": pa.array([None], pa.int64()),
            "email": ["a@x"],
            "__ondatra_key": pa.array([None], pa.string()),
            "__ondatra_status": ["NULL"],
        }
    )
    record_files.add(first.pk, None, files.write_invalid(open_store(first.store_url), info(first), table, lambda _: 0))
    assert [r["status"] for r in query.page(records.files_of(second), Filter()).rows] == ["succeeded", "NULL"]
    assert query.count(records.files_of(second), Filter(status="invalid")) == 1


def test_planned_records_of_a_dry_run_are_shown_from_their_own_place(sync, place):
    import pyarrow as pa

    run = Run.objects.create(sync=sync, dry_run=True)
    chunk = pa.table({"__ondatra_record": [True], "__ondatra_key": ["1"]})
    row = {"id": 1, "email": "a@x", "__ondatra_rowid": 1, "__ondatra_change_type": "insert"}
    files.write_planned(place / "dry_runs" / str(run.pk) / "planned.0.parquet", info(run), [row], chunk)
    assert [(r["identifier"], r["status"]) for r in json.loads(command("records", run.pk, "--format", "json")[1])] == [
        ("1", "planned")
    ]
    assert (
        sum(query.tally(records.files_of(run)).values())
        == query.count(records.files_of(run), Filter(operation="upsert"))
        == 1
    )
    assert not (place / "store").exists()


def test_a_store_that_is_gone_is_said(run, place):
    for file in (place / "store").rglob("*.parquet"):
        file.unlink()
    code, _, err = command("records", run.pk, "--format", "json")
    assert code == 1 and "records_updated.0.parquet is not there any more" in err


def test_history_and_its_index_tell_the_same(sync):
    runs = [make_run(sync, {1: Answer(), 2: Answer("reject", "no")}) for _ in range(3)]
    before = history.history_of(sync, "2")
    assert history.refresh(sync.workspace.organization) == 3
    assert history.history_of(sync, "2") == before
    assert [(r["sync_run_id"], r["status"]) for r in before] == [(str(r.pk), "rejected") for r in reversed(runs)]
    assert records.record_at(sync, before[0]["place"])["record_payload"] == '{"id":2,"email":"p2@x"}'


def test_the_fact_tables_of_an_organization_hold_its_own_rows_only(sync, place):
    to = Destination.objects.create(workspace=sync.workspace, type="HubSpot")
    contact = DestinationObject.objects.create(destination=to, name="Contact")
    stranger = Organization.objects.create(name="Others")
    Destination.objects.create(
        workspace=Workspace.objects.create(organization=stranger, slug="o", project_dir="/x", mask_key=KEY),
        type="Salesforce",
    )
    assert command("fact_tables")[0] == 0
    store, org = FolderStore(place / "store"), sync.workspace.organization_id
    told = {
        n: pq.read_table(store.local(f"metadata/{org}/{n}.parquet"), partitioning=None)
        .select(["id", "type", "name"])
        .to_pylist()
        for n in ("source_objects", "destinations", "destination_objects")
    }
    assert told == {
        "source_objects": [{"id": sync.pk, "type": "DataWarehouse::Query", "name": "sync.contacts"}],
        "destinations": [{"id": to.pk, "type": "HubSpot::Connection", "name": "HubSpot"}],
        "destination_objects": [{"id": contact.pk, "type": "HubSpot::ObjectTypes::Contact", "name": "Contact"}],
    }
    assert facts.write_fact_tables(stranger)[0].endswith(f"metadata/{stranger.pk}/source_objects.parquet")


def test_the_command_prints_bytes_to_a_real_terminal_too(run, capsysbinary):
    with pytest.raises(SystemExit):
        call_command("records", str(run.pk), "--format", "jsonl")
    sys.stdout.flush()
    assert len(capsysbinary.readouterr().out.splitlines()) == 3
