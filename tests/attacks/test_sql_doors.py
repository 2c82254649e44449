"""SQL: what is evaluated at check time reaches nothing, and Spark runs nothing but a SELECT over the model's tables."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pytest

from runtime.model import Column
from runtime.sql import SqlProblems, Translated, translate
from runtime.sql.asking.gate import gate
from runtime.sql.asking.said import GateError

PEOPLE = (
    Column("id", "INTEGER", "INT"),
    Column("at", "TIMESTAMP", "TIMESTAMP_NTZ"),
    Column("l", "INTEGER[]", "ARRAY<INT>"),
)


def done(sql: str, project: Path = Path("/nowhere"), dialect: str = "duckdb") -> Translated:
    return translate(sql, dialect=dialect, tables={"main.people": PEOPLE}, project_dir=project)


def refused(sql: str, project: Path = Path("/nowhere"), dialect: str = "duckdb") -> tuple[int, str]:
    with pytest.raises(SqlProblems) as caught:
        done(sql, project, dialect)
    return caught.value.problems[0]


# ---- constants are constants


@pytest.mark.parametrize(
    ("argument", "found"),
    [
        ("(SELECT string_agg(column0, '|') FROM read_csv('/etc/passwd', header=false, delim='~'))", "a subquery"),
        ("ARRAY(SELECT file FROM glob('/etc/*'))", "a subquery"),
        ("'a' || (SELECT content FROM read_text('/etc/hostname'))", "a subquery"),
        ("name", "the column name"),
        ("current_setting('home_directory')", "current_setting()"),
        ("getvariable('x')", "getvariable()"),
    ],
)
def test_a_path_is_a_constant(tmp_path: Path, argument: str, found: str) -> None:
    line, message = refused(f"SELECT *\nFROM read_csv({argument})", tmp_path)
    if "glob" not in argument and "read_text" not in argument:  # refused by name before
        assert message == f"read_csv(): the path must be a constant; found {found}: write the value itself"
    assert line == 2 and (tmp_path / "x").exists() is False


def test_an_option_is_a_constant(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("id\n1\n")
    secret = "(SELECT string_agg(column0, '|') FROM read_csv('/etc/hostname', header = false))"
    told = "read_csv(): the option nullstr must be a constant; found a subquery: write the value itself"
    assert refused(f"FROM read_csv('a.csv', nullstr = {secret})", tmp_path) == (1, told)


@pytest.mark.parametrize(
    "value",
    ["'a' || '.csv'", "['a.csv', 'a.csv']", "concat('a', '.csv')", "strftime(DATE '2024-01-01', 'a') || '.csv'"],
)
def test_what_is_computed_from_constants_alone_is_one(tmp_path: Path, value: str) -> None:
    (tmp_path / "a.csv").write_text("id\n1\n")
    assert [c.name for c in done(f"FROM read_csv({value})", tmp_path).columns or ()] == ["id"]


@pytest.mark.parametrize(
    "attempt",
    [
        "FROM read_csv('/etc/hostname')",
        "FROM read_text('/etc/hostname')",
        "FROM glob('/etc/*')",
        "ATTACH '/tmp/x.db' AS x",
        "COPY (SELECT 1) TO '/tmp/x.csv'",
        "INSTALL httpfs",
        "SET enable_external_access = true",
        "SET memory_limit = '8GB'",
        "SET allow_community_extensions = true",
    ],
)
def test_the_duckdb_of_the_check_has_no_way_out(attempt: str) -> None:
    with pytest.raises(GateError):
        gate().run(attempt)


def test_a_question_has_a_limit_of_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("runtime.sql.asking.gate.SECONDS", 0.5)
    started = time.monotonic()
    with pytest.raises(GateError, match="takes more than 0.5 s"):
        gate().run("SELECT count(*) FROM range(1000000000000) WHERE hash(range) = 1")
    assert time.monotonic() - started < 30


# ---- one reading of a text

REFLECT = 'reflect("java.lang.System", "getenv", "HOME")'


@pytest.mark.parametrize(
    ("sql", "line"),
    [
        (f"SELECT 'x' -- \\\n || '\n || {REFLECT} -- '\n AS a", 1),
        (f"SELECT 1 /* /* */ , {REFLECT} AS a -- */ */", 1),
        (f"SELECT\n {REFLECT} AS a", 2),
        ("SELECT `reflect`('a', 'b') AS a", 1),
        ("SELECT reflect /* x */ ('a', 'b') AS a", 1),
        ("SELECT TRANSFORM(1) USING r'id' AS (a STRING)", 1),
        ("SELECT TRANSFORM(1) USING 'id' AS (a STRING)", 1),
        ("FROM people MAP id USING 'id' AS a", 1),
        ("SELECT * FROM text.`/etc/passwd`", 1),
        ("SELECT * FROM `text`.`/etc/passwd`", 1),
        ("SELECT * FROM delta.`/tmp/x`", 1),
        ("SELECT input_file_name() AS a FROM people", 1),
        ("SELECT from_xml('<a/>', 'a INT', map('rowValidationXSDPath', '/etc/passwd')) AS a", 1),
        ("SELECT IDENTIFIER('reflect')('a', 'b') AS a", 1),
        ("SELECT '${env:HOME}' AS a", 1),
        ("SELECT $$ ' $$, 1 AS a -- '", 1),
        ("SELECT 'a' AS a\r, reflect('a', 'b')", 1),
        ("SET spark.x = 1", 1),
        ("CREATE TABLE x (a INT)", 1),
        ("EXECUTE IMMEDIATE 'SELECT 1'", 1),
    ],
)
def test_spark_sql_that_could_leave_is_refused_without_spark(sql: str, line: int) -> None:
    assert refused(sql, dialect="spark")[0] == line


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT id, 'it''s' AS a, \"x\" AS b, r'\\d' AS c FROM people -- a comment\n/* another */ WHERE `id` > 1",
        "SELECT /*+ BROADCAST(people) */ id FROM people",
        "SELECT id, 'a\\'b -- c' AS x FROM people JOIN people AS p USING (id)",
    ],
)
def test_what_everyone_reads_alike_passes(sql: str) -> None:
    assert done(sql, dialect="spark").tables == ("main.people",)


# ---- names and forms


def test_every_reserved_word_that_is_a_column_is_named_with_the_way_out() -> None:
    words = gate().run("SELECT keyword_name FROM duckdb_keywords() WHERE keyword_category = 'reserved'")
    silent = set()
    for word in [*(w for (w,) in words), "at"]:
        try:
            done(f"SELECT id,\n {word} FROM people")
            silent.add(word)
        except SqlProblems as error:
            if "is a reserved word; where it is a name, write" not in str(error):
                silent.add(word)
    assert 'AT is a reserved word; where it is a name, write "at"' in refused("SELECT id, at FROM people")[1]
    # these are values, or begin another SELECT
    assert silent == {"true", "false", "null", "default", "union", "except", "intersect"}


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT " + "CASE WHEN id = 1 THEN 1 ELSE " * 900 + "0" + " END" * 900 + " AS x FROM people",
        "SELECT list_transform(l, lambda x: (SELECT max(b.id) FROM people b WHERE b.id = x)) AS m FROM people",
    ],
)
def test_what_is_not_translated_is_a_problem_of_its_line(sql: str) -> None:
    line, message = refused(sql)
    assert line == 1 and message


def test_what_the_translation_itself_fails_over_is_told_at_its_line(monkeypatch: pytest.MonkeyPatch) -> None:
    from runtime.sql.scalar import rowwise

    def fails(*_: Any) -> Any:
        raise KeyError("odd")

    monkeypatch.setattr(rowwise, "write", fails)
    line, message = refused("SELECT id,\n upper(id::VARCHAR || 'unseen') AS u FROM people")
    assert (line, message.partition("(")[0]) == (2, "this form of upper ")
    assert "KeyError: 'odd'; please report it" in message


# ---- Spark's own word


@pytest.mark.slow
@pytest.mark.parametrize(
    "sql",
    [
        "SELECT TRANSFORM(1) USING r'id' AS (a STRING)",
        f"SELECT 'x' -- \\\n || '\n || {REFLECT} -- '\n AS a",
        "SELECT (SELECT max(value) FROM text.`/etc/passwd`) AS a",
        "WITH x AS (SELECT * FROM csv.`/etc/passwd`) SELECT * FROM x",
        "SELECT id FROM main__people LATERAL VIEW reflect('a', 'b') z AS y",
        "SELECT system.builtin.reflect('a', 'b') AS a",
        "SELECT IDENTIFIER('reflect')('a', 'b') AS a",
        "SELECT * FROM IDENTIFIER(concat('main__', 'people'))",
        "SELECT * FROM python_worker_logs()",
        "SELECT input_file_name() AS a FROM main__people",
        "SELECT * FROM main__others",
        "FROM main__people INSERT INTO main__people SELECT id",
        "SET spark.sql.runSQLOnFiles = true",
        "SELECT * FROM delta.`/tmp/x`",
        "CREATE TEMPORARY FUNCTION f AS 'x'",
        "SHOW TABLES",
        "SELECT '${env:HOME}' AS a",
    ],
)
def test_spark_runs_nothing_that_is_not_on_the_list(view: Any, sql: str) -> None:
    from runtime.sources.plans import open_query

    with pytest.raises(SqlProblems, match="is not allowed|none of the tables"):
        open_query(view, Translated(sql, None, (), ("main.people",), False, False))


@pytest.mark.slow
@pytest.mark.parametrize(
    "sql",
    [
        "WITH x AS (SELECT id FROM main__people) SELECT max(id) OVER (ORDER BY id) AS m FROM x WHERE id IN (SELECT 1)",
        "SELECT transform(array(1), x -> x + 1) AS a, current_date() AS d, CAST(id AS DECIMAL(9,2)) FROM main__people",
        "WITH RECURSIVE r(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM r WHERE n < 3) SELECT * FROM r",
        "SELECT id, y FROM main__people LATERAL VIEW explode(array(1, 2)) z AS y",
        "SELECT t.id, u.q FROM main__people t LEFT JOIN LATERAL (SELECT t.id + 1 AS q) u ON true",
        "SELECT * FROM VALUES (1, 'a'), (2, 'b') AS v(a, b) UNION ALL SELECT id, 'c' FROM main__people",
        "SELECT DISTINCT id FROM main__people GROUP BY GROUPING SETS ((id), ()) ORDER BY 1 LIMIT 3 OFFSET 1",
        "SELECT * FROM main__people PIVOT (count(1) FOR id IN (1, 2))",
        "SELECT * FROM range(3)",
        "FROM main__people |> WHERE id = 1 |> SELECT id + 1 AS n",
        "SELECT id FROM main__people QUALIFY row_number() OVER (ORDER BY id) = 1",
    ],
)
def test_spark_runs_what_is_a_select_over_the_models_tables(view: Any, sql: str) -> None:
    from runtime.sources.plans import open_query

    open_query(view, Translated(sql, None, (), ("main.people",), False, False)).collect()


@pytest.fixture
def view(spark: Any) -> Any:
    spark.sql("SELECT 1 AS id").createOrReplaceTempView("main__people")
    return spark


@pytest.mark.slow
def test_the_jvm_knows_nothing_of_the_installs_secrets(spark: Any) -> None:
    names = set(spark._jvm.System.getenv().keySet())
    own = {n for n in names if n.startswith(("ONDATRA_", "DJANGO_", "AWS_")) or n in ("DATABASE_URL", "REDIS_URL")}
    assert own == set() and "PATH" in names


@pytest.mark.slow
def test_a_list_of_the_row_is_unnested_beside_it(view: Any) -> None:
    from runtime.sources.plans import open_query

    sql = "SELECT p.id, u.x FROM people p LEFT JOIN LATERAL (SELECT unnest(p.l) AS x) u ON true ORDER BY ALL"
    view.sql("SELECT id, l FROM VALUES (1, array(5, 6)), (2, array()), (3, NULL) AS v(id, l)").selectExpr(
        "id", "CAST(l AS ARRAY<INT>) AS l", "CAST(NULL AS TIMESTAMP_NTZ) AS at"
    ).createOrReplaceTempView("main__people")
    assert sorted(map(tuple, open_query(view, done(sql)).collect()), key=str) == [(1, 5), (1, 6), (2, None), (3, None)]
