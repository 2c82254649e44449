"""Files: nothing is read that a model may not read, by no name, and not through a path that changes its meaning."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from runtime.config import from_env
from runtime.custody.secrets import Secrets
from runtime.errors import BuildError
from runtime.project.check import check_project
from runtime.sources import files
from runtime.sql import FileRead, SqlProblems, translate
from runtime.sql.files import places
from runtime.sql.files.delta import opened
from runtime.sql.files.opened import Opened
from runtime.sql.files.places import Place

SECRET = "word-of-another"


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A project with a file that may be read, beside a folder with one that may not."""
    for name, text in (("project/in/a.csv", "id\n1\n"), ("out/secret.csv", f"id\n{SECRET}\n")):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    return tmp_path / "project"


def read_of(sql: str, project: Path, hidden: tuple[Path, ...] = ()) -> FileRead:
    (read,) = translate(sql, dialect="duckdb", tables={}, project_dir=project, hidden=hidden).files
    return read


def refused(sql: str, project: Path, hidden: tuple[Path, ...] = ()) -> str:
    with pytest.raises(SqlProblems) as caught:
        read_of(sql, project, hidden)
    ((line, message),) = caught.value.problems
    assert line == 1 and SECRET not in message
    return message


def rows(read: FileRead) -> list[str]:
    return sorted(pq.read_table(files.staged(read)).column("id").to_pylist(), key=str)


