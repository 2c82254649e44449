"""Executors come and go: what is computed once is held by two of them, and a build that fails because one was lost is
made again."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

#: What Spark says where a part of a result went with its executor, or a task died of it too often.
_SAID = re.compile(
    r"CHECKPOINT_RDD_BLOCK_ID_NOT_FOUND|Checkpoint block \S+ not found|ExecutorLostFailure|ExecutorDeadException|"
    r"BlockNotFoundException|FetchFailed|Failed to get broadcast|Failed to get block|Remote RPC client disassociated|"
    r"Unable to create executor|worker lost|Executor heartbeat timed out"
)


def kept(frame: DataFrame) -> DataFrame:
    """Computed now, once, and held; elsewhere than on this machine by two executors, if there are two."""
    from pyspark import StorageLevel

    if str(frame.sparkSession.sparkContext.master).startswith("local"):
        return frame.localCheckpoint(eager=True)
    return frame.localCheckpoint(eager=True, storageLevel=StorageLevel.MEMORY_AND_DISK_2)


def is_loss(error: BaseException) -> bool:
    """Whether Spark failed because an executor was lost: the same work may succeed on those that are left."""
    seen: BaseException | None = error
    while seen is not None:
        if _SAID.search(str(seen)):
            return True
        seen = seen.__cause__
    return False


def executors(spark: SparkSession) -> frozenset[str]:
    """The addresses of what works for this engine elsewhere, now. None where Spark itself sends away those that are
    idle: one that is gone tells nothing then."""
    context = spark.sparkContext
    if str(context.master).startswith("local") or context.getConf().get("spark.dynamicAllocation.enabled") == "true":
        return frozenset()
    names = context._jsc.sc().getExecutorMemoryStatus().keySet().mkString(" ")  # type: ignore[union-attr]
    return frozenset(names.split())
