"""What a text consists of, as Spark's own parser and analyser say it, is the same whichever way it is asked for."""

from __future__ import annotations

from typing import Any

import pytest

from runtime.lake import internals, nodes

SELECTS = (
    "WITH x AS (SELECT id FROM people) SELECT max(id) OVER (ORDER BY id) AS m FROM x WHERE id IN (SELECT 1)",
    "SELECT transform(array(1), x -> x + 1) AS a,\n reflect('java.lang.System', 'getenv') AS b FROM people",
    "SELECT * FROM delta.`/tmp/x y` JOIN range(3) ON true",
    "SELECT p.id, u.q FROM people p LEFT JOIN LATERAL (SELECT p.id + 1 AS q) u ON true",
)

pytestmark = pytest.mark.spark


@pytest.mark.parametrize("sql", SELECTS)
def test_a_parsed_text_has_the_same_nodes_both_ways(spark: Any, sql: str) -> None:
    plan = internals.parsed(spark, sql)
    compiled = nodes.nodes(spark, plan, to_views=False)
    assert sorted(nodes.nodes(spark, plan, to_views=False, plain=True)) == sorted(compiled)
    assert "UnresolvedRelation" in "\n".join(compiled)


@pytest.mark.parametrize("to_views", [True, False])
def test_an_analysed_plan_has_the_same_nodes_both_ways(spark: Any, to_views: bool) -> None:
    spark.sql("SELECT 1 AS id").createOrReplaceTempView("people")
    plan = internals.analysed(spark.sql(SELECTS[0]))
    compiled = nodes.nodes(spark, plan, to_views=to_views)
    assert sorted(nodes.nodes(spark, plan, to_views=to_views, plain=True)) == sorted(compiled)


def test_where_nothing_can_be_compiled_the_other_way_is_gone(spark: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    plan = internals.parsed(spark, SELECTS[0])
    wanted = sorted(nodes.nodes(spark, plan, to_views=False))
    monkeypatch.setattr(nodes, "_compiled", {})
    monkeypatch.setattr(nodes, "JAVA", nodes.JAVA.with_name("missing"))
    assert sorted(nodes.nodes(spark, plan, to_views=False)) == wanted
