"""What a task asks DuckDB for a batch of rows, without Spark around it."""

from __future__ import annotations

import datetime as dt
import json
from decimal import Decimal
from typing import Any

import duckdb
import pyarrow as pa
import pytest
from pyspark.sql.types import BooleanType, IntegerType, StringType, StructType

from runtime.sources import duck, duck_task, group_task
from runtime.sql.model import Call

TEXT = (("i0", "VARCHAR"),)


def answer(inputs: tuple[tuple[str, str], ...], *asked: tuple[str, str, str], of: list[pa.Array]) -> list[Any]:
    evaluate = duck_task.evaluator(duck_task.Asking("duck_1", inputs, asked))
    return [tuple(row.values()) for row in evaluate(*of).to_pylist()]


def test_expressions_over_a_batch_are_the_fields_of_one_struct() -> None:
    found = answer(
        TEXT,
        ("upper(i0)", "VARCHAR", "VARCHAR"),
        ("len(i0)", "BIGINT", "BIGINT"),
        of=[pa.array(["straße", None, ""])],
    )
    assert found == [("STRAẞE", 6), (None, None), ("", 0)]


def test_types_that_spark_lacks_come_as_those_that_hold_them_and_are_duckdbs_again() -> None:
    inputs = (("i0", "UTINYINT"), ("i1", "JSON"), ("i2", "HUGEINT"), ("i3", "TIME"))
    asked = (
        ("i0 - 1", "UTINYINT", "SMALLINT"),
        ("typeof(i0) || typeof(i1) || typeof(i2)", "VARCHAR", "VARCHAR"),
        ("i2 * 10", "HUGEINT", "DECIMAL(38,0)"),
        ("i3", "TIME", "TIME"),
    )
    of = [
        pa.array([200], pa.int16()),
        pa.array(['{"a": 1}']),
        pa.array([Decimal(10**30)], pa.decimal128(38, 0)),
        pa.array([dt.time(1, 2, 3, 4)], pa.time64("ns")),
    ]
    assert answer(inputs, *asked, of=of) == [(199, "UTINYINTJSONHUGEINT", Decimal(10**31), dt.time(1, 2, 3, 4))]


def failed(expression: str, values: list[str | None]) -> BaseException:
    with pytest.raises(ValueError) as caught:
        answer(TEXT, ("i0 || '!'", "VARCHAR", "VARCHAR"), (expression, "INTEGER", "INTEGER"), of=[pa.array(values)])
    return caught.value


CALL = Call("duck_1", TEXT, (), "", ((2, "name || '!'"), (7, "name::INTEGER")))


def test_an_error_names_the_line_the_expression_and_the_value_in_duckdbs_words() -> None:
    error = failed("CAST(i0 AS INTEGER)", ["1", None, *map(str, range(50)), "4x", "5y"])
    assert duck.said(f"Py4JJavaError: … {error}\n\tat java…", [CALL]) == (
        7,
        "name::INTEGER: Could not convert string '4x' to INT32 (found: '4x')",
    )
    assert duck.said(error, [CALL], hidden=True) == (7, "name::INTEGER: Could not convert string *** to INT32")
    assert duck.said(ValueError("another"), [CALL]) is None


@pytest.mark.parametrize(
    "expression",
    [
        "(SELECT count(*) FROM read_text('/etc/hostname'))",
        "(SELECT count(*) FROM '/etc/passwd')",
        "(SELECT count(*) FROM read_csv('https://example.com/x.csv'))",
    ],
)
def test_nothing_but_the_batch_is_read_in_a_task(expression: str) -> None:
    told = duck.said(failed(expression, ["a"]), [CALL])
    assert told is not None and ("disabled" in told[1] or "does not exist" in told[1]), told


def test_nothing_is_set_or_loaded_in_a_task() -> None:
    duck_task.ask(pa.table({"i0": ["a"]}), "SELECT i0 FROM __batch", duck_task.MEMORY)
    import duckdb

    con = duckdb.__ondatra__
    for statement in ("SET enable_external_access = true", "SET memory_limit = '9GB'", "INSTALL httpfs", "LOAD httpfs"):
        with pytest.raises(duckdb.Error):
            con.execute(statement)
    assert con.execute("SELECT current_setting('threads'), current_setting('TimeZone')").fetchall() == [(1, "UTC")]


