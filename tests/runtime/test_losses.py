"""What Spark says of an executor that was lost is told from what the data, or a model, are at fault for."""

from __future__ import annotations

import pytest

from runtime.lake import losses

LOST = [
    "[CHECKPOINT_RDD_BLOCK_ID_NOT_FOUND] Checkpoint block rdd_9_1 not found! Either the executor that originally "
    "checkpointed this partition is no longer alive, or the original RDD is unpersisted.",
    "Job aborted due to stage failure: Task 3 in stage 9.0 failed 4 times, most recent failure: Lost task 3.3 in stage "
    "9.0 (TID 77) (10.0.0.7 executor 4): ExecutorLostFailure (executor 4 exited caused by one of the running tasks)",
    "org.apache.spark.shuffle.FetchFailedException: Connection reset by peer",
]
OTHER = [
    "Job aborted due to stage failure: Task 0 in stage 3.0 failed 1 times, most recent failure: Lost task 0.0 in stage "
    "3.0 (TID 3) (10.0.0.7 executor 1): org.apache.spark.SparkArithmeticException: [DIVIDE_BY_ZERO] Division by zero.",
    "[UNRESOLVED_COLUMN] A column with the name `executor` cannot be resolved.",
]


@pytest.mark.parametrize("said", LOST)
def test_a_lost_executor_is_known_by_what_spark_says(said: str) -> None:
    assert losses.is_loss(RuntimeError(said))


@pytest.mark.parametrize("said", OTHER)
def test_what_else_goes_wrong_is_none(said: str) -> None:
    assert not losses.is_loss(RuntimeError(said))


def test_the_reason_of_an_error_counts_too() -> None:
    try:
        raise ValueError("the build failed") from RuntimeError(LOST[0])
    except ValueError as error:
        assert losses.is_loss(error)
