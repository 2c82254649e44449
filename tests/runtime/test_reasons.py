"""Why a build failed, as a person reads it: one line of Spark's or DuckDB's own words; values are hidden where a model
has masks."""

from __future__ import annotations

import pytest

from runtime.errors import said_by_spark
from runtime.pipeline.line import VALUE

JOB = (
    "An error occurred while calling o12.head.\n: org.apache.spark.SparkException: Job aborted due to stage failure: "
    "Task 0 in stage 3.0 failed 1 times, "
    "most recent failure: Lost task 0.0 in stage 3.0 (TID 3) (host executor driver): "
    "org.apache.spark.SparkNumberFormatException: "
)


@pytest.mark.parametrize(
    "text, said",
    [
        (
            f'{JOB}[CAST_INVALID_INPUT] The value \'x\' of the type "STRING" cannot be cast to "INT". Use `try_cast`. '
            f"SQLSTATE: 22018\n== SQL (line 1, position 8) "
            "==\nSELECT\n\n\tat org.apache",
            'The value \'x\' of the type "STRING" cannot be cast to "INT". Use `try_cast`.',
        ),
        (
            "[ARITHMETIC_OVERFLOW] overflow. Use 'try_multiply'. If necessary set \"spark.sql.ansi.enabled\" to "
            '"false" to bypass this error. SQLSTATE: 22003\n'
            '== DataFrame ==\n"cast" was called from\n/home/x/base.py:183',
            "overflow. Use 'try_multiply'.",
        ),
        (
            "[USER_RAISED_EXCEPTION] Could not convert string to number: x\n\nJVM stacktrace:\norg.apache",
            "Could not convert string to number: x",
        ),
        (
            "[UNRESOLVED_COLUMN.WITH_SUGGESTION] No column `x`. Did you mean one of the following? [`id`]. SQLSTATE: "
            "42703; line 1 pos 73;\n'Project ['x]",
            "No column `x`. Did you mean one of the following? [`id`].",
        ),
        (
            "[PARSE_SYNTAX_ERROR] Syntax error at or near 'FORM'. SQLSTATE: 42601 (line 1, pos 9)\n\n== SQL "
            "==\nSELECT a FORM b",
            "Syntax error at or near 'FORM'.",
        ),
        (
            "[DATATYPE_MISMATCH.SET] Cannot join; types differ. SQLSTATE: 42K09;\n'Join Inner, (a = b)\n:- x",
            "Cannot join; types differ.",
        ),
        ("columns [ID] and [NAME] differ\nby name", "columns [ID] and [NAME] differ by name"),
        ("", "Exception"),
    ],
)
def test_sparks_words_are_one_line(text: str, said: str) -> None:
    assert said_by_spark(Exception(text)) == said


@pytest.mark.parametrize(
    "text",
    [
        "The value 'secret 77' of the type \"STRING\" cannot be cast",
        "a.csv, line 2: Could not convert string \"secret 77\" to 'BIGINT'; Possible solutions",
        'in line 3: Failed to cast value to numerical: "secret 77"; Try increasing',
    ],
)
def test_values_in_messages_are_hidden_where_a_model_has_masks(text: str) -> None:
    hidden = VALUE.sub(r"\1***", text)
    assert "***" in hidden and "secret" not in hidden and "77" not in hidden
    assert hidden.split("***")[1] == text.split("secret 77")[1].lstrip("'\"")  # what follows stays