def test_an_executor_without_the_drivers_packages_is_told_in_one_line() -> None:
    asking = duck_task.Asking("duck_1", TEXT, (("i0", "VARCHAR", "VARCHAR"),), {"duckdb": "0.1", "pyarrow": "0.2"})
    with pytest.raises(ValueError) as caught:
        asking.answers([pa.array(["a"])])
    found = duck.said(caught.value, [CALL])
    assert found and "the Python of Spark's executors needs duckdb 0.1 and pyarrow 0.2, and has duckdb " in found[1]


def test_a_pass_computes_leaves_out_and_gives_back_what_is_asked_for() -> None:
    upper = Call("duck_1", TEXT, (("upper(i0)", "VARCHAR", "VARCHAR"), ("i0 LIKE '%b%'", "BOOLEAN", "BOOLEAN")), "")
    length = Call("duck_2", TEXT, (("len(i0)", "BIGINT", "BIGINT"),), "")
    calls = {
        "duck_1": duck.told(upper, {}, StructType().add("f0", StringType()).add("f1", BooleanType())),
        "duck_2": duck.told(length, {}, StructType().add("f0", IntegerType())),
    }
    steps = [["call", "duck_1", [1]], ["keep", 3], ["call", "duck_2", [2]]]
    told = {"calls": {name: json.loads(call) for name, call in calls.items()}, "steps": steps, "back": [4, 0, 2]}
    batches = [
        pa.RecordBatch.from_arrays([pa.array(ids, pa.int64()), pa.array(texts, pa.string())], ["a", "b"])
        for ids, texts in (([1, 2, 3], ["ab", "c", None]), ([4], ["bbb"]), ([], []))
    ]
    found = list(duck_task.passer(json.dumps(told).encode())(iter(batches)))
    assert [batch.to_pylist() for batch in found] == [
        [{"c0": 2, "c1": 1, "c2": "AB"}, {"c0": 3, "c1": 4, "c2": "BBB"}],
    ]
    assert found[0].schema == pa.schema([("c0", pa.int32()), ("c1", pa.int64()), ("c2", pa.string())])


def test_rows_that_a_later_condition_leaves_out_are_not_asked_for() -> None:
    number = Call("duck_1", TEXT, (("CAST(i0 AS INTEGER)", "INTEGER", "INTEGER"),), "")
    wanted = Call("duck_2", TEXT, (("i0 <> 'x'", "BOOLEAN", "BOOLEAN"),), "")
    calls = {
        "duck_1": duck.told(number, {}, StructType().add("f0", IntegerType())),
        "duck_2": duck.told(wanted, {}, StructType().add("f0", BooleanType())),
    }
    steps = [["call", "duck_1", [0]], ["call", "duck_2", [0]], ["keep", 2]]
    told = {"calls": {name: json.loads(call) for name, call in calls.items()}, "steps": steps, "back": [1]}
    batch = pa.RecordBatch.from_arrays([pa.array(["1", "x", "2"])], ["a"])
    [found] = duck_task.passer(json.dumps(told).encode())(iter([batch]))
    assert found.to_pylist() == [{"c0": 1}, {"c0": 2}]


def rows(*of: tuple[int, str | None, int | None, int | None]) -> pa.RecordBatch:
    """Numbers by which they are sorted, keys, places in the order in which they were read, and values: those that are
    NULL are in no list."""
    kinds = (pa.int64(), pa.string(), pa.int64(), pa.int64())
    columns = [pa.array(column, kind) for column, kind in zip(zip(*of, strict=True), kinds, strict=True)]
    return pa.RecordBatch.from_arrays(columns, ["by", "k", "o", "v"])


MEDIAN = duck_task.Asking(
    "duck_1",
    (("i0", "STRUCT(a0 BIGINT)[]"),),
    (("(SELECT median(__u.a0) || ' i0' FROM (SELECT unnest(i0) AS __u))", "VARCHAR", "VARCHAR"),),
)
LISTS = [[{"a0": 1}, 1]]
PARTS = [
    rows((0, None, 0, 1)),
    rows((0, None, 1, 3), (1, "a", 2, 5), (2, "b", 3, None), (2, "b", 4, 1)),
    rows((2, "b", 5, 2), (2, "b", 6, 3)),
    rows((2, "b", 7, 4)),
    rows((3, "c", 8, 7), (4, "d", 9, None)),
]
FOUND = [(None, "2.0 i0", 2), ("a", "5.0 i0", 1), ("b", "2.5 i0", 5), ("c", "7.0 i0", 1), ("d", None, 1)]


