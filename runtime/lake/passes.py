"""Calls of DuckDB as passes through a Python worker (Passes.java, for windows Windows.java, both by Asking.java) where
Spark plans functions of Arrow arrays: with these private parts they take half as long, and windows of large partitions
no list for each row.
Where they cannot be had the functions stay, with the same result.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from runtime import config
from runtime.errors import said_by_spark
from runtime.lake import internals, nodes, proof

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

log = logging.getLogger("ondatra.lake")
ASKING, PASSES, WINDOWS = (Path(__file__).with_name(f"{name}.java") for name in ("Asking", "Passes", "Windows"))
#: Columns that may pass along with a call, more than it has inputs: each goes to the worker and back, which takes a
#: twentieth of what a function takes that keeps all of them in a queue.
ALONG = 12
#: Stands in a pickled function for what it shall do.
SLOT = b"what a pass does " * 20
_made: dict[str, Any] = {}
_guard = threading.Lock()


def rules(spark: SparkSession, pickled: Callable[[], bytes]) -> list[Any]:
    """The rules of this JVM, at work in this session too; none where calls stay functions. `pickled` gives,
    by protocol 3, a function of SLOT that gives one of batches."""
    if config.from_env().plain_build or internals.versions(spark) not in proof.PROVEN:
        return []
    gateway: Any = spark.sparkContext._gateway
    with _guard:  # builds side by side share them: of two classes of one name py4j would call the wrong one
        if _made.get("gateway") is not gateway:
            _made.update(gateway=gateway, rules=_make(gateway, pickled))
        found: list[Any] = _made["rules"]
    for rule in found:
        if said := rule.failed():  # over one plan, which ran as it was
            log.warning("DuckDB was asked the plain way, which is slower: %s", said)
        internals.optimize_by(spark, rule)
    return found


def _make(gateway: Any, pickled: Callable[[], bytes]) -> list[Any]:
    try:
        before, after = pickled().split(b"B" + len(SLOT).to_bytes(4, "little") + SLOT)
        asking = nodes.compiled(gateway, ASKING)
        return [_new(gateway, asking, java, before, after, *more) for java, *more in ((WINDOWS,), (PASSES, ALONG))]
    except Exception as error:
        log.warning("DuckDB is asked the plain way, which is slower: %s", said_by_spark(str(error)))
        return []


def _new(gateway: Any, asking: Any, java: Path, *told: Any) -> Any:
    kind = nodes.compiled(gateway, java, asking)
    given = gateway.new_array(gateway.jvm.java.lang.Object, len(told))
    for at, one in enumerate(told):
        given[at] = one
    return kind.getConstructors()[0].newInstance(given)
