"""What Spark makes of a translation: columns are pruned, conditions pushed down, joins stay equi-joins, and DuckDB is
asked once for the expressions of a projection."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from runtime.model import Column
from runtime.sources import plans
from runtime.sql import translate

pytestmark = pytest.mark.slow
COLUMNS = (Column("id", "BIGINT", "BIGINT"), Column("name", "VARCHAR", "STRING"), Column("note", "VARCHAR", "STRING"))


@pytest.fixture(scope="module")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    from runtime.lake.spark import session

    path = str(tmp_path_factory.mktemp("plans") / "t.parquet")
    spark = session().newSession()
    spark.sql("SELECT id, CAST(id AS STRING) AS name, 'x' AS note FROM range(10)").write.parquet(path)
    spark.read.parquet(path).createOrReplaceTempView("main__t")
    yield spark


def plan(spark: Any, sql: str) -> str:
    translated = translate(sql, dialect="duckdb", tables={"main.t": COLUMNS}, project_dir="/nowhere")
    return str(plans.open_query(spark, translated)._jdf.queryExecution().executedPlan().toString())


def test_a_scan_reads_the_columns_that_are_used_and_gets_the_plain_conditions(spark: Any) -> None:
    found = plan(spark, "SELECT upper(name) AS n FROM t WHERE id > 3 AND name ILIKE '1%'")
    assert "GreaterThan(id,3)" in found
    assert "ReadSchema: struct<id:bigint,name:string>" in found


def test_the_expressions_of_a_projection_are_asked_for_at_once(spark: Any) -> None:
    found = plan(spark, "SELECT upper(name) AS a, lower(name) AS b, len(note) AS c, upper(name) || '!' AS d FROM t")
    assert (found.count("ArrowEvalPython"), found.count("pythonUDF0#")) == (1, found.count("pythonUDF"))


def test_a_join_on_computed_keys_is_an_equi_join(spark: Any) -> None:
    found = plan(spark, "SELECT a.id FROM t a JOIN t b ON lower(a.name) = upper(b.name) AND a.id = b.id")
    assert "HashJoin" in found or "SortMergeJoin" in found
    assert "NestedLoop" not in found and "CartesianProduct" not in found


def test_without_duckdb_no_worker_of_python_is_asked(spark: Any) -> None:
    assert "Python" not in plan(spark, "SELECT id + id AS a, coalesce(name, 'x') AS b FROM t WHERE name IN ('1', '2')")
