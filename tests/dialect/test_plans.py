"""What Spark makes of a translation: columns are pruned, conditions pushed down, joins stay equi-joins, and DuckDB is
asked once for the expressions of a projection."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from runtime.lake import effort
from runtime.model import Column
from runtime.sources import plans
from runtime.sources.columns import columns_of
from runtime.sql import translate

pytestmark = pytest.mark.slow
COLUMNS = (Column("id", "BIGINT", "BIGINT"), Column("name", "VARCHAR", "STRING"), Column("note", "VARCHAR", "STRING"))


#: A value of each type that Spark sends through Arrow, beside NULL.
VALUES = {
    "b": "true",
    "i1": "1Y",
    "i2": "2S",
    "i4": "3",
    "i8": "4L",
    "f4": "CAST('NaN' AS FLOAT)",
    "f8": "-0.0D",
    "n": "CAST(12345678901234567890 AS DECIMAL(38, 4))",
    "s": "'straße'",
    "x": "X'00FF'",
    "d": "DATE'1500-02-28'",
    "t": "TIMESTAMP_NTZ'1500-02-28 01:02:03.000004'",
    "z": "TIMESTAMP_LTZ'2024-03-31 01:30:00Z'",
    "h": "TIME'01:02:03.000004'",
    "l": "array(1, NULL)",
    "m": "map('a', array(named_struct('k', 1.5BD)), 'b', NULL)",
    "r": "named_struct('a', 1, 'b', array('x', NULL))",
}
#: The columns, as many at a time as pass along with a call.
ALONG = [", ".join(list(VALUES)[at : at + 9]) for at in range(0, len(VALUES), 9)]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("plans")


@pytest.fixture(scope="module")
def spark(folder: Path) -> Iterator[Any]:
    from runtime.lake.spark import session

    spark = session().newSession()
    spark.sql("SELECT id, CAST(id AS STRING) AS name, 'x' AS note FROM range(10)").write.parquet(f"{folder}/t.parquet")
    viewed(spark, folder)
    yield spark


@pytest.fixture(scope="module")
def plain(spark: Any, folder: Path) -> Any:
    """A session whose optimizer is Spark's."""
    plain = spark.newSession()
    viewed(plain, folder)
    return plain


def viewed(spark: Any, folder: Path) -> None:
    effort.change(spark, effort.settings(0))
    spark.read.parquet(f"{folder}/t.parquet").createOrReplaceTempView("main__t")
    values = ", ".join(f"if(id = 1, NULL, {value}) AS {name}" for name, value in VALUES.items())
    spark.sql(f"SELECT id, CAST(id AS STRING) AS name, {values} FROM range(3)").createOrReplaceTempView("main__v")


def opened(spark: Any, sql: str) -> Any:
    known = {"main.t": COLUMNS, "main.v": columns_of(spark.table("main__v").schema)}
    return plans.open_query(spark, translate(sql, dialect="duckdb", tables=known, project_dir="/nowhere"))


def plan(spark: Any, sql: str) -> str:
    return str(opened(spark, sql)._jdf.queryExecution().executedPlan().toString())


def test_a_scan_reads_the_columns_that_are_used_and_gets_the_plain_conditions(spark: Any) -> None:
    found = plan(spark, "SELECT reverse(name) AS n FROM t WHERE id > 3 AND name GLOB '1*'")
    assert "GreaterThan(id,3)" in found
    assert "ReadSchema: struct<id:bigint,name:string>" in found


def test_a_condition_on_the_begin_of_a_text_reaches_the_files(spark: Any) -> None:
    found = plan(spark, "SELECT id FROM t WHERE name LIKE 'a%' AND length(note) > 2")
    assert ("StringStartsWith(name,a)" in found, "MapInArrow" in found) == (True, False)


def test_a_search_for_what_has_no_large_and_small_letters_reaches_the_files(spark: Any) -> None:
    found = plan(spark, "SELECT id FROM t WHERE name ILIKE '%9-%' AND upper(note) = 'X'")
    assert ("StringContains(name,9-)" in found, "MapInArrow" in found) == (True, False)


def test_the_expressions_of_a_projection_are_asked_for_at_once(spark: Any) -> None:
    found = plan(spark, "SELECT reverse(name) AS a, trim(name) AS b, len(note) AS c, reverse(name) || '!' AS d FROM t")
    assert (found.count("MapInArrow"), found.count("Python")) == (1, 0)


