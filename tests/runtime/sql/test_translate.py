"""What the translation says about SQL without running it: names, types, lines, refusals, files, tables."""

from __future__ import annotations

import re
import time
from pathlib import Path

import pytest

from runtime.model import Column
from runtime.sql import SqlProblems, TableRef, Translated, references, translate
from runtime.sql.asking.types import parse, spark_type

TABLES = {
    name: tuple(Column(c, t, spark_type(parse(t))) for c, t in columns.items())
    for name, columns in {
        "main.people": {
            "id": "INTEGER",
            "name": "VARCHAR",
            "payload": "JSON",
            "born": "DATE",
            "seen": "TIMESTAMP",
            "score": "DOUBLE",
            "credit": "DECIMAL(10,2)",
        },
        "staging.tags": {"id": "INTEGER", "tag": "VARCHAR"},
    }.items()
}


def done(sql: str, project: Path = Path("/nowhere"), dialect: str = "duckdb") -> Translated:
    return translate(sql, dialect=dialect, tables=TABLES, project_dir=project)


def problems(sql: str, project: Path = Path("/nowhere"), dialect: str = "duckdb") -> list[tuple[int, str]]:
    with pytest.raises(SqlProblems) as caught:
        done(sql, project, dialect)
    return caught.value.problems


def test_names_and_types_are_duckdbs() -> None:
    found = done(
        "SELECT ID, count(*), sum(score) AS Total, avg(credit) AS a, json_group_array(name) AS j FROM people GROUP BY "
        "id"
    ).columns
    assert [(c.name, c.duckdb_type, c.spark_type) for c in found or ()] == [
        ("id", "INTEGER", "INT"),
        ("count_star()", "BIGINT", "BIGINT"),
        ("Total", "DOUBLE", "DOUBLE"),
        ("a", "DOUBLE", "DOUBLE"),
        ("j", "JSON", "STRING"),
    ]


def test_tables_are_listed_once_each_at_their_first_line_without_ctes_and_files() -> None:
    sql = "WITH x AS (SELECT * FROM staging.tags)\nSELECT * FROM x\n"
    sql += "JOIN People p USING (id)\nJOIN 'a.csv' f USING (id)\nWHERE id IN (SELECT id FROM STAGING.tags)"
    assert references(sql) == (TableRef("staging.tags", 1), TableRef("main.people", 3))


def test_two_equal_names_are_refused_with_a_cte_as_without() -> None:
    wanted = [(1, "two columns are named a; give one of them another name with AS")]
    assert problems("SELECT id AS a, name AS a FROM people") == wanted
    assert problems("WITH x AS (SELECT id, name FROM people) SELECT id AS a, name AS a FROM x") == wanted


def test_the_same_expression_has_the_type_that_its_columns_give_it() -> None:
    columns = [
        done(f"SELECT [max(v + 1)] AS m FROM (SELECT {value} AS v FROM people)").columns
        for value in ("id", "score", "credit", "born", "id")
    ]
    assert [c[0].duckdb_type for c in columns if c] == [
        "INTEGER[]",
        "DOUBLE[]",
        "DECIMAL(13,2)[]",
        "DATE[]",
        "INTEGER[]",
    ]


def test_a_table_stands_as_the_view_schema__name() -> None:
    assert "FROM `staging__tags` AS `t`" in done("SELECT t.id FROM staging.tags t").spark_sql


