"""A read of many files gives the same whether Spark's tasks share the files out or this process reads them all."""

from __future__ import annotations

import gzip
import os
import shutil
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import duckdb
import pytest

from runtime.errors import BuildError
from runtime.sources import files, read_task, spread
from runtime.sql import FileRead, translate

#: DuckDB looks into ten files for the columns: those behind them meet a schema that is fixed.
MANY = 14


def csv(*lines: str, files: int = MANY, **other: str | bytes) -> dict[str, str | bytes]:
    """Files a00.csv and so on, in which {n} is their number, and others."""
    made = {f"a{n:02}.csv": "".join(line.format(n=n) + "\n" for line in lines) for n in range(files)}
    return {**made, **{name.replace("_", "."): text for name, text in other.items()}}


def jsons(*lines: str, files: int = 40, **other: str | bytes) -> dict[str, str | bytes]:
    made = {f"a{n:02}.json": "".join(line.replace("{n}", str(n)) + "\n" for line in lines) for n in range(files)}
    return {**made, **{name.replace("_", "."): text for name, text in other.items()}}


CASES: dict[str, tuple[str, Mapping[str, str | bytes]]] = {
    "days in the order that only one file tells": (
        "FROM 'a*.csv'",
        csv("id,day", "{n},05/12/2020", a03_csv="id,day\n3,25/12/2020\n"),
    ),
    "by name, with the file": (
        "FROM read_csv('a*.csv', union_by_name = true, filename = true)",
        csv("id,name", "{n},n{n}", a12_csv="z,id\nq,4.5\n"),
    ),
    "the file under a name of its own": ("FROM read_csv('a*.csv', filename = 'src')", csv("id,filename", "{n},f")),
    "a column called filename": ("FROM read_csv('a*.csv', filename = false)", csv("id,filename", "{n},f")),
    "folders that are columns": (
        "FROM read_csv('*/*/a.csv')",
        {f"year={n}/part={'x' if n == 12 else n}/a.csv": f"id\n{n}\n" for n in range(MANY)},
    ),
    "names with patterns and quotes in them": (
        "FROM read_csv('*.csv', filename = true)",
        {"a[1].csv": "id\n1\n", "b c.csv": "id\n2\n", "d'q.csv": "id\n3\n", 'é"x.csv': "id\n4\n"},
    ),
    "bad lines left out": ("FROM read_csv('a*.csv', ignore_errors = true)", csv("id,name", "{n},n", "7,8,9")),
    "all text, over several lines": ("FROM read_csv('a*.csv', all_varchar = true)", csv("id,t", '{n},"a,\n{n}"')),
    "everything told": (
        "FROM read_csv('a*.csv', columns = {'u': 'UINTEGER', 'd': 'DATE'}, dateformat = '%d.%m.%Y', delim = ';', "
        "header = false, nullstr = ['NA', '-'])",
        csv("{n};01.02.2020", "NA;-", files=3),
    ),
    "compressed": (
        "FROM read_csv('a*.csv.gz')",
        {f"a{n}.csv.gz": gzip.compress(f"id,t\n{n},x\n".encode()) for n in range(4)},
    ),
    "another encoding": (
        "FROM read_csv('a*.csv', encoding = 'latin-1')",
        {f"a{n}.csv": f"id,t\n{n},Zoë\n".encode("latin-1") for n in range(3)},
    ),
    "lines of json": ("FROM 'a*.json'", jsons('{"id": {n}, "u": {"a": {n}}}', '{"id": {n}, "z": [1, 2.5]}')),
    "arrays and lines of json": (
        "FROM read_json('*.json', filename = true)",
        {
            "a.json": '[{"id": 1, "d": "2020-01-01"},\n{"id": 2}]',
            "b.json": '{"id": 3}\n{"id": 4}\n',
            "c.json": '{"id":\n5}',
        },
    ),
    "json with another field behind the files that are looked at": (
        "FROM read_json('a*.json', union_by_name = true)",
        jsons('{"id": {n}}', a39_json='{"id": "x", "k": 1}\n'),
    ),
    "bad lines of json left out": (
        "FROM read_json('a*.json', ignore_errors = true, format = 'nd')",
        jsons('{"id": {n}}', files=4, a03_json='{"id": 1}\n{"id":\n{"id": 5}\n'),
    ),
    "objects": ("FROM read_json_objects('a*.json')", jsons('{"id": {n}}', files=3)),
}

