"""Sections 2.2 and 2.3: columns with odd names, and days that other calendars and Python's datetime do not know."""
import csv
import io
import json

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

ODD = ['q"q', "a.b", "1st", "select", "ü 😀", "a'b,;{}()=", "tab\tnew\nline", " blank ", "__key", "__do", "t", "filename", "100%", "$x"]


def odd_source(case, values):
    """Two rows; of columns that differ in case alone DuckDB calls the second one name_1."""
    columns = {"the id": [1, 2], **{name: [value, "same"] for name, value in zip(ODD, values)}, "name": ["a", "b"]}
    table = pa.table({**columns, "the Name": ["A", "B"]}).rename_columns([*columns, "Name"])
    path = case.project / "in/odd.parquet"
    path.parent.mkdir(exist_ok=True)
    pq.write_table(table, path)


@pytest.mark.slow
def test_columns_keep_their_names_whatever_these_are(case):
    odd_source(case, ODD)
    case.echo()
    case.model("mart/odd", "SELECT * FROM read_parquet('in/odd.parquet')")
    sync = '-- @kind: merge\n-- @unique_key: "the id"\n-- @mask: "a\'b,;{}()="\n-- @sink: echo\nSELECT COLUMNS FROM mart.odd'
    case.model("sync/out", sync.replace("COLUMNS", "*"))
    first = {"the id": 1, **{name: name for name in ODD}, "name": "a", "Name_1": "A"}
    second = {"the id": 2, **dict.fromkeys(ODD, "same"), "name": "b", "Name_1": "B"}

    assert case.run().exit == 0
    assert [_own(row) for row in case.sent()] == [first, second]
    masked = {name: "***" if name == "a'b,;{}()=" else value for name, value in first.items()}
    assert [json.loads(r["record_payload"]) for r in case.records("sync.out")][0] == masked

    odd_source(case, ["new", *ODD[1:]])
    assert case.run().counts("sync.out")["changed"] == 1
    assert [_own(row) for row in case.sent()] == [first, {**first, 'q"q': "new"}]

    case.model("sync/out", sync.replace("COLUMNS", '"the id" AS "The ID", name AS Name, "a\'b,;{}()="'))
    assert case.run().counts("sync.out")["changed"] == 2
    assert case.changes("The ID", "Name") == [
        ("update_preimage", 1, None), ("update_postimage", 1, "a"), ("update_preimage", 2, None), ("update_postimage", 2, "b")
    ]  # fmt: skip


#: Days since 1970, and what they are: the last ones before Python's datetime, before 1582, in its gap, and after 9999.
DAYS = {-719529: "-0001-12-31", -719162: "0001-01-01", -141438: "1582-10-04", -141432: "1582-10-10", 2932897: "10000-01-01"}


@pytest.mark.slow
def test_days_of_all_years_arrive_as_they_stand(case):
    days = pa.array(list(DAYS), pa.int32()).cast(pa.date32())
    moments = pa.array([day * 86_400_000_000 + 3_723_000_004 for day in DAYS], pa.int64()).cast(pa.timestamp("us"))
    zoned, lists = moments.cast(pa.timestamp("us", "UTC")), pa.array([[d] for d in days], pa.list_(pa.date32()))
    table = pa.table({"d": days, "t": moments, "z": zoned, "l": lists})
    (case.project / "in").mkdir()
    pq.write_table(table, case.project / "in/micros.parquet")
    pq.write_table(table, case.project / "in/int96.parquet", use_deprecated_int96_timestamps=True)
    pq.write_table(table.select(["d", "t", "z"]), case.project / "in/plain.parquet")  # which Spark reads itself
    case.echo()
    case.model("mart/days", "\nUNION ALL\n".join([
        "SELECT 'micros' AS file, d, t, z, l FROM 'in/micros.parquet'",
        "SELECT 'int96', d, t, z AT TIME ZONE 'UTC', l FROM 'in/int96.parquet'",
        "SELECT 'plain', d, t, z, [d] FROM 'in/plain.parquet'",
    ]))  # fmt: skip
    case.model("sync/out", "-- @kind: merge\n-- @unique_key: d, file\n-- @sink: echo\nSELECT * FROM mart.days")

    result = case.run()
    assert result.exit == 0
    told = [
        {"file": f, "d": d, "t": f"{d}T01:02:03.000004", "z": f"{d}T01:02:03.000004Z", "l": [d]}
        for f in ("int96", "micros", "plain") for d in DAYS.values()
    ]  # fmt: skip
    sent = sorted(map(_own, case.sent()), key=lambda row: (row["file"], list(DAYS.values()).index(row["d"])))
    assert sent == told
    records = case.command("records", str(result.sync("sync.out")["run_id"]), "--format", "csv")
    rows = list(csv.DictReader(io.StringIO(records.stdout)))
    assert sorted(row["record_payload"] for row in rows) == sorted(json.dumps(row, separators=(",", ":")) for row in told)
    assert {json.dumps([row["d"], row["file"]], separators=(",", ":")) for row in told} == {row["identifier"].lstrip("'") for row in rows}


def _own(row):
    return {name: value for name, value in row.items() if not name.startswith("__ondatra_")}
