"""Translations kept for later processes: the same answer without a translator, and none where anything that decides it
changed."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from runtime.config import from_env
from runtime.custody import secrets
from runtime.errors import Problem
from runtime.model import Column
from runtime.project.check import Project, check_project
from runtime.sql import kept, references, spark_dialect, translation
from runtime.sql.files.places import Place

PEOPLE = (Column("id", "BIGINT", "BIGINT"), Column("name", "VARCHAR", "STRING"))
MODELS = {
    "staging/people": "SELECT id, name FROM read_csv('in/*.csv', header = true, types = {'id': 'BIGINT'})",
    "mart/counted": "SELECT name, count(*) AS n, [1, 2] AS l FROM staging.people GROUP BY ALL ORDER BY n",
    "mart/theirs": "-- @dialect: spark\nSELECT id, now() AS at FROM staging.people",
    "mart/both": "SELECT DISTINCT p.name, {'a': p.id} AS s\nFROM staging.people p JOIN mart.counted c ON c.name = "
    "p.name",
}


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("ONDATRA_DATA_DIR", str(tmp_path / "data"))
    (tmp_path / "data").mkdir()
    for name, sql in MODELS.items():
        (tmp_path / f"models/{name}.sql").parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / f"models/{name}.sql").write_text(sql)
    (tmp_path / "in").mkdir()
    (tmp_path / "in/a.csv").write_text("id,name\n1,Ada\n")
    return tmp_path


def checked(folder: Path, allow: tuple[Path, ...] = ()) -> tuple[Project, list[Problem]]:
    """As another process does it: what this one remembers is forgotten."""
    references.cache_clear()
    return check_project(folder, secrets=secrets.from_environment({}), allow_paths=allow)


@pytest.fixture
def translated(monkeypatch: pytest.MonkeyPatch) -> Callable[[], list[str]]:
    """The texts that were translated since the last look."""
    seen: list[str] = []
    for module in (translation, spark_dialect):
        real = module.translate

        def watched(sql: str, *rest: object, _real: Callable[..., object] = real) -> object:
            seen.append(sql)
            return _real(sql, *rest)

        monkeypatch.setattr(module, "translate", watched)

    def look() -> list[str]:
        found = [name for name, sql in MODELS.items() if sql.removeprefix("-- @dialect: spark\n") in seen]
        seen.clear()
        return found

    return look


def test_what_did_not_change_is_not_translated_again(
    project: Path, translated: Callable[[], list[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    first = checked(project)
    assert first[1] == [] and translated() == list(MODELS)
    for module in (translation, spark_dialect):
        monkeypatch.setattr(module, "references", None)
    assert checked(project) == first and translated() == []


def test_other_columns_of_a_file_or_of_an_input_are_seen(project: Path, translated: Callable[[], list[str]]) -> None:
    checked(project)
    translated()
    (project / "in/a.csv").write_text("id,name,age\n1,Ada,36\n")
    found, problems = checked(project)
    assert problems == [] and translated() == ["staging/people"]
    assert [c.name for c in found.translated["staging.people"].files[0].columns] == ["id", "name", "age"]
    (project / "in/b.csv").write_text("id,name,age\n2,Bob,x\n")
    checked(project)
    assert translated() == ["staging/people"]
    (project / "models/staging/people.sql").write_text("SELECT id, upper(name) AS name, 1 AS more FROM 'in/a.csv'")
    checked(project)
    assert translated() == ["mart/counted", "mart/theirs", "mart/both"]
    (project / "models/staging/people.sql").write_text("SELECT id FROM 'in/a.csv'")
    assert {p.file for p in checked(project)[1]} == {"models/mart/counted.sql"}


def test_a_file_that_may_not_be_read_any_more_is_refused(
    project: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    outside = tmp_path_factory.mktemp("outside")
    (outside / "a.csv").write_text("id,name\n1,Ada\n")
    (project / "models/staging/people.sql").write_text(f"SELECT id, name FROM '{outside}/a.csv'")
    assert checked(project, (outside,))[1] == []
    assert [p.file for p in checked(project)[1]] == ["models/staging/people.sql"]
    (project / "models/staging/people.sql").write_text("SELECT id, name FROM 'in/a.csv'")
    assert checked(project)[1] == []
    (project / "in/a.csv").unlink()
    (project / "in/a.csv").symlink_to(outside / "a.csv")
    ((_, _, message),) = [(p.file, p.line, p.message) for p in checked(project)[1]]
    assert "lies outside the project folder" in message


@pytest.mark.parametrize(
    "path",
    ["'in/' || lower('A') || '.csv'", "'in/' || CASE WHEN today() > DATE '2020-01-01' THEN 'a' ELSE 'b' END || '.csv'"],
)
def test_a_path_that_is_computed_is_computed_each_time(
    project: Path, translated: Callable[[], list[str]], path: str
) -> None:
    (project / "models/staging/people.sql").write_text(f"SELECT id, name FROM read_csv({path})")
    checked(project)
    assert translated() == ["mart/counted", "mart/theirs", "mart/both"]
    with kept.remembering():
        sql = (project / "models/staging/people.sql").read_text()
        memory = kept.current()
        assert memory and memory.translation(sql, "duckdb", {}, Place(project, ())) is None
        assert memory.translation(MODELS["mart/counted"], "duckdb", {"staging.people": PEOPLE}, Place(project, ()))


def test_another_version_of_the_translators_begins_anew(
    project: Path, translated: Callable[[], list[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    checked(project)
    translated()
    monkeypatch.setattr(kept, "_translators", lambda: ["another"])
    checked(project)
    assert translated() == list(MODELS)


def test_a_memory_that_is_no_database_or_in_use_is_passed_over(
    project: Path, translated: Callable[[], list[str]]
) -> None:
    import sqlite3

    path = from_env().data_dir / kept.FILE
    path.write_bytes(b"no database" * 1000)
    assert checked(project)[1] == [] and translated() == list(MODELS)
    with sqlite3.connect(path) as other:
        other.execute("CREATE TABLE kept (key TEXT PRIMARY KEY, made REAL NOT NULL, value BLOB NOT NULL) WITHOUT ROWID")
        other.execute("BEGIN EXCLUSIVE")
        assert checked(project)[1] == [] and translated() == list(MODELS)
    other.close()
    checked(project)
    assert translated() == list(MODELS)
    checked(project)
    assert translated() == []


def test_a_model_that_met_texts_of_another_spelling_is_exact_in_later_processes(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (project / "models/mart/ages.sql").write_text("SELECT name::INTEGER AS age FROM staging.people")

    def chosen() -> tuple[bool, int]:
        usual = checked(project)[0].translated["mart.ages"]
        return kept.chosen(usual) == usual.exact, len(kept.chosen(usual).calls)

    before = chosen()
    kept.choose_exact(checked(project)[0].translated["mart.ages"])
    monkeypatch.setattr(kept, "_exact", {})
    assert (before, chosen()) == ((False, 0), (True, 1))
