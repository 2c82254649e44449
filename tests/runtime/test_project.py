"""A project folder, checked whole."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from runtime.custody import secrets
from runtime.errors import ConfigError, ProjectError
from runtime.project.check import Project, check_project, load_project
from runtime.sql import translation
from runtime.sql.asking import gate

ECHO = """API = {"base_url": "http://127.0.0.1:1"}

def push(rows):
    return {str(r["__ondatra_rowid"]) + ":" + r["__ondatra_change_type"]: "ok" for r in rows}
"""
NONE = secrets.from_environment({})


class Folder:
    def __init__(self, path: Path) -> None:
        self.path = path
        self.write("lib/echo.star", ECHO)

    def write(self, name: str, text: str) -> None:
        path = self.path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")

    def model(self, name: str, text: str) -> None:
        self.write(f"models/{name}.sql", text)

    def problems(self) -> list[tuple[str, int, str]]:
        return [(p.file, p.line, p.message) for p in check_project(self.path, secrets=NONE)[1]]

    def load(self, *names: str) -> Project:
        return load_project(self.path, secrets=NONE, names=names)


@pytest.fixture
def folder(tmp_path: Path) -> Folder:
    made = Folder(tmp_path)
    made.model("staging/people", "SELECT 1 AS id, 'Ada' AS name, 'a@x' AS email")
    return made


def out(
    folder: Folder, *header: str, sql: str = "SELECT id, name, email FROM staging.people"
) -> list[tuple[str, int, str]]:
    folder.model("sync/out", "\n".join([*header, "-- @sink: echo", sql]))
    return folder.problems()


def test_a_project_has_its_models_in_order_with_their_columns(folder: Folder) -> None:
    folder.model("mart/all", "SELECT id, upper(name) AS name FROM staging.people")
    out(folder, "-- @kind: merge", "-- @unique_key: ID", sql="SELECT id, name FROM mart.all")
    project = folder.load()
    assert project.order == ("staging.people", "mart.all", "sync.out")
    assert project.inputs == {"staging.people": (), "mart.all": ("staging.people",), "sync.out": ("mart.all",)}
    assert [(c.name, c.duckdb_type) for c in project.translated["sync.out"].columns or ()] == [
        ("id", "INTEGER"),
        ("name", "VARCHAR"),
    ]
    assert project.models["sync.out"].key == ("id",)  # as the SELECT spells it


def test_names_choose_models_and_what_they_need_without_case(folder: Folder) -> None:
    folder.model("mart/broken", "SELECT FROM")
    folder.model("mart/fine", "SELECT id FROM staging.people")
    assert folder.load("MART.Fine").order == ("staging.people", "mart.fine")


def test_an_unknown_name_lists_near_ones(folder: Folder) -> None:
    with pytest.raises(ConfigError, match=r"there is no model staging.peple; did you mean staging.people\?"):
        folder.load("staging.peple")


def test_every_problem_of_every_file_is_found_at_once(folder: Folder) -> None:
    folder.model("mart/bad", "-- @kind: cube\nSELECT id FROM staging.people")
    folder.model("mart/lost", "SELECT id\nFROM staging.peeple")
    folder.write("lib/wrong.star", 'API = {"retries": 3}\ndef push(rows):\n    return {}\n')
    folder.model("sync/wrong", "-- @sink: wrong\nSELECT id FROM staging.people")
    with pytest.raises(ProjectError) as error:
        out(folder, "-- @kind: merge")
        folder.load()
    assert [(p.file, p.line) for p in error.value.problems] == [
        ("lib/wrong.star", 1),
        ("models/mart/bad.sql", 1),
        ("models/mart/lost.sql", 2),
        ("models/sync/out.sql", 1),
    ]


def test_an_unknown_table_is_named_with_near_ones_at_its_line(folder: Folder) -> None:
    assert out(folder, sql="SELECT id\nFROM staging.poeple") == [
        ("models/sync/out.sql", 3, "there is no table staging.poeple; did you mean staging.people?")
    ]


def test_a_cycle_is_printed_as_a_path(folder: Folder) -> None:
    folder.model("mart/a", "SELECT id FROM mart.b")
    folder.model("mart/b", "SELECT id FROM mart.a")
    assert folder.problems() == [
        ("models/mart/a.sql", 1, "models read each other in a circle: mart.a -> mart.b -> mart.a")
    ]


def test_two_files_that_differ_only_in_case_are_one_model_too_many(folder: Folder) -> None:
    folder.model("staging/People", "SELECT 1 AS id")
    ((_, line, message),) = folder.problems()
    assert line == 1 and "models/staging/People.sql" in message and "models/staging/people.sql" in message


@pytest.mark.parametrize(
    "header, line",
    [
        (["-- @kind: merge", "-- @unique_key: phone"], 2),
        (["-- @kind: tracked", "-- @group_key: phone"], 2),
        (["-- @kind: partition", "-- @partitioned_by: phone"], 2),
        (["-- @identifier: phone"], 1),
        (["-- @mask: phone:last4"], 1),
    ],
)
def test_a_column_that_the_select_does_not_produce_is_a_problem_of_its_directive(
    folder: Folder, header: list[str], line: int
) -> None:
    ((file, at, message),) = out(folder, *header)
    assert (file, at) == ("models/sync/out.sql", line)
    assert "'phone'" in message and message.endswith("it produces id, name, email")


@pytest.mark.parametrize("column", ["__ondatra_rowid", "__Ondatra_x", "_content_hash", "_content_hash2"])
def test_reserved_names_are_refused(folder: Folder, column: str) -> None:
    ((_, _, message),) = out(folder, sql=f"SELECT id, name AS {column} FROM staging.people")
    assert column in message and "reserved" in message


def test_the_columns_that_scd2_adds_are_reserved_there_and_readable_downstream(folder: Folder) -> None:
    header = ["-- @kind: scd2", "-- @unique_key: id"]
    assert [m for _, _, m in out(folder, *header, sql="SELECT id, true AS is_current FROM staging.people")] == [
        "the column is_current is reserved for kind scd2, which adds it: rename it"
    ]
    assert out(folder, *header) == []
    folder.model("mart/current", "SELECT id, valid_from_snapshot FROM sync.out WHERE is_current")
    assert folder.problems() == []


def test_an_interval_asks_for_a_cast(folder: Folder) -> None:
    ((_, _, message),) = out(folder, sql="SELECT id, INTERVAL 1 DAY AS gap FROM staging.people")
    assert "INTERVAL" in message and "cast" in message


def test_a_key_can_only_be_masked_with_hash(folder: Folder) -> None:
    header = ["-- @kind: merge", "-- @unique_key: id"]
    assert [(line, m) for _, line, m in out(folder, *header, "-- @mask: id:last4")] == [
        (3, "@mask: the key column id can only be masked with hash, so that its records can be found")
    ]
    assert out(folder, *header, "-- @mask: id:hash") == []


def test_a_column_produced_twice_is_a_problem(folder: Folder) -> None:
    ((_, _, message),) = out(folder, sql="SELECT id, name AS Id FROM staging.people")
    assert "Id" in message and "name" in message


def test_a_missing_sink_names_the_file_and_near_ones(folder: Folder) -> None:
    folder.model("sync/out", "-- @kind: table\n-- @sink: ecco\nSELECT id FROM staging.people")
    assert folder.problems() == [
        ("models/sync/out.sql", 2, "@sink names ecco, but there is no lib/ecco.star; did you mean echo?")
    ]


def test_a_missing_secret_is_a_problem_of_the_push_function(folder: Folder) -> None:
    folder.write("lib/echo.star", ECHO.replace('"base_url"', '"auth": {"env": "NOT_SET_HERE"}, "base_url"'))
    ((file, _, message),) = out(folder)
    assert file == "lib/echo.star" and "NOT_SET_HERE" in message


def warned(folder: Folder, *header: str, sql: str) -> list[tuple[int, str]]:
    assert out(folder, *header, sql=sql) == []
    return [(w.line, w.message) for w in folder.load().warnings]


def test_append_without_a_key_is_a_warning(folder: Folder) -> None:
    assert warned(folder, "-- @kind: append", sql="SELECT id FROM staging.people") == [
        (1, "append without @unique_key: equal content is sent once per copy")
    ]


@pytest.mark.parametrize(
    "sql, line",
    [
        ("SELECT id\nFROM staging.people\nLIMIT 1", 4),
        ("SELECT id FROM (SELECT id FROM staging.people LIMIT 1) ORDER BY id", 2),
        ("SELECT id FROM staging.people OFFSET 1", 2),
        ("SELECT id FROM staging.people ORDER BY id LIMIT 1", None),
        ("SELECT id FROM (SELECT id FROM staging.people ORDER BY id LIMIT 1)", None),
        ("SELECT id, 'at the limit 5' AS a -- limit 5\nFROM staging.people", None),
    ],
)
def test_a_limit_without_order_by_is_a_warning_at_its_line(folder: Folder, sql: str, line: int | None) -> None:
    assert warned(folder, sql=sql) == (
        [(line, "LIMIT without ORDER BY: which rows are sent is not stable")] if line else []
    )


def test_so_is_one_in_a_model_that_a_sync_reads_and_in_no_other(folder: Folder) -> None:
    folder.model("mart/some", "SELECT id FROM staging.people LIMIT 1")
    folder.model("mart/unread", "SELECT id FROM staging.people LIMIT 1")
    assert out(folder, sql="SELECT id FROM mart.some") == []
    assert [w.file for w in folder.load().warnings] == ["models/mart/some.sql"]


def test_a_file_whose_ending_is_in_capitals_is_not_passed_over(folder: Folder) -> None:
    folder.model("mart/one", "SELECT 1 AS id")
    (folder.path / "models/mart/one.sql").rename(folder.path / "models/mart/one.SQL")
    assert folder.problems() == [
        ("models/mart/one.SQL", 1, "is not read: the name of a model's file ends in .sql, not in .SQL")
    ]


def test_wrong_sink_arguments_are_a_problem_of_the_model(folder: Folder) -> None:
    folder.write("lib/two.star", ECHO.replace('"base_url"', '"push": {"args": ["list", "label"]}, "base_url"'))
    folder.model("sync/out", "-- @kind: table\n-- @sink: two('a')\nSELECT 1 AS id")
    assert folder.problems() == [
        ("models/sync/out.sql", 2, "@sink gives 1 argument(s), but push.args of lib/two.star names 2 (list, label)")
    ]


@pytest.mark.parametrize(
    "name, words",
    [
        ("_metadata", "a name that Spark uses itself"),
        ("a`b", "a backtick in its name"),
        ("_Change_type", "a name that Delta's change feed uses itself"),
    ],
)
def test_a_column_that_delta_cannot_take_is_refused_with_a_way_out(folder: Folder, name: str, words: str) -> None:
    ((file, line, message),) = out(folder, sql=f'SELECT id, name AS "{name}"\nFROM staging.people')
    assert (
        (file, line) == ("models/sync/out.sql", 2)
        and f"the column {name} has {words}" in message
        and message.endswith("give it another with AS")
    )


@pytest.mark.parametrize(
    "dialect, sql, line, words",
    [
        ("duckdb", "SELECT 1 AS id;\nSELECT 2", 4, "2 statements were found"),
        ("spark", "SELECT 1 AS id;\nSELECT 2", 3, "2 statements were found"),
        ("duckdb", "-- nothing", 3, "there is no SELECT"),
        ("duckdb", "SELECT 1 AS id\nFORM x", 4, 'at or near "FORM"'),
        ("spark", "SELECT 1 AS id\nFORM x", 4, '"FORM"'),
        ("duckdb", "SELECT 1 AS id,\nnofunc(2) AS b", 4, "nofunc does not exist! Did you mean"),
        ("duckdb", "SELECT id,\nnmae FROM staging.people", 4, '"nmae" not found'),
        ("duckdb", "INSERT INTO x VALUES (1)", 3, "exactly one SELECT"),
        ("duckdb", "SELECT id FROM sync.bad", 3, "circle: sync.bad -> sync.bad"),
        ("spark", "SELECT id FROM sync.bad", 3, "in a circle: sync.bad -> sync.bad"),
    ],
)
def test_wrong_sql_is_one_line_that_names_the_place(
    folder: Folder, dialect: str, sql: str, line: int, words: str
) -> None:
    folder.model("sync/bad", f"-- @dialect: {dialect}\n-- @sink: echo\n{sql}")
    ((file, at, message),) = folder.problems()
    assert (file, at) == ("models/sync/bad.sql", line) and words in message and "\n" not in message


def test_what_reads_a_model_whose_types_only_spark_knows_is_no_problem(folder: Folder) -> None:
    folder.model("mart/theirs", "-- @dialect: spark\nSELECT 1 AS id")
    folder.model("mart/ours", "SELECT id FROM mart.theirs")
    assert folder.problems() == []


def test_warnings_are_told_beside_problems(folder: Folder) -> None:
    assert out(folder, "-- @kind: append", sql="SELECT id, _none FROM staging.people LIMIT 1")
    folder.model("sync/few", "-- @sink: echo\nSELECT id FROM staging.people LIMIT 1")
    project, problems = check_project(folder.path, secrets=NONE)
    assert [p.file for p in problems] == ["models/sync/out.sql"] and [w.file for w in project.warnings] == [
        "models/sync/few.sql"
    ]


def test_ondatra_toml_chooses_the_dialect_and_a_header_wins(folder: Folder) -> None:
    folder.write("ondatra.toml", 'dialect = "spark"\n')
    out(folder, "-- @dialect: duckdb", sql="SELECT 1 AS id")
    assert {n: m.dialect for n, m in folder.load().models.items()} == {"staging.people": "spark", "sync.out": "duckdb"}


@pytest.mark.parametrize(
    "text, words",
    [('dialect = "mysql"', "duckdb or spark"), ("colour = 1", "'colour' is no key"), ("dialect =", "TOML")],
)
def test_a_wrong_ondatra_toml_is_a_problem(folder: Folder, text: str, words: str) -> None:
    folder.write("ondatra.toml", text)
    ((file, line, message),) = folder.problems()
    assert (file, line) == ("ondatra.toml", 1) and words in message


def test_a_folder_without_models_says_what_to_create(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"create models/<folder>/<name>.sql with one SELECT$"):
        check_project(tmp_path, secrets=NONE)


def test_a_folder_of_python_says_that_models_are_sql(tmp_path: Path) -> None:
    (tmp_path / "models").mkdir()
    (tmp_path / "models/people.py").write_text("print(1)")
    with pytest.raises(ConfigError, match="models are SQL; Python files are not read"):
        check_project(tmp_path, secrets=NONE)


WRONG = {
    3: "nope",
    8: "id + name",
    13: "id, name AS id",
    17: "[1, 2] || 'x'",
    22: "id /* ', */, nope.x",
    24: "(SELECT m5.id)",
    27: "sum(id) OVER (ORDER BY nope)",
}


def _a_level(folder: Folder) -> None:
    for i in range(30):
        cte = f"WITH a AS (SELECT id, name, {i} AS n FROM staging.people)" if i % 3 else ""
        folder.model(
            f"mart/m{i}",
            f"{cte}\nSELECT {WRONG.get(i, 'id, name, id + 1 AS x')}\nFROM {'a' if i % 3 else 'staging.people'}",
        )


def test_problems_among_models_that_are_asked_for_together_are_those_of_each_alone(
    folder: Folder, monkeypatch: pytest.MonkeyPatch
) -> None:
    _a_level(folder)
    together = folder.problems()
    monkeypatch.setattr(gate.Gate, "describe_ahead", lambda self, texts: None)
    translation._done.clear()
    assert together == folder.problems()
    assert sorted({file for file, *_ in together}) == sorted(f"models/mart/m{i}.sql" for i in WRONG)


def test_models_of_one_level_are_asked_for_together(folder: Folder, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(globals(), "WRONG", {})
    _a_level(folder)
    asked = []
    real = gate.Gate.run
    monkeypatch.setattr(gate.Gate, "run", lambda self, sql, *args: asked.append(sql) or real(self, sql, *args))
    assert folder.problems() == []
    assert [sql[:90] for sql in asked if sql.startswith("DESCRIBE")][1:] == []


def test_two_hundred_models_are_checked_in_little_time(folder: Folder) -> None:
    for i in range(199):
        source = f"mart.m{i - 1}" if i % 10 else "staging.people"
        folder.model(
            f"mart/m{i}",
            f"SELECT id, upper(name) AS name, email, count(*) OVER (PARTITION BY id) AS n FROM {source} WHERE id > "
            f"{i} - 1000",
        )
    began = time.process_time()  # other work on the machine must not fail this
    assert folder.problems() == []
    assert time.process_time() - began < 3
