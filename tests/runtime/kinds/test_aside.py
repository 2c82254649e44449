"""Work that runs beside other work in one build."""

from __future__ import annotations

import threading
from typing import Any

import pytest

from runtime.kinds.aside import aside
from runtime.lake.spark import name_jobs


def test_it_runs_beside_the_block_in_its_session_and_job_group(spark: Any) -> None:
    here, there = threading.Event(), threading.Event()

    def work() -> tuple[Any, ...]:
        here.set()
        active = spark._jvm.org.apache.spark.sql.classic.SparkSession.getActiveSession().get()
        return (
            there.wait(10),
            active.equals(spark._jsparkSession),
            spark.sparkContext.getLocalProperty("spark.jobGroup.id"),
        )

    name_jobs(spark, "a run")
    try:
        with aside(spark, work) as told:
            assert here.wait(10)
            there.set()
        assert told() == (True, True, "a run")
    finally:
        name_jobs(spark, None)


def test_its_error_is_raised_when_the_block_ends(spark: Any) -> None:
    steps = []
    with pytest.raises(ZeroDivisionError), aside(spark, lambda: 1 // 0):
        steps.append("block")
    assert steps == ["block"]


def test_the_error_of_the_block_is_raised_after_the_work_has_ended(spark: Any) -> None:
    go, steps = threading.Event(), []

    def work() -> None:
        go.wait(10)
        steps.append("work")

    with pytest.raises(KeyError), aside(spark, work):
        threading.Timer(0.2, go.set).start()
        raise KeyError
    assert steps == ["work"]
