"""Models with thousands of values, or deep expressions: they are checked in a moment, or refused with what to do."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from runtime.model import Column
from runtime.sql import SqlProblems, translate
from runtime.sql.asking.gate import Gate
from runtime.sql.model import Translated

TABLES = {"main.t": (Column("id", "BIGINT", "BIGINT"), Column("s", "VARCHAR", "STRING"))}


def translated(sql: str) -> Translated:
    return translate(sql, dialect="duckdb", tables=TABLES, project_dir="/nowhere")


@pytest.fixture
def questions(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """What DuckDB is asked meanwhile."""
    asked: list[str] = []
    run = Gate.run

    def noted(gate: Gate, sql: str, *args: object, seconds: float | None = None) -> object:
        asked.append(sql)
        return run(gate, sql, *args, seconds=seconds)

    monkeypatch.setattr(Gate, "run", noted)
    yield asked


@pytest.mark.parametrize(("value", "written"), [("{}", "{}L"), ("{}.5", "{}.5BD"), ("{} + 1", "{}L"), ("'{}'", "'{}'")])
def test_thousands_of_values_are_few_questions(questions: list[str], value: str, written: str) -> None:
    values = ", ".join(value.format(n) for n in range(7_000, 9_000))
    column = "s" if "'" in value else "id"
    made = translated(f"SELECT id FROM t WHERE {column} IN ({values})")
    assert len(questions) < 30 and made.columns == (TABLES["main.t"][0],)
    assert "7009" in made.spark_sql or made.calls


def test_thousands_of_dates_and_texts_are_few_questions(questions: list[str]) -> None:
    rows = ", ".join(f"({n}, DATE '2024-01-01' + {n}, 'x' || {n})" for n in range(900))
    made = translated(f"SELECT * FROM (VALUES {rows}) AS v(a, b, c)")
    assert (len(questions) < 60, "CAST('2026-06-17' AS DATE), 'x898'" in made.spark_sql) == (True, True)


def test_a_value_among_thousands_is_no_alias_that_grew() -> None:
    values = ", ".join(f"'{n}'" for n in range(6_000))
    assert len(translated(f"SELECT s IN ({values}) AS known FROM t").spark_sql) < 100_000


def test_what_is_nested_too_deeply_is_told_with_its_line() -> None:
    with pytest.raises(SqlProblems) as caught:
        translated("SELECT\n" + "replace(" * 150 + "s" + ", 'a', 'b')" * 150 + " AS x FROM t")
    assert str(caught.value) == (
        "line 2: an expression nested so deeply is not supported; split it over several models"
    )


def test_the_filter_of_a_window_is_sparks() -> None:
    made = translated("SELECT sum(id) FILTER (WHERE s = 'x') OVER (ORDER BY id) AS n FROM t")
    assert ("sum(CAST(CASE WHEN (`t`.`s` = 'x') THEN `t`.`id` END" in made.spark_sql, made.calls) == (True, ())


def test_a_series_by_recursion_is_one_call_of_duckdb() -> None:
    series = "SELECT DATE '2024-01-01' AS d UNION ALL SELECT (d + 1)::DATE FROM days WHERE d < DATE '2026-12-31'"
    made = translated(f"WITH RECURSIVE days AS ({series}) SELECT count(*) AS n FROM days")
    assert ("UNION ALL" in made.spark_sql, len(made.calls)) == (False, 1)


def chain(links: int) -> str:
    """CTEs that name the one before twice."""
    twice = (f"c{i} AS (\nSELECT a.id FROM c{i - 1} a JOIN c{i - 1} b ON a.id = b.id)" for i in range(1, links + 1))
    return f"WITH {', '.join(['c0 AS (SELECT id FROM t)', *twice])} SELECT id FROM c{links}"


def test_a_cte_that_others_come_down_to_often_is_computed_once() -> None:
    assert [translated(chain(links)).spark_sql.count("spark_partition_id") for links in (2, 3, 9)] == [0, 1, 3]


def test_a_cte_that_would_be_planned_a_thousand_times_is_refused_with_its_line() -> None:
    with pytest.raises(SqlProblems) as caught:
        translated(chain(14))
    assert str(caught.value) == (
        "line 5: the CTE c4, of which those after it make 1,024 (make it a model of its own), is not supported"
    )
