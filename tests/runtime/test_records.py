"""Questions about record files: what is found, in which order, and without opening what cannot matter."""

from __future__ import annotations

import csv
import io
import itertools
import json
from datetime import UTC, datetime, timedelta

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from runtime.errors import ConfigError, StoreError
from runtime.records import exports, query
from runtime.records.filter import FileRef, Filter
from runtime.store.folder import FolderStore
from runtime.tracking import files as tracking
from runtime.tracking.schema import SCHEMA

START = datetime(2026, 1, 15, 8, 9, 10, tzinfo=UTC)


def record(i, status="succeeded", message=None, operation="upsert", change="insert", identifier=..., run=3):
    return {
        "identifier": f"id_{i:04}" if identifier is ... else identifier,
        "record_payload": json.dumps({"id": i}),
        "operation": operation,
        "status": status,
        "status_message": message,
        "batch_started_at": START,
        "batch_ended_at": START + timedelta(microseconds=i),
        "sync_configuration_id": "2",
        "sync_run_id": str(run),
        "row_id": i,
        "change_type": change,
        "outcome": "ok",
        "attempt": 1,
        "batch_number": 1,
        "previous_payload": None,
    }


def put(store, rows, number, *, run=3, batch_type="records_updated", names=SCHEMA.names, counted=True, **changed):
    table = pa.Table.from_pylist(rows, SCHEMA).select(names)
    path = f"sync_tracking_datasets/1/2/{run}/{batch_type}.{number}.parquet"
    for name, column in changed.items():
        table = (
            table.set_column(table.column_names.index(name), name, column)
            if name in table.column_names
            else table.append_column(name, column)
        )
    store.put_new(path, tracking.to_parquet(table))
    told = tracking._described(pa.Table.from_pylist(rows, SCHEMA), batch_type, number, "", 0, None)
    return FileRef(
        store,
        path,
        len(rows),
        *((told.counts, told.operations, told.min_identifier, told.max_identifier) if counted else ()),
        run_id=run,
    )


@pytest.fixture
def store(tmp_path):
    return FolderStore(tmp_path / "a=b 'quoted'")


@pytest.fixture
def files(store):
    """30 records in three files: every third rejected, the last file of deletes."""
    rows = [record(i, *(("rejected", f"bad 'value {i}' 100%_sure") if i % 3 == 0 else ())) for i in range(20)]
    gone = [record(i, operation="delete", change="delete") for i in range(20, 30)]
    return [put(store, rows[:10], 0), put(store, rows[10:], 1), put(store, gone, 0, batch_type="records_deleted")]


def ids(page):
    return [r["row_id"] for r in page.rows]


def test_pages_follow_one_another_without_gap_or_repeat(files):
    seen, after = [], None
    for _ in range(20):
        page = query.page(files, after=after, limit=7)
        seen += ids(page)
        after = page.next
        if after is None:
            break
    assert seen == list(range(30))


def test_a_page_by_number_is_the_page_by_address(files):
    first = query.page(files, Filter(status="rejected"), limit=3)
    by_number = query.page(files, Filter(status="rejected"), offset=3, limit=3)
    by_address = query.page(files, Filter(status="rejected"), after=first.next, limit=3)
    assert ids(by_number) == ids(by_address) == [9, 12, 15]


@pytest.mark.parametrize(
    ("chosen", "expected"),
    [
        (Filter(), range(30)),
        (Filter(status="success"), [i for i in range(30) if i >= 20 or i % 3]),
        (Filter(status="Rejected"), range(0, 20, 3)),
        (Filter(status="invalid"), []),
        (Filter(operation="delete"), range(20, 30)),
        (Filter(change_type="delete", status="succeeded"), range(20, 30)),
        (Filter(identifier="id_0007"), [7]),
        (Filter(identifier="id_"), []),
        (Filter(prefix="id_001"), range(10, 20)),
        (Filter(prefix="id%"), []),
        (Filter(identifiers=("id_0001", "id_0025", "x")), [1, 25]),
        (Filter(message="VALUE 1"), [12, 15, 18]),
        (Filter(message="100%_sure"), range(0, 20, 3)),
        (Filter(message="bad%5"), [15]),
        (Filter(message="' OR 1=1 --"), []),
        (Filter(pattern="bad ‹text› ‹n›_sure"), range(0, 20, 3)),
        (Filter(message="value", status="succeeded"), []),
    ],
)
@pytest.mark.parametrize("counted", [True, False])
def test_a_filter_selects_counts_and_explains_the_same_rows(files, chosen, expected, counted):
    known = files if counted else [FileRef(f.store, f.path, f.rows) for f in files]
    assert ids(query.page(known, chosen)) == list(expected)
    assert query.count(known, chosen) == len(expected)
    assert sorted(r[9] for r in duckdb.execute(query.duckdb_query(known, chosen)).fetchall()) == list(expected)