def medians(parts: list[pa.RecordBatch]) -> list[tuple[Any, ...]]:
    found: list[tuple[Any, ...]] = []
    for _, keys, counts, lists in group_task.grouped(iter(parts), MEDIAN, 2, [1], LISTS):
        found += zip(keys.to_pylist(), MEDIAN.answers([lists])[0].to_pylist(), counts.to_pylist(), strict=True)
    return found


def test_groups_that_go_over_several_batches_are_answered_whole() -> None:
    assert medians(PARTS) == FOUND


def test_groups_of_one_number_are_told_apart_and_rows_are_in_the_order_in_which_they_were_read() -> None:
    mixed = [
        rows((1, "a", 5, 1), (1, "b", 0, 2), (1, None, 4, 3)),
        rows((1, "a", 2, 4), (1, "b", 3, 5), (2, "c", 7, 6), (2, "c", 6, 7)),
    ]
    [ab, c] = group_task.grouped(iter(mixed), MEDIAN, 2, [1], LISTS)
    assert [[column.to_pylist() for column in columns[1:]] for columns in (ab, c)] == [
        [["a", "b", None], [2, 2, 1], [[{"a0": 4}, {"a0": 1}], [{"a0": 2}, {"a0": 5}], [{"a0": 3}]]],
        [["c"], [2], [[{"a0": 7}, {"a0": 6}]]],
    ]


def test_keys_are_equal_where_duckdb_finds_them_so() -> None:
    values = [[1.0, float("nan")]] * 2 + [[1.0]] * 2
    batch = pa.RecordBatch.from_arrays([pa.array([1] * 4), pa.array(values), pa.array(range(4))], ["by", "k", "o"])
    [columns] = group_task.grouped(iter([batch]), MEDIAN, 2, [1], [])
    assert columns[2].to_pylist() == [2, 2]


def test_all_rows_are_one_group_without_the_first_which_is_none() -> None:
    batches = iter([rows((0, None, None, None)), rows((0, None, 0, 4), (0, None, 1, 6))])
    [columns] = group_task.grouped(batches, MEDIAN, 1, [], [[{"a0": 2}, 1]])
    assert [c.to_pylist() for c in columns] == [[0], [2], [[{"a0": 4}, {"a0": 6}]]]


def test_a_group_that_does_not_fit_is_told_with_its_expression(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(group_task, "GROUP", 110)
    with pytest.raises(ValueError) as caught:
        medians(PARTS)
    call = Call("duck_1", (), (), "", ((3, "median(x)"),))
    assert duck.said(caught.value, [call]) == (
        3,
        "median(x): a group has 4 rows or more, whose values do not fit into the 512MB of a task: group by more, or "
        "ask for what keeps no values, such as avg() and count()",
    )


def test_rows_that_do_not_fit_into_memory_together_are_asked_for_in_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(duckdb, "__ondatra__", raising=False)  # its memory is that of the first question
    median = duck_task.Asking("duck_1", MEDIAN.inputs, MEDIAN.expressions, memory="60MB")
    groups = [{"a0": n} for n in range(20_000)]
    lists = pa.array([groups] * 60, pa.list_(pa.struct([("a0", pa.int64())])))
    assert median.answers([lists])[0].to_pylist() == ["9999.5 i0"] * 60
    delattr(duckdb, "__ondatra__")


def test_names_in_an_expression_are_no_lists() -> None:
    field = "struct_pack(i0 := (SELECT max(__u.a0) FROM (SELECT unnest(i0) AS __u))).i0"
    found = answer(
        (("i0", "STRUCT(a0 BIGINT)[]"),), (field, "BIGINT", "BIGINT"), of=[pa.array([[{"a0": 1}, {"a0": 5}]])]
    )
    assert found == [(5,)]


def test_an_error_shows_the_begin_of_a_large_group() -> None:
    of = [pa.array([[{"a0": n} for n in range(100_000)]])]
    with pytest.raises(ValueError) as caught:
        answer((("i0", "STRUCT(a0 BIGINT)[]"),), ("error(len(i0)::VARCHAR)", "INTEGER", "INTEGER"), of=of)
    told = duck.said(caught.value, [Call("duck_1", (), (), "", ((1, "error(x)"),))])
    assert (
        told is not None
        and told[1].startswith("error(x): 100000 (found: \"[{'a0': 0}, {'a0': 1}")
        and len(told[1]) < 300
    )