@pytest.mark.parametrize(
    ("sql", "line", "part"),
    [
        ("SELECT 1;\nSELECT 2", 2, "exactly one SELECT; 2 statements"),
        ("", 1, "exactly one SELECT; none"),
        ("SELECT id\nFROM people\nWHERE FROM", 3, "syntax error"),
        ("SELECT id,\n nope\nFROM people", 2, 'column "nope" not found'),
        ("SELECT\n frobnicate(id) FROM people", 2, "frobnicate"),
        ("SELECT *\nFROM poeple", 2, "there is no table main.poeple; near names: main.people"),
        ("-- no\nCREATE TABLE x (i INT)", 1, "exactly one SELECT; CREATE was found"),
        ("DESCRIBE SELECT 1", 1, "exactly one SELECT; DESCRIBE was found"),
        ("PIVOT people ON name USING count(*)", 1, "PIVOT without named values"),
        ("SELECT id + name AS x FROM people", 1, "'+(INTEGER, VARCHAR)'. You might need to add explicit type casts."),
        (
            "SELECT id\nFROM people USING SAMPLE 10% (bernoulli, 7)",
            1,
            "a sample by a seed, which draws other rows in Spark, is not supported",
        ),
        (
            "SELECT id,\n seen - seen AS gap FROM people",
            2,
            "a value of type INTERVAL (cast it, or use it within one expression) is not supported",
        ),
        ("SELECT id,\n strftime(seen, '%Q') AS s FROM people", 2, "Failed to parse format specifier %Q"),
        ("SELECT a.id, b.id FROM people a, people b", 1, "two columns are named id"),
        ("SELECT * FROM\nread_text('/etc/passwd')", 2, "the table function read_text() is not supported"),
        ("SELECT id, \nname NOT SIMILAR TO '(?=x)' AS n FROM people", 2, "invalid perl operator: (?="),
    ],
)
def test_what_is_wrong_is_named_with_its_line(sql: str, line: int, part: str) -> None:
    (found,) = problems(sql)
    assert found[0] == line
    assert part in found[1]


def test_a_refusal_offers_sparks_dialect() -> None:
    ((_, message),) = problems("SELECT txid_current() AS n FROM people")
    assert (
        message == "txid_current() is not supported; rewrite it, or write the model in Spark SQL with `-- @dialect: "
        "spark`"
    )


@pytest.mark.parametrize(
    ("sql", "volatile", "ordered"),
    [
        ("SELECT id FROM people ORDER BY id", False, True),
        ("SELECT now() AS t FROM people", True, False),
        ("SELECT current_date AS d", True, False),
        ("SELECT * FROM (SELECT id FROM people ORDER BY id) LIMIT 2", False, False),
    ],
)
def test_volatile_functions_and_order_are_reported(sql: str, volatile: bool, ordered: bool) -> None:
    found = done(sql)
    assert (found.volatile, found.ordered) == (volatile, ordered)


def test_constants_are_computed_by_duckdb() -> None:
    assert "CAST('2024-02-05' AS DATE) AS `d`" in done("SELECT strptime('5.2.2024', '%d.%m.%Y')::DATE AS d").spark_sql


@pytest.mark.parametrize(
    "rows",
    [
        "range(10000000) AS t(x)",
        "generate_series(1, 10000000, 2) WITH ORDINALITY AS t(x, n)",
        "range(TIMESTAMP '2000-01-01', TIMESTAMP '2020-01-01', INTERVAL 1 SECOND) AS t(x)",
        "unnest(range(90000)) AS t(x)",
        "range(3) AS t(y), (SELECT list_transform(range(90000), lambda i: i + 1) AS x)",
    ],
)
def test_many_values_from_few_words_are_made_where_they_are_needed(rows: str) -> None:
    assert len(done(f"SELECT x FROM {rows}").spark_sql) < 500


@pytest.mark.parametrize(
    "day, text, moment",
    [
        ("10000-01-01", "10000-01-01", "10000-01-01 01:02:03.5"),
        ("9999-12-31", "9999-12-31", "9999-12-31 01:02:03.5"),
        ("0044-03-15 (BC)", "-0043-03-15", "-0043-03-15 01:02:03.5"),
        ("0001-12-31 (BC)", "0000-12-31", "0000-12-31 01:02:03.5"),
    ],
)
def test_days_that_python_does_not_know_are_constants_like_others(day: str, text: str, moment: str) -> None:
    sql = done(f"SELECT DATE '{day}' AS d, TIMESTAMP '{day} 01:02:03.5' AS t, '{day} 01:02:03.5+00'::TIMESTAMPTZ AS z")
    for part in (f"'{text}' AS DATE", f"'{moment}' AS TIMESTAMP_NTZ", f"'{moment}+00:00' AS TIMESTAMP_LTZ"):
        assert f"CAST({part})" in sql.spark_sql