OTHERS, REFUSES = "a file has other columns", "a task met"
#: Files that DuckDB would read otherwise, or not refuse, if it were asked for the file of a row, and such as it
#: refuses: why tasks leave them to this process.
LEFT: dict[str, tuple[str, Mapping[str, str | bytes], str]] = {
    "columns in another order behind the files that are looked at": (
        "FROM 'a*.csv'",
        csv("id,name", "{n},n{n}", a13_csv="name;id\nzoë;7\n"),
        OTHERS,
    ),
    "a file without a header": ("FROM 'a*.csv'", csv("id,name", "{n},n{n}", a12_csv="5,five\n"), OTHERS),
    "a number that is no integer": ("FROM 'a*.csv'", csv("id,name", "{n},n{n}", a13_csv="id,name\n1.5,x\n"), OTHERS),
    "a column that is missing": ("FROM 'a*.csv'", csv("id,name", "{n},x", a12_csv="id\n4\n"), OTHERS),
    "names in capitals": ("FROM 'a*.csv'", csv("id,name", "{n},x", a12_csv="ID,NAME\n4,x\n"), OTHERS),
    "an empty file": ("FROM 'a*.csv'", csv("id,t", "{n},x", a07_csv=""), OTHERS),
    "a line that is too long far down": (
        "FROM read_csv('a*.csv', header = true)",
        csv("id,name", *["{n},x"] * 21_000, files=3, a01_csv="id,name\n" + "1,x\n" * 21_000 + "7,secret,9\n"),
        REFUSES,
    ),
    "text that is no UTF-8": ("FROM 'a*.csv'", csv("id,name", "{n},x", a13_csv=b"id,name\n1,\xff\n"), REFUSES),
    "broken json": ("FROM 'a*.json'", jsons('{"id": {n}}', a39_json='{"id": 1}\n{"id":\n'), REFUSES),
    "a json value of another type": ("FROM 'a*.json'", jsons('{"id": {n}}', a39_json='{"id": "x"}\n'), REFUSES),
}


@pytest.fixture
def read_of(tmp_path: Path) -> Callable[[str, Mapping[str, str | bytes]], FileRead]:
    def made(sql: str, contents: Mapping[str, str | bytes]) -> FileRead:
        for name, text in contents.items():
            file = tmp_path / "project" / name
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(text if isinstance(text, bytes) else text.encode())
        (read,) = translate(sql, dialect="duckdb", tables={}, project_dir=tmp_path / "project").files
        return read

    return made