def test_conditions_and_expressions_of_one_table_are_one_pass_that_sends_and_gives_what_is_needed(spark: Any) -> None:
    found = plan(spark, "SELECT n || '!' AS n FROM (SELECT reverse(name) AS n, id FROM t WHERE trim(note) = 'x')")
    sent = re.findall(r"MapInArrow duckdb\((.*?)\), \[(.*?)\]", re.sub(r"#\d+L?", "", found))
    assert (sent, "Python" in found) == ([("note, name", "c0")], False)


def test_spark_makes_no_list_of_a_group_and_one_pass_answers_for_all_its_aggregates(spark: Any) -> None:
    found = plan(
        spark,
        "SELECT name, median(id) AS m, mode(note) AS o, count(*) AS n, sum(id) AS s, count(DISTINCT note) AS c FROM t "
        "GROUP BY name HAVING n > 1 AND median(id) > sum(id)",
    )
    assert "Window" not in found
    assert (found.count("MapInArrow"), "collect_list" in found, "Aggregate" in found) == (1, False, False)


def test_a_subquery_over_a_computed_column_of_the_query_around_takes_passes(spark: Any) -> None:
    below = "SELECT max(note) FROM t WHERE id = k AND trim(note || u) > 'a'"
    assert "ArrowEvalPython" not in plan(spark, f"SELECT id AS k, trim(name) AS u, ({below}) AS m FROM t")


@pytest.mark.parametrize(
    "window",
    ["median(id) OVER (PARTITION BY name)", "mode(note) OVER (PARTITION BY trim(name) ORDER BY id)"]
    + ["sum(id) OVER (ORDER BY name GROUPS 1 PRECEDING)", "count(DISTINCT id) OVER (PARTITION BY name)"],
)
def test_no_row_has_the_list_of_its_partition(spark: Any, window: str) -> None:
    found = plan(spark, f"SELECT id, {window} AS m, trim(note) AS n FROM t")
    assert ("MapInArrow" in found, "collect_list" in found, "Window" in found) == (True, False, False)


def test_an_asof_join_looks_at_each_row_once(spark: Any) -> None:
    found = plan(spark, "SELECT a.id, b.note FROM t a ASOF JOIN t b ON trim(a.name) = b.name AND a.id >= b.id")
    assert (found.count("Window ["), re.findall(r"\w+Join", found)) == (1, [])


def test_many_rows_of_values_are_no_part_of_sparks_text(spark: Any) -> None:
    values = ", ".join(f"({i}, 'name {i}')" for i in range(2_000))
    sql = f"SELECT count(*) AS n, max(b) AS m FROM (VALUES {values}) v(a, b) WHERE a > 5"
    done = translate(sql, dialect="duckdb", tables={}, project_dir="/nowhere")
    assert len(done.spark_sql) < 2_000
    assert [tuple(row) for row in plans.open_query(spark, done).collect()] == [(1_994, "name 999")]


def test_a_join_on_computed_keys_is_an_equi_join(spark: Any) -> None:
    found = plan(spark, "SELECT a.id FROM t a JOIN t b ON trim(a.name) = reverse(b.name) AND a.id = b.id")
    assert "HashJoin" in found or "SortMergeJoin" in found
    assert "NestedLoop" not in found and "CartesianProduct" not in found and "ArrowEvalPython" not in found


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT a.id, (SELECT b.id FROM t b WHERE b.name = a.name ORDER BY b.note DESC LIMIT 1) AS n FROM t a",
        "SELECT a.id, l.id AS n FROM t a, LATERAL (SELECT id FROM t b WHERE b.id < a.id ORDER BY note DESC LIMIT 2) l",
        "SELECT a.id, b.id AS n FROM t a ASOF JOIN t b ON a.note >= b.note AND a.id + b.id = 3",
    ],
)
def test_the_first_of_the_rows_that_belong_to_one_are_taken_in_their_order(spark: Any, sql: str) -> None:
    numbered = re.findall(r"Window \[row_number\(\) windowspecdefinition\((.*?), specified", plan(spark, sql))
    assert ["DESC" in one for one in numbered] == [True]


def test_an_aggregate_over_columns_of_the_query_around_is_an_equi_join(spark: Any) -> None:
    found = plan(spark, "SELECT a.id, (SELECT sum(b.id * a.id) FROM t b WHERE b.name = a.name) AS s FROM t a")
    assert "NestedLoop" not in found and "CartesianProduct" not in found


