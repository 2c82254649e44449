"""Record files: their rows, names, metadata, and what a second writer finds."""

from __future__ import annotations

import itertools
import json
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from runtime.custody.masks import Masker
from runtime.model import Column, Mask, Model
from runtime.push.http.calls import ApiCall
from runtime.push.statuses import shortened
from runtime.store.folder import FolderStore
from runtime.tracking import facts, requests
from runtime.tracking import files as tracking
from runtime.tracking.info import Places, RunInfo, by_rules, rules_of
from runtime.tracking.metadata import json_type, metadata
from runtime.tracking.rows import RecordBatch
from runtime.tracking.schema import SCHEMA

COLUMNS = (Column("id", "BIGINT", "bigint"), Column("email", "VARCHAR", "string"))
START, END = datetime(2026, 1, 15, 8, 9, 10, tzinfo=UTC), datetime(2026, 1, 15, 8, 9, 11, 123456, tzinfo=UTC)


@dataclass(frozen=True)
class Answer:
    kind: str = "ok"
    message: str | None = None


def micros(moment):
    return round(moment.timestamp() * 1_000_000)


def info(kind="merge", key=("id",), masks=(), columns=COLUMNS, **fields):
    model = Model(
        "sync.contacts",
        "models/sync/contacts.sql",
        Path("models/sync/contacts.sql"),
        "",
        1,
        kind=kind,
        key=key,
        masks=tuple(masks),
        **fields,
    )
    return RunInfo(
        1,
        2,
        3,
        kind,
        model,
        Masker(masks, "ab" * 32),
        columns,
        Places(
            workspace_id=7,
            sync_name="sync.contacts",
            source_id=7,
            source_object_id=2,
            destination_type="HubSpot",
            destination_id=8,
            destination_object_id=9,
            started_at=START,
        ),
    )


def row(id, email, change="insert", rowid=None):
    return {"id": id, "email": email, "__ondatra_rowid": rowid or id, "__ondatra_change_type": change}


def batch(rows, answers=None, records=None, keys=None, digest="d1", calls=None):
    n = len(rows)
    return RecordBatch(
        rows,
        records or [True] * n,
        keys or [None if r["id"] is None else str(r["id"]) for r in rows],
        [a.kind for a in answers or [Answer()] * n],
        [1] * n,
        calls or [1] * n,
        [micros(START)] * n,
        [micros(END)] * n,
        digest,
        11,
        {i: a.message for i, a in enumerate(answers or ()) if a.message},
    )


def counter():
    numbers: dict[str, itertools.count] = {}
    return lambda kind: next(numbers.setdefault(kind, itertools.count()))


@pytest.fixture
def store(tmp_path):
    return FolderStore(tmp_path / "store")


def written(store, run, made):
    files = tracking.write(store, run, made, counter())
    return files, [
        r for f in files for r in pq.read_table(store.local(store.path_of(f.path)), partitioning=None).to_pylist()
    ]


def told(rows, *names):
    return [tuple(r[n] for n in names) for r in rows]


def test_a_record_says_what_was_sent_when_and_as_what(store):
    files, rows = written(store, info(), batch([row(1, "a@x")]))
    assert rows == [
        {
            "identifier": "1",
            "record_payload": '{"id":1,"email":"a@x"}',
            "operation": "upsert",
            "status": "succeeded",
            "status_message": None,
            "batch_started_at": START,
            "batch_ended_at": END,
            "sync_configuration_id": "2",
            "sync_run_id": "3",
            "row_id": 1,
            "change_type": "insert",
            "outcome": "ok",
            "attempt": 1,
            "batch_number": 1,
            "previous_payload": None,
        }
    ]
    assert [store.path_of(f.path) for f in files] == ["sync_tracking_datasets/1/2/3/records_updated.0.parquet"]


def test_every_file_has_the_same_schema(store):
    tracking.write(store, info(), batch([row(1, "a@x"), row(2, "b@x", "delete")]), counter())
    schemas = [pq.read_schema(store.local(p)).remove_metadata() for p in store.list("") if p.endswith(".parquet")]
    assert schemas == [SCHEMA] * 2


def test_deletes_have_files_of_their_own_and_each_file_is_counted(store):
    answers = [Answer(), Answer("reject", "no 17"), Answer("warn", "cut"), Answer("error", "no 18")]
    files, _ = written(store, info(), batch([row(1, "a"), row(2, "b"), row(3, "c"), row(4, "d", "delete")], answers))
    assert [
        (f.batch_type, f.number, f.rows, f.counts, f.operations, f.min_identifier, f.max_identifier) for f in files
    ] == [
        (
            "records_updated",
            0,
            3,
            {"succeeded": 2, "rejected": 1},
            {"succeeded|upsert|insert": 2, "rejected|upsert|insert": 1},
            "1",
            "3",
        ),
        ("records_deleted", 0, 1, {"rejected": 1}, {"rejected|delete|delete": 1}, "4", "4"),
    ]
    assert [(g.status, g.pattern, g.rows, g.sample_message, g.sample_identifier) for f in files for g in f.groups] == [
        ("rejected", "no ‹n›", 1, "no 17", "2"),
        ("succeeded", "cut", 1, "cut", "3"),
        ("rejected", "no ‹n›", 1, "no 18", "4"),
    ]


