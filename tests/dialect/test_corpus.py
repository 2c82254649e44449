"""Every query of the .jsonl files gives DuckDB's answer on Spark, but for a few that are refused; none is answered
differently."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import compare
import pytest

from runtime.lake import effort, passes
from runtime.sql import SqlProblems

#: What docs/dialect.md says is refused; any other one would be a query that worked before.
REFUSED = {"queries.jsonl": ["datetime_11", "datetime_14", "pivot_01", "syntax_22"]}
pytestmark = pytest.mark.slow


def asked(con: Any, name: str) -> Iterator[dict[str, Any]]:
    for line in (compare.HERE / name).read_text(encoding="utf-8").splitlines():
        query = json.loads(line.replace("{{FILES}}", str(compare.HERE / "files")))
        query.setdefault("expected", compare.answer(con, query["sql"]) if "expected" not in query else None)
        yield query


def verdict(spark: Any, known: Any, query: dict[str, Any]) -> str:
    """'right', 'refused' or a text that shows the difference."""
    expected, ordered = query["expected"], query.get("ordered", False)
    try:
        names, kinds, rows = compare.on_spark(spark, query["sql"], known, compare.HERE)
    except SqlProblems:
        return "right" if "error" in expected else "refused"
    except Exception as error:
        return "right" if "error" in expected else f"failed: {str(error)[:300]}"
    if "error" in expected:
        return f"DuckDB fails with {expected['error'][:100]}, Spark gives {rows[:2]}"
    found, wanted = compare.form(rows, kinds, ordered), compare.form(expected["rows"], expected["types"], ordered)
    if (names, found) == (expected["columns"], wanted) and [compare.unquoted(k) for k in kinds] == [
        compare.unquoted(k) for k in expected["types"]
    ]:
        return "right"
    return f"{names} {kinds} {found[:3]}\n   DuckDB: {expected['columns']} {expected['types']} {wanted[:3]}"


@pytest.mark.parametrize("name", ["queries.jsonl", "more.jsonl", "field.jsonl", "analyst.jsonl"])
def test_every_query_gives_duckdbs_answer_or_is_refused(
    spark: Any, tmp_path: Path, name: str, caplog: pytest.LogCaptureFixture
) -> None:
    con = compare.oracle()
    known = compare.tables(con)
    compare.views(spark, con, tmp_path)
    with effort.fit(spark, 0):
        if name == "more.jsonl":  # as a build of much runs it: compiled
            effort.change(spark, {"spark.sql.codegen.wholeStage": "true", "spark.sql.codegen.factoryMode": "FALLBACK"})
        verdicts = {q["id"]: verdict(spark, known, q) for q in asked(con, name)}
    different = {i: v for i, v in verdicts.items() if v not in ("right", "refused")}
    refused = sorted(i for i, v in verdicts.items() if v == "refused")
    print(
        f"{name}: {sum(v == 'right' for v in verdicts.values())} right, {len(refused)} refused {refused}, "
        f"{len(different)} different"
    )
    assert not different, "\n".join(f"{i}: {v}" for i, v in different.items())
    assert refused == REFUSED.get(name, [])
    passes.rules(spark, bytes)  # says of which plan it knew nothing
    assert "the plain way" not in caplog.text