def test_a_day_without_end_is_refused_with_a_way_out() -> None:
    told = "an infinite DATE (write a day that is far enough, such as DATE '9999-12-31') is not supported"
    assert problems("SELECT 1 AS a,\n'infinity'::DATE AS d") == [(2, told)]


def test_columns_without_a_name_of_their_own_may_stand_below_those_that_have_one() -> None:
    assert [c.name for c in done("SELECT 1 AS a, 'x' AS b UNION ALL SELECT NULL, NULL").columns or ()] == ["a", "b"]


def test_a_name_that_would_be_a_setting_is_named_with_a_way_out() -> None:
    told = "the column ${y} has ${ in its name, which is not supported: give it another with AS"
    assert problems('SELECT 1 AS "${y}"') == [(1, told)]


def test_expressions_of_one_projection_are_one_call_over_each_column_once() -> None:
    found = done(
        "SELECT id, reverse(name) AS n, json_object('p', payload, 'n', name) j, reverse(name) AS m FROM people"
    )
    (call,) = found.calls
    assert call.inputs == (("i0", "VARCHAR"), ("i1", "JSON"))
    assert call.expressions == (
        ("reverse(i0)", "VARCHAR", "VARCHAR"),
        ("json_object('p', i1, 'n', i0)", "JSON", "VARCHAR"),
    )
    assert call.places == ((1, "reverse(name)"), (1, "json_object('p', payload, 'n', name)"))
    of = f"{call.name}(`people`.`name`, `people`.`payload`)"
    assert f"`people`.`id` AS `id`, {of}.f0 AS `n`, {of}.f1 AS `j`, {of}.f0 AS `m`" in found.spark_sql


@pytest.mark.parametrize(
    ("sql", "text"),
    [
        ("SELECT id FROM people WHERE id > 3 AND born >= '2024-01-01'", "(`people`.`id` > 3)"),
        (
            "SELECT id FROM people WHERE credit BETWEEN 1 AND 2.5 OR name IN ('a', 'b')",
            "(`people`.`name` IN ('a', 'b'))",
        ),
        (
            "SELECT coalesce(name, 'x') AS n, CASE WHEN id = 1 THEN score + 1.0::DOUBLE END AS s FROM people",
            "coalesce(",
        ),
        ("SELECT id FROM people WHERE seen >= DATE '2024-01-01' + INTERVAL 1 MONTH", "CAST('2024-02-01 00:00:00' AS"),
        ("SELECT p.id FROM people p JOIN staging.tags t ON p.id = t.id", "ON (`p`.`id` = `t`.`id`)"),
    ],
)
def test_plain_expressions_are_sparks_own(sql: str, text: str) -> None:
    found = done(sql)
    assert (found.calls, text in found.spark_sql) == ((), True)


def test_a_condition_is_parted_so_that_what_is_plain_stays_sparks() -> None:
    found = done("SELECT id FROM people WHERE id > 3 AND name GLOB 'a*' AND name::INTEGER > 2")
    (call,) = found.calls
    assert [sql for sql, _, _ in call.expressions] == ["CASE WHEN ((i0 ~~~ 'a*')) THEN ((CAST(i0 AS INTEGER) > 2)) END"]
    assert f"WHERE (`people`.`id` > 3) AND {call.name}(`people`.`name`).f0" in found.spark_sql


def test_a_join_on_computed_keys_stays_one_of_equal_keys() -> None:
    text = done("SELECT p.id FROM people p LEFT JOIN staging.tags t ON reverse(p.name) = trim(t.tag)").spark_sql
    assert re.search(r"ON \(duck_\w+\(`p`\.`name`\)\.f0 = duck_\w+\(`t`\.`tag`\)\.f0\)", text)


