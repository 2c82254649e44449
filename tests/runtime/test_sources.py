"""Files as DataFrames: DuckDB's columns, values and errors; fingerprints."""

from __future__ import annotations

import datetime as dt
import os
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from runtime.errors import BuildError
from runtime.sources import files
from runtime.sql import FileRead, SqlProblems, translate


def read_of(sql: str, project: Path) -> FileRead:
    (read,) = translate(sql, dialect="duckdb", tables={}, project_dir=project).files
    return read


def settled(path: Path) -> None:
    """Makes a file old enough to have a fingerprint."""
    os.utime(path, (1_700_000_000, 1_700_000_000))


def test_a_fingerprint_names_files_sizes_and_times(tmp_path: Path) -> None:
    for name in ("a_1.csv", "a_2.csv"):
        (tmp_path / name).write_text("id\n1\n")
        settled(tmp_path / name)
    read = read_of("FROM 'a_*.csv'", tmp_path)
    assert (
        files.fingerprint(read)
        == f'[["{tmp_path}/a_1.csv",5,1700000000000000000],["{tmp_path}/a_2.csv",5,1700000000000000000]]'
    )


def test_a_file_that_was_just_written_has_no_fingerprint(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("id\n1\n")
    assert files.fingerprint(read_of("FROM 'a.csv'", tmp_path)) is None


def test_a_file_that_is_gone_has_no_fingerprint(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("id\n1\n")
    read = read_of("FROM 'a.csv'", tmp_path)
    (tmp_path / "a.csv").unlink()
    assert files.fingerprint(read) is None


CASES = {
    "csv": "FROM 'in/people.csv'",
    "semicolons": "FROM read_csv('in/semi.csv', delim = ';', nullstr = 'NA', columns = {'id': 'INTEGER', 'at': "
    "'TIMESTAMP', 'big': 'HUGEINT'})",
    "all text": "FROM read_csv('in/people.csv', all_varchar = true)",
    "dates": "FROM read_csv('in/dates.csv', dateformat = '%d.%m.%Y', types = {'day': 'DATE'})",
    "globs by name": "FROM read_csv('in/part_*.csv', union_by_name = true, filename = true)",
    "hive": "FROM read_parquet('in/hive/*/*.parquet', hive_partitioning = true)",
    "plain parquet": "FROM 'in/plain.parquet'",
    "parquet of DuckDB's own types": "FROM read_parquet('in/odd.parquet')",
    "lines of json": "FROM read_json('in/events.jsonl')",
    "an array of json": "FROM 'in/array.json'",
}


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("project")
    folder = root / "in"
    folder.mkdir()
    (folder / "people.csv").write_text(
        'id,name,born,note\n1,"Ada, ""A""",1815-12-10,"two\nlines"\n2,,,""\n3,Zoë,1990-01-01,x\n'
    )
    (folder / "semi.csv").write_text(
        "id;at;big\n1;2024-01-02 03:04:05.6;170141183460469231731687303715884105727\nNA;NA;1\n".replace(
            "170141183460469231731687303715884105727", "12345678901234567890123"
        )
    )
    (folder / "dates.csv").write_text("day,n\n31.12.2023,1\n")
    (folder / "part_1.csv").write_text("a,b\n1,x\n")
    (folder / "part_2.csv").write_text("b,c\ny,2.5\n")
    (folder / "events.jsonl").write_text(
        '{"id": 1, "tags": ["a", "b"], "user": {"n": "Ada", "x": 1.5}}\n{"id": 2, "tags": null, "user": null}\n'
    )
    (folder / "array.json").write_text('[{"z": 1, "a": "2024-01-01"}, {"z": null, "a": "2024-01-02"}]')
    con = duckdb.connect()
    con.execute(
        f"COPY (SELECT 1 AS id, 2023 AS year UNION ALL SELECT 2, 2024) TO '{folder}/hive' (FORMAT parquet, "
        f"PARTITION_BY (year))"
    )
    con.execute(
        f"COPY (SELECT 1::BIGINT AS id, 'x' AS t, DATE '2024-01-01' AS d, 1.5::DECIMAL(10,2) AS p) TO "
        f"'{folder}/plain.parquet' (FORMAT parquet)"
    )
    con.execute(
        f"COPY (SELECT 300::USMALLINT AS u, 18446744073709551615::UBIGINT AS b, uuid() AS g, TIME '10:20:30.5' AS t, "
        f"'{{}}'::JSON AS j, [1,2]::UINTEGER[] AS l) "
        f"TO '{folder}/odd.parquet' (FORMAT parquet)"
    )
    return root


@pytest.fixture(scope="module")
def spark() -> Any:
    from runtime.lake.spark import session

    return session()


@pytest.mark.slow
@pytest.mark.parametrize("name", CASES)
def test_spark_gets_the_rows_that_duckdb_reads(
    spark: Any, project: Path, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(project)
    read = read_of(CASES[name], project)
    frame = files.open_file(spark, read)
    absolute = CASES[name].replace("'in/", f"'{project}/in/")
    expected = duckdb.connect().execute(absolute).fetchall()
    assert [f.name for f in frame.schema.fields] == [c.name for c in read.columns]
    assert sorted(map(_plain, frame.collect())) == sorted(map(_plain, expected))


def _plain(row: Any) -> str:
    def one(value: Any) -> Any:
        if isinstance(value, dict):
            return [one(v) for v in value.values()]
        if isinstance(value, list | tuple):
            return [one(v) for v in value]
        return (
            str(value) if isinstance(value, dt.date | dt.time) or type(value).__name__ in ("UUID", "Decimal") else value
        )

    return repr([str(one(v)) for v in row])


@pytest.mark.slow
def test_a_ragged_row_stops_the_run_with_the_files_name_and_line(spark: Any, tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("id,n\n" + "".join(f"{i},x\n" for i in range(30_000)) + "7,8,9,10\n")
    read = read_of("FROM read_csv('a.csv', header = true)", tmp_path)
    with pytest.raises(BuildError, match=r"read_csv\('a.csv'\).*30002"):
        files.open_file(spark, read)


LATE = "".join(f"{i},n\n" for i in range(30_000))


@pytest.mark.parametrize(
    "name, text, words",
    [
        (
            "a.csv",
            "id,name\n1,Ada\n2,Bob,x\n3,C\n",
            ["a.csv, line 3, has 3, the first line 2", "null_padding = true", "ignore_errors = true"],
        ),
        (
            "a.csv",
            "id;name\n1;Ada\n2\n3;C\n",
            ["would be one value, 'id;name'", "a.csv, line 3, has 1, the first line 2"],
        ),
        ("a.csv", "id,name\n1,Zo\xeb\n".encode("latin-1"), ["a.csv, line 2: Invalid unicode", "encoding = 'latin-1'"]),
        ("a.csv", "id,name\n1,Zo\xeb\n".encode("utf-16"), ["a.csv, line 1: Invalid unicode", "encoding = 'utf-16'"]),
        ("a.csv", bytes(range(256)) * 20, ["sniffing", "Name its delim, quote"]),
        ("a.csv", "", ["a.csv is empty", "write a header"]),
        ("a.csv", b"id,name\n1," + b"x" * 2_500_000, ["a.csv, line 2: Maximum line size", "max_line_size=2500"]),
        ("a.json", "[]", ["a.json has no object", "name them with columns = {'id': 'BIGINT'}"]),
        ("a.json", '[{"id":', ['"a.json", at byte']),
        ("a.parquet", "PAR1", ["File 'a.parquet' too small"]),
    ],
)
def test_a_file_that_cannot_be_read_is_told_at_check_time_in_one_line(
    tmp_path: Path, name: str, text: str | bytes, words: list[str]
) -> None:
    (tmp_path / name).write_bytes(text if isinstance(text, bytes) else text.encode())
    with pytest.raises(SqlProblems) as caught:
        read_of(f"SELECT *\nFROM '*.{name.split('.')[1]}'", tmp_path)
    ((line, message),) = caught.value.problems
    assert (
        line == 2
        and [w for w in words if w not in message] == []
        and "\n" not in message
        and str(tmp_path) not in message
        and len(message) < 600
    )


@pytest.mark.parametrize(
    "text, words",
    [
        (
            f"id,name\n{LATE}x1,secret\n",
            ["a.csv, line 30002:", 'column "id". Could not convert string "x1"', "types={'id': 'VARCHAR'}"],
        ),
        (
            f"id,name\n{LATE}5,secret,z\n",
            ["a.csv, line 30002: Expected Number of Columns: 2 Found: 3", "null_padding=true"],
        ),
        (
            f"id,name\n{LATE}5,secret\xff\n".encode("latin-1"),
            ["a.csv, line 30002: Invalid unicode", "encoding = 'latin-1'"],
        ),
    ],
)
def test_a_line_far_down_that_does_not_fit_is_named_without_its_other_values(
    tmp_path: Path, text: str | bytes, words: list[str]
) -> None:
    (tmp_path / "a.csv").write_bytes(text if isinstance(text, bytes) else text.encode())
    with pytest.raises(BuildError) as caught:
        files.staged(read_of("FROM 'a.csv'", tmp_path))
    message = str(caught.value)
    assert (
        [w for w in words if w not in message] == []
        and "\n" not in message
        and "secret" not in message
        and str(tmp_path) not in message
    )


@pytest.mark.parametrize(
    "text, options, rows",
    [
        ("name\nAda\nBob\n", "", [("Ada",), ("Bob",)]),
        ('name\n"Ada, B"\n"Bob; C"\n', "", [("Ada, B",), ("Bob; C",)]),
        ("id,name\n1,Ada\n2\n", ", null_padding = true", [(1, "Ada"), (2, None)]),
        ("id,name\n1,Ada\n2,B,x\n", ", ignore_errors = true", [(1, "Ada")]),
        ("", ", columns = {'id': 'BIGINT'}", []),
        (b"\xef\xbb\xbfid\n1\n", "", [(1,)]),
        ("id,name\n1,Zo\xeb\n".encode("utf-16"), ", encoding = 'utf-16'", [(1, "Zo\xeb")]),
    ],
)
def test_files_with_one_column_or_told_how_to_be_read_are_read(
    tmp_path: Path, text: str | bytes, options: str, rows: list[Any]
) -> None:
    (tmp_path / "a.csv").write_bytes(text if isinstance(text, bytes) else text.encode())
    folder = files.staged(read_of(f"FROM read_csv('a.csv'{options})", tmp_path))
    assert duckdb.sql(f"FROM '{folder}/*.parquet'").fetchall() == rows if rows else True


@pytest.mark.slow
@pytest.mark.parametrize("old", [False, True], ids=["micros", "int96"])
def test_days_before_1582_are_read_as_they_stand(spark: Any, tmp_path: Path, old: bool) -> None:
    days = [dt.date(1582, 10, 10), dt.date(1582, 10, 4), dt.date(1, 1, 1), dt.date(9999, 12, 31)]
    moments = [dt.datetime(d.year, d.month, d.day, 1, 2, 3, 456789) for d in days]
    table = pa.table({"d": pa.array(days, pa.date32()), "t": pa.array(moments, pa.timestamp("us"))})
    pq.write_table(table, tmp_path / "a.parquet", use_deprecated_int96_timestamps=old)
    frame = files.open_file(spark, read_of("FROM 'a.parquet'", tmp_path))
    found = [tuple(r) for r in frame.selectExpr("CAST(d AS STRING)", "CAST(t AS STRING)").collect()]
    assert found == [(str(d), str(t)) for d, t in zip(days, moments, strict=True)]
