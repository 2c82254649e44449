"""Texts cast to numbers and days: Spark's where they are spelt as their values are written, else DuckDB's."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import compare
import duckdb
import pytest

from runtime.model import Column
from runtime.sql import Translated, translate
from runtime.sql.scalar import spellings

pytestmark = pytest.mark.slow
KNOWN = {"main.t": (Column("v", "VARCHAR", "STRING"), Column("n", "INTEGER", "INT"))}
ENDS = [f"{sign}{2**bits + more}" for bits in (7, 15, 31, 63) for more in (-1, 0, 1) for sign in ("", "-")]
USUAL = ["0", "7", "-7", "100", *ENDS, "0001-01-01", "1582-10-10", "2024-02-29", "9999-12-31", "20240105"]
SPACES = " \t\n\v\f\r\0\x01\x1f\x7f\u00a0\u2003"
OTHERS = [
    *("", " ", "-", "+", "+5", "-0", "007", "1_000", "1e3", "12.0", "2.5", "0x1f", "٣", "１", "NaN", "nul", "true"),
    *("-0044-03-15", "12020-01-01", "+12020-01-01", "2023-02-29", "2024-13-01", "2024-1-05", "2024-01-5", "infinity"),
    *("2024-1-05T", "2024-1-05 1", "2024-01-05 10:00:00", "2024/01/05", "epoch", "0044-03-15 (BC)"),
    *(f"{left}{text}{right}" for text in ("7", "2024-01-05") for c in SPACES for left, right in ((c, ""), ("", c))),
]
#: What stands for a text of another spelling.
MARKED = {"TINYINT": "99", "SMALLINT": "99", "INTEGER": "99", "BIGINT": "99", "DATE": "'1111-11-11'"}


def translated(sql: str) -> Translated:
    return translate(sql, dialect="duckdb", tables=KNOWN, project_dir="/nowhere")


@pytest.fixture
def shown(spark: Any) -> Any:
    """Shows these texts to Spark as the table that is read."""

    def show(*texts: str | None) -> Any:
        rows = [(text, 7) for text in texts]
        spark.createDataFrame(rows, "v STRING, n INT").createOrReplaceTempView("main__t")
        return spark

    return show


@pytest.mark.parametrize("kind", MARKED)
def test_a_text_of_the_usual_spelling_means_what_duckdb_says(shown: Any, kind: str) -> None:
    sql = translated(f"SELECT v::{kind} AS x FROM t").spark_sql
    marked = sql.replace(f"raise_error('{spellings.UNUSUAL}')", f"CAST({MARKED[kind]} AS {kind})")
    found = [row[0] for row in shown(*USUAL, *OTHERS, None).sql(marked).collect()]

    wanted, [[mark]] = [], duckdb.sql(f"SELECT CAST({MARKED[kind]} AS {kind})").fetchall()
    for text in (*USUAL, *OTHERS, None):
        value = mark
        if text in (*USUAL, None):
            with suppress(duckdb.ConversionException):
                [[value]] = duckdb.execute(f"SELECT CAST(? AS {kind})", [text]).fetchall()
        wanted.append(value)
    assert found == wanted


def test_casts_of_texts_need_no_worker_but_go_along_with_what_does() -> None:
    alone = translated("SELECT v::INTEGER AS x FROM t WHERE v::DATE > DATE '2024-01-01'")
    beside = translated("SELECT v::INTEGER AS x, reverse(v) AS y FROM t")
    tried = translated("SELECT TRY_CAST(v AS INTEGER) AS x FROM t")
    assert [(len(one.calls), one.exact is None) for one in (alone, beside, tried)] == [(0, False), (1, True), (1, True)]


def test_a_text_of_another_spelling_is_duckdbs_with_all_that_the_model_computes(shown: Any) -> None:
    done = translated("SELECT v::INTEGER + n AS x FROM t")
    with pytest.raises(Exception, match=spellings.UNUSUAL) as caught:
        compare.take(shown("12", " 1e3 ", None), done)
    assert spellings.is_met(caught.value)
    assert done.exact is not None
    assert compare.take(shown("12", " 1e3 ", None), done.exact) == (["x"], [[19], [1007], [None]])