def test_a_file_is_described_from_its_content(tmp_path: Path) -> None:
    (tmp_path / "in.csv").write_text("id;when\n1;2024-01-02\n")
    found = done("SELECT * FROM 'in.csv'", tmp_path)
    assert [(c.name, c.duckdb_type) for c in found.columns or ()] == [("id", "BIGINT"), ("when", "DATE")]
    assert [(f.format, f.paths) for f in found.files] == [("csv", (str(tmp_path / "in.csv"),))]
    assert f"`{found.files[0].view}`" in found.spark_sql


@pytest.mark.parametrize(
    ("path", "part"),
    [
        ("../secret.csv", "lies outside the project folder"),
        ("/etc/passwd.csv", "lies outside the project folder"),
        ("s3://bucket/x.csv", "as a connection in ondatra.toml"),
        ("missing.csv", 'No files found that match the pattern "missing.csv"'),
    ],
)
def test_files_outside_the_project_and_missing_files_are_refused_with_their_line(
    tmp_path: Path, path: str, part: str
) -> None:
    ((line, message),) = problems(f"SELECT *\nFROM read_csv('{path}')", tmp_path)
    assert line == 2
    assert part in message


def test_a_link_out_of_the_project_is_refused(tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    (tmp_path / "project").mkdir()
    (tmp_path / "out" / "x.csv").write_text("a\n1\n")
    (tmp_path / "project" / "x.csv").symlink_to(tmp_path / "out" / "x.csv")
    ((_, message),) = problems("FROM 'x.csv'", tmp_path / "project")
    assert "outside the project folder" in message


def test_an_option_that_is_not_known_is_named(tmp_path: Path) -> None:
    (tmp_path / "x.csv").write_text("a\n1\n")
    ((_, message),) = problems("FROM read_csv('x.csv', store_rejects = true)", tmp_path)
    assert message.startswith("read_csv(): the option store_rejects is not supported; supported: all_varchar")


def test_sparks_dialect_passes_through_with_tables_mapped_and_json_added() -> None:
    found = done(
        "SELECT /* kept */ p.id, json_object('n', name, 't', json_group_array(t.tag)) AS j\nFROM people p JOIN "
        "staging.tags t ON t.id = p.id GROUP BY ALL",
        dialect="spark",
    )
    assert found.columns is None
    assert found.spark_sql.startswith("SELECT /* kept */ p.id, /*json*/concat('{', ")
    assert found.spark_sql.endswith("\nFROM `main__people` p JOIN `staging__tags` t ON t.id = p.id GROUP BY ALL")
    assert found.tables == ("main.people", "staging.tags")


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT reflect('java.lang.System', 'getenv')",
        "SELECT java_method('a', 'b')",
        "SELECT try_reflect('a', 'b')",
        "SELECT * FROM parquet.`/etc`",
        "SELECT * FROM csv.`x.csv`",
        "SELECT TRANSFORM(id) USING 'cat' AS x FROM people",
        "SELECT 1; SELECT 2",
        "DROP TABLE people",
        "INSERT INTO people SELECT 1",
    ],
)
def test_sparks_dialect_refuses_what_could_leave(sql: str) -> None:
    assert problems(sql, dialect="spark")


def test_two_hundred_models_take_less_than_a_second() -> None:
    queries = [
        f"SELECT id, upper(name) AS n{i}, score / {i + 1} AS s, json_object('id', id, 'tag', tag) AS j FROM people "
        f"JOIN staging.tags USING (id) WHERE id > {i}"
        for i in range(200)
    ]
    done(queries[0] + " AND true")
    start = time.process_time()
    for sql in queries:
        done(sql)
    assert time.process_time() - start < 1.5


def test_a_part_of_the_parse_tree_that_is_not_known_is_refused_with_duckdbs_version(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    import duckdb

    from runtime.sql.asking import keys

    monkeypatch.setattr(keys, "KEYS", keys.KEYS - {"where_clause"})
    assert done("SELECT id, 1 AS never_seen FROM people").tables == ("main.people",)
    ((line, message),) = problems("SELECT id, 2 AS never_seen FROM people\nWHERE id > 1")
    assert line == 1 and f"the part 'where_clause' of DuckDB {duckdb.__version__}'s parse tree" in message