@pytest.fixture
def install(project: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An install whose data folder lies in the project, as that of a fresh clone does."""
    data = project / "data"
    (data / "demo").mkdir(parents=True)
    for name in ("secret_key", "ondatra.sqlite3", "store/x.csv", "demo/flights.csv"):
        (data / name).parent.mkdir(exist_ok=True)
        (data / name).write_text(f"id\n{SECRET if name != 'demo/flights.csv' else 2}\n")
    monkeypatch.setenv("ONDATRA_DATA_DIR", str(data))
    for name in ("ONDATRA_LAKE_URL", "ONDATRA_STAGING_URL", "ONDATRA_TRACKING_URL", "DATABASE_URL"):
        monkeypatch.delenv(name, raising=False)
    return data


@pytest.mark.parametrize("path", ["data/secret_key", "data/ondatra.sqlite3", "data/store/x.csv", "data/store/*.csv"])
def test_nothing_of_the_install_is_read_by_name_though_it_lies_in_the_project(
    project: Path, install: Path, path: str
) -> None:
    message = refused(f"SELECT * FROM read_csv('{path}', header = false)", project)
    assert "belongs to this install" in message or "No files found" in message


def test_a_pattern_leaves_the_install_out_and_the_check_says_so(project: Path, install: Path) -> None:
    (project / "models").mkdir()
    (project / "models/all.sql").write_text("SELECT id FROM read_csv('**/*.csv', all_varchar = true)")
    found, problems = check_project(project, secrets=Secrets({}, "a test"))
    assert problems == []
    assert [w.message for w in found.warnings] == [
        f"read_csv('{project}/**/*.csv') leaves out the data folder of this install"
    ]
    assert rows(found.translated["main.all"].files[0]) == ["1", "2"]


def test_the_demos_public_data_in_the_data_folder_are_read(project: Path, install: Path) -> None:
    assert rows(read_of("FROM 'data/demo/*.csv'", project)) == [2]


def test_parts_of_the_install_elsewhere_are_not_read_either(
    project: Path, install: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shutil.move(install / "store", project / "records")
    monkeypatch.setenv("ONDATRA_TRACKING_URL", (project / "records").as_uri())
    (project / "base.sqlite3").write_text("id\n1\n")
    monkeypatch.setenv("DATABASE_URL", f"sqlite:///{project}/base.sqlite3")
    for path in ("records/x.csv", "base.sqlite3"):
        assert "belongs to this install" in refused(f"SELECT * FROM read_csv('{path}')", project)


def test_an_env_file_is_not_read_under_any_name(project: Path) -> None:
    for name in (".env", ".env.local", "secrets.csv"):
        (project / name).write_text(f"id\n{SECRET}\n")
    for name in (".env", ".env.local"):
        assert "never read by SQL" in refused(f"SELECT * FROM read_csv('{name}')", project)
    hidden = (project / "secrets.csv",)
    assert "belongs to this install" in refused("SELECT * FROM 'secrets.csv'", project, hidden)
    (project / "link.csv").symlink_to("secrets.csv")
    assert "belongs to this install" in refused("SELECT * FROM 'link.csv'", project, hidden)


def to_file(project: Path) -> None:
    (project / "in/b.csv").symlink_to(project.parent / "out/secret.csv")


def to_folder(project: Path) -> None:
    (project / "in/more").symlink_to(project.parent / "out")


def hard(project: Path) -> None:
    os.link(project.parent / "out/secret.csv", project / "in/b.csv")


def pipe(project: Path) -> None:
    os.mkfifo(project / "in/b.csv")


@pytest.mark.parametrize(
    ("make", "path", "words"),
    [
        (to_file, "in/b.csv", "lies outside the project folder"),
        (to_file, "in/*.csv", "leads outside the project folder"),
        (to_folder, "in/more/secret.csv", "lies outside the project folder"),
        (to_folder, "in/more/*.csv", "lies outside the project folder"),
        (hard, "in/b.csv", "hard link"),
        (hard, "in/*.csv", "hard link"),
        (pipe, "in/b.csv", "is no file"),
    ],
)
def test_another_name_of_a_file_outside_is_refused(
    project: Path, make: Callable[[Path], None], path: str, words: str
) -> None:
    make(project)
    assert words in refused(f"SELECT * FROM read_csv('{path}', all_varchar = true)", project)


def test_a_pattern_does_not_enter_folders_that_lie_outside(project: Path) -> None:
    to_folder(project)
    for pattern in ("in/*/*.csv", "**/secret.csv"):
        assert "No files found" in refused(f"SELECT * FROM '{pattern}'", project)


def test_hidden_files_are_read_by_name_alone_and_within_the_project(project: Path) -> None:
    (project / "in/.b.csv").write_text("id\n7\n")
    (project / "in/.link.csv").symlink_to(project.parent / "out/secret.csv")
    assert rows(read_of("FROM 'in/*.csv'", project)) == [1]
    assert rows(read_of("FROM 'in/.b.csv'", project)) == [7]
    assert "outside the project" in refused("FROM 'in/.link.csv'", project)


def test_a_name_that_looks_like_a_pattern_is_that_file(project: Path) -> None:
    for name in ("[a].csv", "x[*]?.csv"):
        (project / f"in/{name}").write_text("id\n5\n")
    assert rows(read_of("FROM 'in/x*.csv'", project)) == [5]
    assert rows(read_of("FROM read_csv('in/*.csv', filename = true)", project)) == [1, 5, 5]


@pytest.mark.parametrize(
    "path", ["file:///etc/passwd", "file:/etc/passwd", "/proc/self/environ", "in/../../out/secret.csv", "http://x/a"]
)
def test_other_places_are_refused(project: Path, path: str) -> None:
    told = refused(f"SELECT * FROM read_csv('{path}')", project)
    assert "project folder" in told


def test_what_was_opened_is_read_though_the_path_leads_elsewhere_by_then(project: Path) -> None:
    place = Place(project, ())
    with Opened(place.matches((f"{project}/in/a.csv",)), place) as held:
        (project / "in/a.csv").unlink()
        to_file(project)
        (project / "in/b.csv").rename(project / "in/a.csv")
        with held.duckdb() as con:
            assert con.execute(f"FROM read_csv('{held.patterns()[0]}')").fetchall() == [(1,)]


def test_a_path_that_became_a_link_after_the_check_is_refused_when_it_is_read(project: Path) -> None:
    read = read_of("FROM 'in/a.csv'", project)
    (project / "in/a.csv").unlink()
    (project / "in/a.csv").symlink_to(project.parent / "out/secret.csv")
    with pytest.raises(BuildError, match="leads outside the project folder"):
        files.staged(read)


def test_a_folder_that_becomes_a_link_between_looking_and_opening_is_not_followed(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = Place(project, ())
    matches = place.matches((f"{project}/in/a.csv",))
    looked = place.checked(matches[0].path)
    (project / "in").rename(project / "was")
    (project.parent / "out/a.csv").write_text(SECRET)
    to = project / "in"
    to.symlink_to(project.parent / "out")
    monkeypatch.setattr(places.Place, "checked", lambda *_: looked)  # what it saw a moment ago
    with pytest.raises(SqlProblems, match="cannot be read"):
        Opened(matches, place)


def test_the_reader_of_files_opens_no_other_file(project: Path) -> None:
    import duckdb

    place = Place(project, ())
    with Opened(place.matches((f"{project}/in/a.csv",)), place) as held, held.duckdb() as con:
        for attempt in (
            f"FROM read_csv('{project.parent}/out/secret.csv')",
            f"FROM read_csv('{held.folder}/*')",
            "SET enable_external_access = true",
            "SET allowed_paths = ['/']",
            "INSTALL httpfs",
            f"COPY (SELECT 1) TO '{project}/new.csv'",
        ):
            with pytest.raises(duckdb.Error):
                con.execute(attempt).fetchall()


# ---- Delta


@pytest.fixture
def table(project: Path) -> Path:
    """A Delta table of one file, written by hand: id 1."""
    folder = project / "in/table"
    (folder / "_delta_log").mkdir(parents=True)
    pq.write_table(pa.table({"id": pa.array([1], pa.int64())}), folder / "a.parquet")
    log(folder, "a.parquet")
    return folder


def log(folder: Path, name: str, **more: object) -> None:
    field = {"name": "id", "type": "long", "nullable": True, "metadata": {}}
    schema = json.dumps({"type": "struct", "fields": [field]})
    size = (folder / "a.parquet").stat().st_size
    add = {"path": name, "partitionValues": {}, "size": size, "modificationTime": 0, "dataChange": True, **more}
    actions = [
        {"protocol": {"minReaderVersion": 1, "minWriterVersion": 2}},
        {
            "metaData": {
                "id": "1",
                "format": {"provider": "parquet", "options": {}},
                "schemaString": schema,
                "partitionColumns": [],
                "configuration": {},
                "createdTime": 0,
            }
        },
        {"add": add},
    ]
    (folder / "_delta_log/00000000000000000000.json").write_text("\n".join(map(json.dumps, actions)))


@pytest.mark.parametrize(
    ("name", "more"),
    [
        ("/etc/passwd", {}),
        ("../../../out/secret.csv", {}),
        ("x/%2e%2e/%2e%2e/secret.csv", {}),
        ("file:///etc/passwd", {}),
        ("s3a://bucket/x", {}),
        (
            "a.parquet",
            {"deletionVector": {"storageType": "p", "pathOrInlineDv": "file:///etc/passwd", "sizeInBytes": 1}},
        ),
    ],
)
def test_a_log_that_names_a_file_elsewhere_is_refused(
    project: Path, table: Path, name: str, more: dict[str, object]
) -> None:
    log(table, name, **more)
    assert "which is not below it" in refused("SELECT * FROM delta_scan('in/table')", project)


def test_so_is_one_that_names_it_in_a_checkpoint(project: Path, table: Path) -> None:
    part = pa.table({"add": [{"path": "/etc/passwd"}], "metaData": pa.array([None], pa.struct([("id", pa.string())]))})
    pq.write_table(part, table / "_delta_log/00000000000000000000.checkpoint.parquet")
    assert "names the file /etc/passwd" in refused("SELECT * FROM delta_scan('in/table')", project)


@pytest.mark.parametrize("what", ["more", "_delta_log"])
@pytest.mark.parametrize("to", ["out", "out/secret.csv"])
def test_a_table_with_a_link_in_it_is_refused(project: Path, table: Path, what: str, to: str) -> None:
    shutil.rmtree(table / what, ignore_errors=True)
    (table / what).symlink_to(project.parent / to)
    with pytest.raises(SqlProblems, match="is a link"):
        opened(Place(project, ()), table)


def test_the_log_that_spark_reads_is_the_one_that_was_looked_through(project: Path, table: Path) -> None:
    held, folder = opened(Place(project, ()), table)
    log(table, "/etc/passwd")
    said = (folder / "_delta_log/00000000000000000000.json").read_text()
    assert "/etc/passwd" not in said and pq.read_table(folder / "a.parquet").to_pylist() == [{"id": 1}]
    held.close()
    assert not folder.exists()


def test_the_install_of_this_process_is_known() -> None:
    assert from_env().data_dir.resolve() in places.own_places().paths


@pytest.mark.slow
def test_spark_reads_the_opened_files_whatever_they_are_called(spark: object, project: Path, table: Path) -> None:
    for name in ("_a.parquet", "b[1].parquet", "{x}.parquet"):
        pq.write_table(pa.table({"id": pa.array([3], pa.int64())}), project / f"in/{name}")
    read = read_of("FROM 'in/*.parquet'", project)
    frame = files.open_file(spark, read)  # type: ignore[arg-type]
    for file in (project / "in").glob("*.parquet"):
        file.unlink()
        file.symlink_to(project.parent / "out/secret.csv")
    delta = files.open_file(spark, read_of("FROM delta_scan('in/table')", project))  # type: ignore[arg-type]
    assert ([r.id for r in frame.collect()], [r.id for r in delta.collect()]) == ([3, 3, 3], [1])