def test_without_duckdb_no_worker_of_python_is_asked(spark: Any) -> None:
    assert "Python" not in plan(spark, "SELECT id + id AS a, coalesce(name, 'x') AS b FROM t WHERE name IN ('1', '2')")


def test_java_compiles_the_code_of_a_projection_however_wide(spark: Any) -> None:
    told = spark._jvm.java.lang.management.ManagementFactory.getRuntimeMXBean().getInputArguments()
    assert "-XX:-DontCompileHugeMethods" in list(told)


def test_a_model_that_only_hands_on_many_columns_keeps_them_from_the_worker(spark: Any) -> None:
    found = plan(spark, "SELECT *, reverse(name) AS u FROM v")
    assert "ArrowEvalPython" in found and "MapInArrow" not in found


@pytest.mark.parametrize(
    "sql",
    [
        *(f"SELECT {names}, reverse(name) AS u FROM v ORDER BY id" for names in ALONG),
        "SELECT count(*) AS n FROM v WHERE name GLOB '*1'",
        "SELECT reverse(a.name) AS u, b.l FROM v a LEFT JOIN v b ON trim(a.s) = reverse(b.s) AND b.i4 > 0 ORDER BY 1",
        "SELECT trim(name) AS k, sum(i4) AS n, max(reverse(s)) AS m FROM v GROUP BY 1 HAVING len(k) = 1 ORDER BY 1",
        "SELECT u, row_number() OVER (ORDER BY u DESC) AS n FROM (SELECT reverse(name) AS u FROM v) ORDER BY trim(u)",
        "SELECT reverse(name) AS u FROM v UNION ALL SELECT trim(s) FROM v WHERE len(s) > 0 ORDER BY 1 NULLS LAST",
        "SELECT name FROM v WHERE reverse(name) IN (SELECT trim(name) FROM v WHERE len(name) = 1) ORDER BY name",
        "SELECT reverse(name) AS u, (SELECT max(trim(w.s)) FROM v w WHERE w.id = v.id) AS l FROM v ORDER BY 1 LIMIT 2",
        "SELECT i4 AS k, list(name ORDER BY id) AS l, count(*) AS n, median(id) + max(id) AS m, sum(i8) FILTER (WHERE "
        "id > 0) AS s FROM v GROUP BY k HAVING count(*) > 1 ORDER BY mode(name)",
        "SELECT b, i1, i2, i8, n, s, d, t, z, list(name) AS l, any_value(r) AS a FROM v GROUP BY ALL ORDER BY l",
        "SELECT f4, f8, x, h, l, r, list(name) AS g, max(f8) AS a FROM v GROUP BY ALL HAVING mode(id) >= 0 ORDER BY g",
        "SELECT list(name) FILTER (WHERE id <> 1) AS l, mode(m) AS m, max(s) AS s, count(i4) AS c, count(*) n FROM v",
        "SELECT list(name) AS l, median(i4) AS m, sum(i4) AS s, count(s) AS c, count(*) AS n FROM v WHERE id > 9",
        "SELECT id, name, t, m['a'] AS h, median(i4) OVER (PARTITION BY s, r, l ORDER BY id GROUPS 1 PRECEDING) AS a, "
        "mode(name) OVER (PARTITION BY s, r, l) AS b, row_number() OVER (PARTITION BY s, r, l) AS c FROM v ORDER BY id",
        "SELECT id, median(f8) OVER (ORDER BY id) AS a, list(name) OVER (PARTITION BY f8, f4, m) AS b FROM v ORDER BY "
        "id",
        "SELECT trim(name) AS u, median(id) OVER (PARTITION BY b) AS o FROM v WHERE id > 0 QUALIFY o > 0 ORDER BY u",
        "SELECT l, m, r, list_transform(l, lambda x: x + 1) AS f, r.b[1:1] AS g, m['a'] AS h FROM v ORDER BY id",
    ],
)
def test_the_answers_are_those_of_the_plain_way(
    spark: Any, plain: Any, monkeypatch: pytest.MonkeyPatch, sql: str
) -> None:
    ours = opened(spark, sql)
    monkeypatch.setenv("ONDATRA_PLAIN_BUILD", "1")
    wanted = opened(plain, sql)

    kinds = [
        set(re.findall("MapInArrow|ArrowEvalPython", f._jdf.queryExecution().executedPlan().toString()))
        for f in (ours, wanted)
    ]
    assert kinds == [{"MapInArrow"}, {"ArrowEvalPython"}]
    assert (str(ours.collect()), ours.schema) == (str(wanted.collect()), wanted.schema)
