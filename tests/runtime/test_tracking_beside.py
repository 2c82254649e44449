"""What lies beside the records: invalid and planned rows, requests, fact tables."""

from __future__ import annotations

import json

import pyarrow as pa
import pyarrow.parquet as pq
from tracked import COLUMNS, START, batch, call, counter, info, row, told, written

from runtime.model import Mask
from runtime.store.folder import FolderStore
from runtime.tracking import facts, requests
from runtime.tracking import files as tracking
from runtime.tracking.info import by_rules, rules_of
from runtime.tracking.metadata import metadata
from runtime.tracking.schema import SCHEMA


def test_invalid_rows_are_recorded_with_the_check_that_they_failed(store):
    table = pa.table(
        {
            "id": pa.array([None, 2, 2], pa.int64()),
            "email": ["a@x", "b@x", "c@x"],
            "__ondatra_key": pa.array([None, "2", "2"], pa.string()),
            "__ondatra_status": ["NULL", "DUPLICATE", "DUPLICATE"],
        }
    )
    (file,) = tracking.write_invalid(store, info(), table, counter(), checked_at=START)
    rows = pq.read_table(store.local(store.path_of(file.path)), partitioning=None).to_pylist()
    assert (file.batch_type, file.counts) == ("records_invalid", {"NULL": 1, "DUPLICATE": 2})
    assert rows[0] == {
        "identifier": None,
        "record_payload": '{"id":null,"email":"a@x"}',
        "operation": "upsert",
        "status": "NULL",
        "status_message": "NULL in the key: id must not be null",
        "batch_started_at": START,
        "batch_ended_at": START,
        "sync_configuration_id": "2",
        "sync_run_id": "3",
        "row_id": None,
        "change_type": None,
        "outcome": "invalid",
        "attempt": None,
        "batch_number": None,
        "previous_payload": None,
    }
    assert told(rows, "identifier", "status") == [(None, "NULL"), ("2", "DUPLICATE"), ("2", "DUPLICATE")]


def test_planned_rows_lie_apart_in_the_same_schema(tmp_path):
    rows = [row(1, "old", "update_preimage"), row(1, "new", "update_postimage")]
    chunk = pa.table({"__ondatra_record": [False, True], "__ondatra_key": ["1", "1"]})
    assert tracking.write_planned(tmp_path / "7" / "planned.0.parquet", info(), rows, chunk) == 1
    table = pq.read_table(tmp_path / "7" / "planned.0.parquet", partitioning=None)
    assert (
        table.schema.remove_metadata(),
        told(table.to_pylist(), "identifier", "status", "outcome", "previous_payload", "batch_started_at"),
    ) == (SCHEMA, [("1", "planned", "planned", '{"id":1,"email":"old"}', None)])


def test_files_that_wait_are_written_by_the_rules_of_their_seal_without_the_model(store):
    run = info(kind="tracked", key=("id",), masks=[Mask("email", "hash")], identifier="email")
    rules = json.loads(json.dumps(rules_of(run)))
    again = by_rules(rules, organization_id=1, sync_id=2, run_id=3, columns=COLUMNS, mask_key="ab" * 32)
    assert (written(store, again, batch([row(1, "a@x")]))[1], metadata(again)) == (
        written(FolderStore(store.folder / "other"), run, batch([row(1, "a@x")]))[1],
        metadata(run),
    )


def test_calls_are_kept_apart_without_masked_values(store):
    run = info(masks=[Mask("email", "redact")])
    rows, numbers = [row(1, "ada@example.com"), row(2, "bob@example.com"), None], [1, 2, 2]
    calls = [
        call(1, '{"e": "ada@example.com"}', "https://x?e=ada%40example.com"),
        call(2, "x" * 65_530 + "bob@ex", response="bob@example.com"),
    ]
    url, n = requests.put(store, run, 11, requests.to_parquet(requests.masked(calls, run.masks, rows, numbers)))
    found = pq.read_table(store.local(store.path_of(url)), partitioning=None).to_pylist()
    assert (store.path_of(url), n) == ("api_calls/1/2/3/11.parquet", 2)
    assert told(found, "url", "request_body", "response_text", "request_headers") == [
        ("https://x?e=***", '{"e": "***"}', "fine", '{"x-app":"***"}'),
        ("https://x/push", "x" * 65_530 + "…", "***", '{"x-app":"ada@example.com"}'),
    ]


def test_the_calls_of_a_record_are_those_tied_to_it_else_those_that_name_it(store):
    calls = [call(1, "a", rows=("5:insert",)), call(1, '{"id":"17"}'), call(1, "170"), call(2, "17")]
    url, _ = requests.put(store, info(), 11, requests.to_parquet(calls))
    places = [store.local(store.path_of(url))]
    record = {"batch_number": 1, "row_id": 5, "change_type": "insert", "identifier": "17"}
    assert told(requests.calls_of(places, record), "request_body") == [("a",)]
    assert told(requests.calls_of(places, {**record, "row_id": 6}), "request_body") == [('{"id":"17"}',)]


def test_fact_tables_have_the_columns_asked_for_and_are_replaced_whole(store):
    for name in ("Old", "HubSpot"):
        facts.write(
            store,
            1,
            [facts.SourceObject(2, "sync.contacts", 4)],
            [facts.Destination(8, facts.connection_type(name), name)],
            [facts.DestinationObject(9, facts.object_type(name, "Contact"), "Contact")],
        )
    tables = {
        n: pq.read_table(store.local(f"metadata/1/{n}.parquet"), partitioning=None).to_pylist()
        for n in ("source_objects", "destinations", "destination_objects")
    }
    assert tables == {
        "source_objects": [
            {
                "id": 2,
                "type": "DataWarehouse::Query",
                "name": "sync.contacts",
                "model_id": 4,
                "business_object_id": None,
                "filter_segment_id": None,
                "cohort_id": None,
            }
        ],
        "destinations": [{"id": 8, "type": "HubSpot::Connection", "name": "HubSpot"}],
        "destination_objects": [{"id": 9, "type": "HubSpot::ObjectTypes::Contact", "name": "Contact"}],
    }


def test_fact_tables_may_be_empty(store):
    facts.write(store, 1, [], [], [])
    assert pq.read_table(store.local("metadata/1/destinations.parquet"), partitioning=None).num_rows == 0
