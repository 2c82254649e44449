"""docs/sync-tracking-files.md says what the code does: its tables are the schemas, its queries run."""

from __future__ import annotations

import re
from pathlib import Path

import duckdb
import pytest
from tracked import Answer, batch, call, counter, info, row

from runtime.store.folder import FolderStore
from runtime.tracking import facts, files, requests
from runtime.tracking.metadata import metadata
from runtime.tracking.schema import OPERATIONS, SCHEMA, STATUSES

DOCS = (Path(__file__).parents[2] / "docs" / "sync-tracking-files.md").read_text(encoding="utf-8")


def section(title):
    return re.split(r"^## ", DOCS.split(f"## {title}\n")[1], flags=re.M)[0]


def cells(title):
    """The rows of a section's table, without head and line."""
    return [
        [c.strip() for c in line.strip("|").split("|")] for line in section(title).splitlines() if line.startswith("|")
    ][2:]


@pytest.mark.parametrize(("title", "schema"), [("Record files", SCHEMA), ("Requests and answers", requests.SCHEMA)])
def test_each_column_is_documented_in_order_with_its_type(title, schema):
    assert [(name, kind) for name, kind, _ in cells(title)] == [(f.name, str(f.type)) for f in schema]


def test_each_field_of_the_metadata_is_documented_in_order():
    assert [name for name, _ in cells("metadata.json")] == list(metadata(info()))


def test_each_fact_table_is_documented_with_its_columns():
    assert {name: columns.split(", ") for name, columns in cells("Fact tables")} == {
        "source_objects": facts.SOURCE_OBJECTS.names,
        "destinations": facts.DESTINATIONS.names,
        "destination_objects": facts.DESTINATION_OBJECTS.names,
    }


def test_the_words_of_status_operation_and_outcome_are_documented():
    said = {name: text for name, _, text in cells("Record files")}
    words = {
        "status": {*STATUSES.values(), "NULL", "DUPLICATE"},
        "operation": {*OPERATIONS.values(), "delete", "update"},
        "outcome": {*STATUSES, "invalid"},
    }
    assert {name: set(re.findall(r"`(\w+)`", said[name])) for name in words} == {**words, "status": words["status"]}


QUERIES = re.findall(r"```sql\n(.*?)```", DOCS, re.S)


@pytest.fixture
def filled(tmp_path):
    store = FolderStore(tmp_path / "store")
    files.write(
        store, info(), batch([row(17, "a@x"), row(18, "b@x", "delete")], [Answer(), Answer("reject", "no")]), counter()
    )
    requests.put(store, info(), 11, requests.to_parquet([call(1, "x")]))
    facts.write(
        store,
        1,
        [facts.SourceObject(2, "sync.contacts")],
        [facts.Destination(8, "HubSpot::Connection", "HubSpot")],
        [facts.DestinationObject(9, "HubSpot::ObjectTypes::Contact", "Contact")],
    )
    return tmp_path


@pytest.mark.parametrize(
    ("query", "expected"),
    zip(
        QUERIES,
        [
            [("no", ["18"])],
            [("3", "upsert", "succeeded", None)],
            [
                ("HubSpot::ObjectTypes::Contact", "Contact", "rejected", 1),
                ("HubSpot::ObjectTypes::Contact", "Contact", "succeeded", 1),
            ],
        ],
        strict=True,
    ),
)
def test_each_query_runs_as_written(filled, monkeypatch, query, expected):
    monkeypatch.chdir(filled)
    assert [r[:4] for r in duckdb.execute(query).fetchall()] == expected