def test_an_offset_beyond_what_no_count_tells_is_exact(files):
    assert [ids(query.page(files, Filter(message="value"), offset=n, limit=2)) for n in (0, 3, 6, 7, 50)] == [
        [0, 3],
        [9, 12],
        [18],
        [],
        [],
    ]


def test_files_that_the_counts_exclude_are_not_opened(files):
    for f in files[:2]:
        f.store.delete(f.path)
    assert query.count(files) == 30
    assert ids(query.page(files, Filter(operation="delete"), limit=2)) == [20, 21]
    assert ids(query.page(files, offset=20, limit=2)) == [20, 21]
    assert query.tally(files) == {
        ("succeeded", "upsert", "insert"): 13,
        ("rejected", "upsert", "insert"): 7,
        ("succeeded", "delete", "delete"): 10,
    }


def test_a_wrong_status_or_address_is_an_error_that_says_what_there_is(files):
    with pytest.raises(ConfigError, match="no status 'nope'; there are: success"):
        query.page(files, Filter(status="nope"))
    with pytest.raises(ConfigError, match="begin at the first page"):
        query.page(files, after="other.0:3")


def test_a_record_is_found_again_by_its_address(files):
    page = query.page(files, limit=12)
    assert query.record(files, page.places[11]) == page.rows[11]
    assert (query.record(files, "records_updated.0:999"), query.record(files, "x.0:1")) == (None, None)


@pytest.mark.parametrize("width", [7, 8, 9])
def test_files_with_fewer_columns_are_read_with_the_rest_empty(store, width):
    names = SCHEMA.names
    files = [put(store, [record(1)], 0, names=names[:width]), put(store, [record(2)], 1)]
    old, new = query.page(files).rows
    assert old == {
        **dict.fromkeys(names),
        **{n: record(1)[n] for n in names[:width]},
        "sync_configuration_id": "2",
        "sync_run_id": "3",
    }
    assert new == record(2)
    out = io.BytesIO()
    assert exports.export(files, None, "parquet", out) == 2 and pq.read_table(out).column_names == names


def test_more_columns_and_other_types_do_not_disturb(store):
    file = put(
        store,
        [record(1)],
        0,
        identifier=pa.array([17]),
        later=pa.array([1.5]),
        row_id=pa.array([1], pa.int32()),
        counted=False,
    )
    (row,) = query.page([file]).rows
    assert (row["identifier"], row["row_id"], list(row)) == ("17", 1, SCHEMA.names)