def test_an_old_image_is_a_record_only_when_it_is_not_ok(store):
    rows = [
        row(1, "old", "update_preimage"),
        row(1, "new", "update_postimage"),
        row(2, "old", "update_preimage"),
        row(2, "new", "update_postimage"),
    ]
    _, found = written(
        store, info(), batch(rows, [Answer(), Answer(), Answer("error", "busy"), Answer()], [False, True, False, True])
    )
    assert told(found, "identifier", "change_type", "status", "previous_payload") == [
        ("1", "update_postimage", "succeeded", '{"id":1,"email":"old"}'),
        ("2", "update_preimage", "rejected", None),
        ("2", "update_postimage", "succeeded", '{"id":2,"email":"old"}'),
    ]


def test_a_previous_payload_stands_where_one_old_row_meets_one_new_row(store):
    rows = [
        row(1, "old", "delete", 10),
        row(1, "new", "insert", 11),
        row(2, "o1", "delete", 20),
        row(2, "o2", "delete", 21),
        row(2, "n1", "insert", 22),
        row(3, "gone", "delete", 30),
    ]
    _, found = written(store, info("tracked"), batch(rows, records=[False, True, False, False, True, True]))
    assert told(found, "row_id", "operation", "previous_payload") == [
        (11, "upsert", '{"id":1,"email":"old"}'),
        (22, "upsert", None),
        (30, "delete", None),
    ]


def test_the_closed_version_stands_against_its_own_old_image(store):
    rows = [row(1, "open", "update_preimage"), row(1, "closed", "update_postimage"), row(1, "new", "insert", 2)]
    _, found = written(store, info("scd2"), batch(rows, records=[False, True, True]))
    assert told(found, "operation", "previous_payload") == [("update", '{"id":1,"email":"open"}'), ("append", None)]


@pytest.mark.parametrize(
    ("run", "keys", "expected"),
    [
        (info(), ["1"], "1"),
        (info(key=("id", "email")), ['["1","a@x"]'], '[1,"a@x"]'),
        (info("table", key=()), [None], "5"),
        (info("append", key=()), [None], "5"),
        (info("append"), ["1"], "1"),
        (info("partition"), [None], "5"),
        (info(identifier="email"), ["1"], "a@x"),
        (info("table", key=(), identifier="id"), [None], "1"),
    ],
)
def test_the_identifier_is_the_named_column_the_key_or_the_row_id(store, run, keys, expected):
    _, found = written(store, run, batch([row(1, "a@x", rowid=5)], keys=keys))
    assert told(found, "identifier") == [(expected,)]


def test_values_beyond_json_numbers_stay_exact(store):
    _, (found,) = written(store, info(), batch([row(2**100, "\ud800", rowid=1)], [Answer("warn", "half \ud800")]))
    assert found["status_message"] == "half \\ud800"
    assert json.loads(found["record_payload"]) == {"id": 2**100, "email": "\ud800"}


TRICKY = ['},{"id":1,"__ondatra_rowid":', ',"__ondatra_rowid":5', '\\"},{"id":', "\\", 'é😀"', "", None]


@pytest.mark.parametrize(
    "value",
    [str, lambda text: {"id": text, "__ondatra_rowid": 1}, lambda text: [{"x": text, "__ondatra_rowid": 1}, {"id": 2}]],
    ids=["text", "object", "list"],
)
def test_a_payload_ends_where_our_own_columns_begin_whatever_it_holds(store, value):
    rows = [row(n, text if text is None else value(text)) for n, text in enumerate(TRICKY, 1)]
    _, found = written(store, info(), batch(rows))
    assert [r["record_payload"] for r in found] == [
        json.dumps({"id": r["id"], "email": r["email"]}, separators=(",", ":"), ensure_ascii=False) for r in rows
    ]


def test_half_a_masked_value_at_the_end_of_a_cut_message_is_taken_away(store):
    run = info(masks=[Mask("email", "redact")])
    said = shortened("x" * (64 * 1024 - 256 - 6) + "ada@example.com" + "y" * 100_000)
    _, found = written(store, run, batch([row(1, "ada@example.com")], [Answer("reject", said)]))
    message = found[0]["status_message"]
    assert ("ada@" in said, "ada@" in message) == (True, False)
    assert message.endswith("… (cut: 165,289 bytes in all)")