@pytest.fixture
def why(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Every read of more than one file is large, and two cores are enough; what tasks say of their parts."""
    said: list[str] = []
    run = spread._run

    def heard(spark: Any, told: list[dict[str, Any]]) -> list[str]:
        said.extend(run(spark, told))
        return said

    for limit in ("LARGE", "A_TASK", "THREADS", "WHILE_LOOKING"):
        monkeypatch.setattr(spread, limit, 1)
    monkeypatch.setattr(spread, "_run", heard)
    return said


def rows(folder: Path) -> list[str]:
    """Types and rows, in no order."""
    found = duckdb.sql(f"FROM read_parquet('{folder}/**/*.parquet')")
    return [*map(str, zip(found.columns, found.types, strict=True)), *sorted(map(str, found.fetchall()))]


def one_after_the_other(read: FileRead, spark: Any) -> tuple[Any, Any]:
    """What this process reads, and then the tasks; or what they say."""
    said: list[Any] = []
    for engine in (None, spark):
        try:
            said.append(rows(folder := files.staged(read, engine)))
            shutil.rmtree(folder)
        except BuildError as error:
            said.append(str(error))
    return said[0], said[1]


@pytest.mark.parametrize("name", CASES)
def test_tasks_read_what_one_process_reads(spark: Any, read_of: Any, why: list[str], name: str) -> None:
    sql, contents = CASES[name]
    alone, shared = one_after_the_other(read_of(sql, contents), spark)
    assert shared == alone and len(alone) > 2 and len(why) > 1 and set(why) == {""}


@pytest.mark.parametrize("name", LEFT)
def test_what_tasks_would_not_read_alike_is_read_or_refused_by_this_process(
    spark: Any, read_of: Any, why: list[str], name: str
) -> None:
    sql, contents, told = LEFT[name]
    alone, shared = one_after_the_other(read_of(sql, contents), spark)
    assert shared == alone and any(told in said for said in why)


@pytest.mark.parametrize("limit, value", [("LARGE", 1 << 40), ("THREADS", 2)])
def test_where_tasks_are_no_gain_this_process_reads(
    spark: Any, read_of: Any, why: list[str], monkeypatch: pytest.MonkeyPatch, limit: str, value: int
) -> None:
    monkeypatch.setattr(spread, limit, value)
    sql, contents = CASES["by name, with the file"]
    assert len(rows(files.staged(read_of(sql, contents), spark))) > MANY and why == []


def test_what_tasks_die_of_leaves_the_read_to_this_process(
    spark: Any, read_of: Any, why: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(read_task, "copy", lambda told: os._exit(9))
    sql, contents = CASES["by name, with the file"]
    alone, shared = one_after_the_other(read_of(sql, contents), spark)
    assert (shared == alone, why) == (True, [])


def test_executors_elsewhere_that_have_the_files_write_where_all_find_them(
    spark: Any, read_of: Any, why: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(files, "_here", lambda _: False)
    sql, contents = CASES["by name, with the file"]
    read = read_of(sql, contents)
    found = sorted(map(str, files.open_file(spark, read).collect()))
    monkeypatch.setattr(files, "_here", lambda _: True)
    monkeypatch.setattr(spread, "LARGE", 1 << 40)
    assert (found, why) == (sorted(map(str, files.open_file(spark, read).collect())), [""] * 4)


def told(folder: Path, **other: Any) -> dict[str, Any]:
    """What a task is told of one file, and beside it a folder for what it writes."""
    file = folder / "a.csv"
    if not file.exists():
        file.write_text("id\n1\n")
        (folder / "out").mkdir()
    info = file.stat()
    return {
        "select": f"SELECT id FROM read_csv('{file}')",
        "paths": [str(file)],
        "files": [(str(file), info.st_size, info.st_mtime_ns)],
        "folder": str(folder / "out"),
        "name": "0.parquet",
        "upload": "",
        "alike": [],
        "version": duckdb.__version__,
        **other,
    }


def test_a_task_reads_only_files_that_are_those_of_the_driver(tmp_path: Path) -> None:
    ((path, size, changed),) = told(tmp_path)["files"]
    (link := tmp_path / "link.csv").symlink_to(path)
    others = [(path, size + 1, changed)], [(path, size, changed - 1)], [(str(link), size, changed)], [("/gone", 1, 1)]
    for state in others:
        assert read_task.copy(told(tmp_path, files=state)) == "a worker has other files, or none"
        assert read_task.copy(told(tmp_path)) == "another part was not written"
        (tmp_path / "out" / read_task.STOP).unlink()
    assert read_task.copy(told(tmp_path)) == ""
    assert [path.name for path in (tmp_path / "out").iterdir()] == ["0.parquet"]


def test_a_task_of_another_duckdb_reads_nothing(tmp_path: Path) -> None:
    assert read_task.copy(told(tmp_path, version="0.1")) == f"a worker has DuckDB {duckdb.__version__}"


def test_a_task_opens_no_other_file_and_says_nothing_of_what_is_in_one(tmp_path: Path) -> None:
    (tmp_path / "b.csv").write_text("id\nsecret\n")
    other = f"SELECT id FROM read_csv('{tmp_path}/b.csv')"
    wrong = f"SELECT id FROM read_csv('{tmp_path}/b.csv', columns = {{'id': 'BIGINT'}})"
    assert read_task.copy(told(tmp_path, select=other)) == "a task met PermissionException"
    (tmp_path / "out" / read_task.STOP).unlink()
    allowed = [f"{tmp_path}/b.csv"]
    assert read_task.copy(told(tmp_path, select=wrong, paths=allowed)) == "a task met ConversionException"
    assert [path.name for path in (tmp_path / "out").iterdir()] == [read_task.STOP]


@pytest.mark.parametrize(
    "sizes, wanted, parts",
    [
        ([1, 1, 1, 1], 2, [(0, 2), (2, 4)]),
        ([8, 1, 1], 3, [(0, 1), (1, 3)]),
        ([1, 1, 8], 3, [(0, 2), (2, 3)]),
        ([0, 0], 5, [(0, 2)]),
        ([5], 1, [(0, 1)]),
        ([1, 1], 0, [(0, 2)]),
    ],
)
def test_parts_are_files_in_a_row_of_about_the_same_bytes(
    sizes: list[int], wanted: int, parts: list[tuple[int, int]]
) -> None:
    assert [(part.start, part.stop) for part in spread.shares(sizes, wanted)] == parts