def test_a_truncated_missing_or_foreign_file_is_reported_and_the_rest_shown(store):
    good = put(store, [record(1)], 0)
    cut = put(store, [record(2)], 1)
    data = store.get(cut.path)
    store.replace(cut.path, data[: len(data) // 2])
    store.put_new(
        "sync_tracking_datasets/1/2/3/other.0.parquet",
        tracking.to_parquet(pa.table({"identifier": ["x"]})).replace(b"identifier", b"identifieR"),
    )
    foreign = FileRef(store, "sync_tracking_datasets/1/2/3/other.0.parquet", 1)
    gone = FileRef(store, "sync_tracking_datasets/1/2/3/gone.0.parquet", 1)
    page = query.page([good, cut, foreign, gone])
    assert (ids(page), len(page.problems)) == ([1], 3)
    assert (
        "records_updated.1.parquet is no whole parquet file" in page.problems[0]
        and "gone.0.parquet is not there" in page.problems[2]
    )


NASTY = [
    "it's",
    'say "hi"',
    "a\nb\r\nc",
    "😀",
    "<script>alert(1)</script>",
    "'; DROP TABLE x; --",
    "=1+1",
    "NULL",
    "",
    "100%_\\",
    "x" * 1_000_000,
]


@pytest.mark.parametrize("text", NASTY, ids=range(len(NASTY)))
def test_any_text_is_found_and_exported_as_it_is(store, text):
    files = [put(store, [record(1, "rejected", text, identifier=text), record(2)], 0)]
    assert ids(query.page(files, Filter(identifier=text))) == [1]
    if text:
        assert ids(query.page(files, Filter(message=text[:1000]))) == [1]
        assert ids(query.page(files, Filter(prefix=text[:3]))) == [1]
    out = io.BytesIO()
    exports.export(files, Filter(identifier=text), "json", out)
    assert [(r["identifier"], r["status_message"]) for r in json.loads(out.getvalue())] == [(text, text)]


# one record


def test_the_difference_names_changed_new_and_vanished_fields():
    found = {"previous_payload": '{"a":1,"b":2,"c":3}', "record_payload": '{"a":1,"b":9,"d":null,"e":[1]}'}
    assert query.difference(found) == [("b", 2, 9), ("e", None, [1]), ("c", 3, None)]
    assert query.difference({"previous_payload": None, "record_payload": "{}"}) == []


# exports


def exported(files, format, chosen=None, **options):
    out = io.BytesIO()
    n = exports.export(files, chosen, format, out, **options)
    return n, out.getvalue()


def test_csv_has_the_columns_in_order_and_quotes_what_needs_it(store):
    files = [put(store, [record(1, "NULL", 'say "hi",\r\nbye', identifier=None)], 0)]
    n, data = exported(files, "csv")
    assert (n, data[:3]) == (1, b"\xef\xbb\xbf")
    (row,) = csv.DictReader(io.StringIO(data.decode("utf-8-sig"), newline=""))
    assert row == {
        "identifier": "",
        "record_payload": '{"id": 1}',
        "operation": "upsert",
        "status": "NULL",
        "status_message": 'say "hi",\r\nbye',
        "batch_started_at": "2026-01-15T08:09:10.000000Z",
        "batch_ended_at": "2026-01-15T08:09:10.000001Z",
        "sync_configuration_id": "2",
        "sync_run_id": "3",
        "row_id": "1",
        "change_type": "insert",
        "outcome": "ok",
        "attempt": "1",
        "batch_number": "1",
        "previous_payload": "",
    }


@pytest.mark.parametrize(
    ("text", "cell"),
    [
        ("=1+1", "'=1+1"),
        ("+46 70", "'+46 70"),
        ("-x", "'-x"),
        ("@a", "'@a"),
        ("\tx", "'\tx"),
        ("\rx", "'\rx"),
        ("-1", "-1"),
        ("+1.5e3", "+1.5e3"),
        ("-", "'-"),
        ("a=b", "a=b"),
        ("-1\n=2", "'-1\n=2"),
        ("=", "'="),
    ],
)
def test_a_csv_cell_is_no_formula(store, text, cell):
    _, data = exported([put(store, [record(1, identifier=text)], 0)], "csv", bom=False)
    (row,) = csv.DictReader(io.StringIO(data.decode(), newline=""))
    assert row["identifier"] == cell


def test_each_format_holds_the_filtered_rows(files):
    chosen = Filter(status="rejected")
    expected = [f"id_{i:04}" for i in range(0, 20, 3)]
    said = {f: exported(files, f, chosen)[1] for f in exports.FORMATS}
    assert [r["identifier"] for r in json.loads(said["json"])] == expected
    assert [json.loads(line)["identifier"] for line in said["jsonl"].splitlines()] == expected
    assert [r["identifier"] for r in csv.DictReader(io.StringIO(said["csv"].decode("utf-8-sig")))] == expected
    assert pq.read_table(io.BytesIO(said["parquet"])).to_pylist() == query.page(files, chosen).rows


def test_nothing_found_is_an_empty_file_of_its_format(files):
    none = Filter(identifier="none")
    assert json.loads(exported(files, "json", none)[1]) == []
    assert exported(files, "csv", none, bom=False)[1].decode() == ",".join(SCHEMA.names) + "\r\n"
    assert pq.read_table(io.BytesIO(exported(files, "parquet", none)[1])).schema.remove_metadata() == SCHEMA


def test_a_sample_ends_where_it_should_and_progress_is_told(files):
    told = []
    n, data = exported(files, "jsonl", most=12, progress=told.append)
    assert (n, len(data.splitlines()), told) == (12, 12, [10, 12])


def test_an_export_says_at_its_end_what_could_not_be_read(store):
    good, cut = put(store, [record(1)], 0), put(store, [record(2)], 1)
    store.replace(cut.path, b"PAR1")
    out = io.BytesIO()
    with pytest.raises(StoreError, match="everything else was exported"):
        exports.export([cut, good], None, "jsonl", out)
    assert len(out.getvalue().splitlines()) == 1


def test_questions_cannot_read_outside_of_the_organization(store, files, tmp_path):
    from runtime.records import duck
    from runtime.records.opened import roots

    (tmp_path / "secret.txt").write_text("x")
    with duck.cursor(roots(files)) as one:
        for sql in (
            f"SELECT * FROM read_text('{tmp_path}/secret.txt')",
            f"COPY (SELECT 1) TO '{tmp_path}/out.csv'",
            "SET enable_external_access = true",
            "ATTACH 'x.db'",
        ):
            with pytest.raises((duckdb.Error, StoreError)):
                one.execute(sql)


def test_names_of_files_in_many_groups_keep_their_order(store):
    files = [put(store, [record(i)], i, names=SCHEMA.names[:7] if i % 2 else SCHEMA.names) for i in range(40)]
    assert [r["identifier"] for r in query.page(files, Filter(message=None)).rows] == [f"id_{i:04}" for i in range(40)]
    assert list(itertools.chain.from_iterable(ids(query.page(files, offset=n, limit=1)) for n in (0, 38))) == [0, 38]
