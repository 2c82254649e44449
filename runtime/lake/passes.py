"""Calls of DuckDB as passes through a Python worker (Passes.java), where Spark plans functions of Arrow arrays:
with these private parts they take half as long. Where they cannot be had the functions stay, with the same result.
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
JAVA = Path(__file__).with_name("Passes.java")
#: Columns that may pass along with a call, more than it has inputs: each goes to the worker and back, which takes a
#: twentieth of what a function takes that keeps all of them in a queue.
ALONG = 12
#: Stands in a pickled function for what it shall do.
SLOT = b"what a pass does " * 20
_made: dict[str, Any] = {}
_guard = threading.Lock()


def rule(spark: SparkSession, pickled: Callable[[], bytes]) -> Any:
    """The rule of this JVM, at work in this session too; None where calls stay functions. `pickled` gives,
    by protocol 3, a function of SLOT that gives one of batches."""
    if config.from_env().plain_build or internals.versions(spark) not in proof.PROVEN:
        return None
    gateway: Any = spark.sparkContext._gateway
    with _guard:  # builds side by side share one: of two classes of one name py4j would call the wrong one
        if _made.get("gateway") is not gateway:
            _made.update(gateway=gateway, rule=_make(gateway, pickled))
        found = _made["rule"]
        if found is not None and found.failed():
            log.warning("DuckDB is asked the plain way, which is slower: %s", found.failed())
            found = _made["rule"] = None
    if found is not None:
        internals.optimize_by(spark, found)
    return found


def _make(gateway: Any, pickled: Callable[[], bytes]) -> Any:
    try:
        before, after = pickled().split(b"B" + len(SLOT).to_bytes(4, "little") + SLOT)
        kind = nodes.compiled(gateway, JAVA)
        given = gateway.new_array(gateway.jvm.java.lang.Object, 3)
        given[0], given[1], given[2] = before, after, ALONG
        return kind.getConstructors()[0].newInstance(given)
    except Exception as error:
        log.warning("DuckDB is asked the plain way, which is slower: %s", said_by_spark(str(error)))
        return None
