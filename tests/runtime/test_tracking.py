"""Record files: their rows, names, metadata, and what a second writer finds."""

from __future__ import annotations

import json

import pyarrow.parquet as pq
import pytest
from tracked import END, START, Answer, batch, counter, info, row, told, written

from runtime.model import Mask
from runtime.push.statuses import shortened
from runtime.tracking import files as tracking
from runtime.tracking.metadata import json_type
from runtime.tracking.schema import SCHEMA


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