def test_masked_values_are_in_no_cell(store):
    run = info(masks=[Mask("id", "hash"), Mask("email", "redact")])
    rows = [
        row(4711, "old@example.com", "update_preimage"),
        row(4711, "ada@example.com", "update_postimage"),
        row(4712, "bob@example.com"),
    ]
    answers = [
        Answer(),
        Answer("reject", "4711: bob@example.com and ada@example.com are one"),
        Answer("reject", "old%40example.com?"),
    ]
    files, found = written(store, run, batch(rows, answers, [False, True, True]))
    text = str(found) + str(files)
    assert [
        v
        for v in ("4711", "4712", "ada@", "bob@", "old@", "old%40")
        if v in text.replace("row_id': 4711", "").replace("row_id': 4712", "")
    ] == []
    assert found[0]["identifier"] == run.masks.value("id", "4711") == json.loads(found[0]["record_payload"])["id"]


# twice, and after a crash


def test_the_same_content_is_accepted_and_other_content_takes_the_next_number(store):
    made = batch([row(1, "a@x")])
    first = tracking.write(store, info(), made, counter())
    again = tracking.write(store, info(), made, counter())
    other = tracking.write(store, info(), batch([row(2, "b@x")], digest="d2"), counter())
    assert (again, [f.number for f in other]) == (first, [1])
    assert [p.rsplit("/", 1)[1] for p in store.list("")] == [
        "metadata.json",
        "records_updated.0.parquet",
        "records_updated.1.parquet",
    ]


@pytest.mark.parametrize(
    "texts", [["a", "b"], ["a\0b", "a\0c"], ["x" * 1_000_000, "x" * 1_000_001], ["", "\0"], ["é" * 300]]
)
def test_the_bounds_of_a_file_are_short_have_no_nul_and_hold_its_identifiers(texts):
    low, high = tracking._bounds(min(texts), max(texts))
    assert all(low <= text <= high for text in texts) and max(len(low), len(high)) <= 201 and "\0" not in low + high
    assert tracking._bounds("a", "\U0010ffff" * 300) == (None, None)
    for text in texts:
        assert all(low[:n] <= text[:n] <= high[:n] for n in (1, 2, 150, 250) if text[:n])


def test_a_foreign_file_is_left_alone(store):
    store.put_new("sync_tracking_datasets/1/2/3/records_updated.0.parquet", b"PAR1 not really")
    files = tracking.write(store, info(), batch([row(1, "a@x")]), counter())
    assert ([f.number for f in files], store.get("sync_tracking_datasets/1/2/3/records_updated.0.parquet")) == (
        [1],
        b"PAR1 not really",
    )


def test_metadata_is_written_before_the_first_row_file_and_once(store):
    seen = []
    plain = store.put_new
    store.put_new = lambda path, data: (seen.append(path.rsplit("/", 1)[1]), plain(path, data))[1]
    tracking.write(store, info(), batch([row(1, "a@x")]), counter())
    assert seen == ["metadata.json", "records_updated.0.parquet"]
    assert json.loads(store.get("sync_tracking_datasets/1/2/3/metadata.json")) == {
        "organization_id": 1,
        "workspace_id": 7,
        "sync_configuration_id": 2,
        "sync_run_id": 3,
        "sync_name": "sync.contacts",
        "kind": "merge",
        "source_type": "DeltaLake",
        "source_id": 7,
        "source_object_id": 2,
        "destination_type": "HubSpot",
        "destination_id": 8,
        "destination_object_id": 9,
        "operation": "upsert",
        "started_at": "2026-01-15T08:09:10Z",
        "record_payload_schema": {"id": "number", "email": "string"},
    }


@pytest.mark.parametrize(
    ("duckdb_type", "expected"),
    [
        ("HUGEINT", "number"),
        ("DECIMAL(38,10)", "number"),
        ("DOUBLE", "number"),
        ("BOOLEAN", "boolean"),
        ("DATE", "string"),
        ("UUID", "string"),
        ("BLOB", "string"),
        ("JSON", "string"),
        ("INTEGER[]", "array"),
        ("INTEGER[3]", "array"),
        ("STRUCT(a INTEGER)", "object"),
        ("MAP(VARCHAR, INTEGER)", "object"),
        ("STRUCT(a INTEGER)[]", "array"),
        ("TIMESTAMP WITH TIME ZONE", "string"),
    ],
)
def test_the_payload_schema_names_json_types(duckdb_type, expected):
    assert json_type(duckdb_type) == expected


# invalid, planned, calls, facts


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


def call(number, body, url="https://x/push", rows=None, response="fine"):
    return ApiCall(number, 1, "POST", url, {"x-app": "ada@example.com"}, body, 200, {}, response, START, END, rows)


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
