"""What neither Spark nor DuckDB can do of a model is refused with its line before anything runs."""

from __future__ import annotations

import json
from typing import Any

import compare
import duckdb
import pytest

from runtime.sql import SqlProblems, translate

REFUSED = [json.loads(line) for line in (compare.HERE / "refused.jsonl").read_text(encoding="utf-8").splitlines()]


@pytest.fixture(scope="module")
def known() -> Any:
    return compare.tables(compare.oracle())


@pytest.mark.parametrize("case", REFUSED, ids=lambda case: case["says"])
def test_a_construct_is_refused_by_name_at_its_line(known: Any, case: dict[str, Any]) -> None:
    with pytest.raises(SqlProblems) as refused:
        translate(case["sql"], dialect="duckdb", tables=known, project_dir=compare.HERE)
    ((line, said),) = refused.value.problems
    assert (line, case["says"] in said) == (case["line"], True), said


def test_each_refused_example_is_sql_that_duckdb_takes() -> None:
    con = compare.oracle()
    failing = {}
    for case in REFUSED:
        try:
            con.execute(case["sql"]).fetchall()
        except duckdb.Error as error:
            failing[case["sql"]] = str(error)
    assert failing == {}
