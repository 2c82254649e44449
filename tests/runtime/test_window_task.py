"""Windows of DuckDB's over the rows of whole partitions, which come to a worker one after another."""

from __future__ import annotations

import json
from typing import Any

import duckdb
import pyarrow as pa
import pytest
from pyspark.sql.types import DoubleType, StructType

from runtime.model import Column
from runtime.sources import duck, duck_task, window_task
from runtime.sql import translate
from runtime.sql.model import Call

TABLES = {"main.t": (Column("k", "VARCHAR", "STRING"), Column("x", "BIGINT", "BIGINT"))}
SQL = "SELECT k, x, median(x) OVER (PARTITION BY k, 'u.a1' ORDER BY x) AS m FROM t"
ROW = pa.struct([("a0", pa.int64()), ("a1", pa.string()), ("a2", pa.int64())])


def batch(*of: tuple[int, str, int]) -> pa.RecordBatch:
    """Rows as Spark sends them: x, the number of the partition, and what the window needs."""
    values = [{"a0": at, "a1": k, "a2": x} for at, (_, k, x) in enumerate(of)]
    columns = [pa.array([x for _, _, x in of]), pa.array([p for p, _, _ in of], pa.int32()), pa.array(values, ROW)]
    return pa.RecordBatch.from_arrays(columns, ["s0", "__part", "__row0"])


#: Partitions begin within batches and go over them; b and c have one number.
BATCHES = [batch((1, "a", 4), (1, "a", 2)), batch((1, "a", 9), (2, "b", 8), (2, "c", 1)), batch((2, "b", 6))]
FOUND = [(4, 3.0), (2, 2.0), (9, 4.0), (8, 7.0), (1, 1.0), (6, 6.0)]


def call() -> Call:
    (made,) = translate(SQL, dialect="duckdb", tables=TABLES, project_dir="/nowhere").calls
    return made


def answers(batches: list[pa.RecordBatch], memory: str = duck_task.MEMORY) -> list[pa.RecordBatch]:
    told = json.loads(duck.told(call(), {}, StructType().add("f0", DoubleType())))
    told["asking"].append(memory)
    steps: list[Any] = [["whole", 1], ["window", call().name, [2, -1]]]
    plan = {"calls": {call().name: told}, "steps": steps, "back": [0, 3]}
    return list(duck_task.passer(json.dumps(plan).encode())(iter(batches)))


def rows(found: list[pa.RecordBatch]) -> list[tuple[Any, ...]]:
    return [tuple(row.values()) for part in found for row in part.to_pylist()]


@pytest.mark.parametrize("at_once", [1, duck_task.ROWS])
def test_rows_are_answered_in_their_order_by_whole_partitions(monkeypatch: pytest.MonkeyPatch, at_once: int) -> None:
    monkeypatch.setattr(duck_task, "ROWS", at_once / duck_task.GROUPED)
    found = answers(BATCHES)
    assert (rows(found), [len(part) for part in found]) == (FOUND, [3, 3])


def test_a_partition_that_does_not_fit_is_told_with_its_expression(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(window_task, "GROUP", 30)
    with pytest.raises(ValueError) as caught:
        answers(BATCHES)
    assert duck.said(caught.value, [call()]) == (
        1,
        "median(x) OVER (PARTITION BY k, 'u.a1' ORDER BY x): a partition has 3 rows or more, whose values do not fit "
        "into the 512MB of a task: partition by more, or ask for what keeps no values, such as avg() and count()",
    )


def test_partitions_that_do_not_fit_into_memory_together_are_asked_for_in_parts(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delattr(duckdb, "__ondatra__", raising=False)  # its memory is that of the first question
    many = batch(*((p, str(p), x) for p in range(40) for x in range(20_000)))
    found = rows(answers([many], memory="100MB"))
    assert found == [(x, x / 2) for _ in range(40) for x in range(20_000)]
    delattr(duckdb, "__ondatra__")
