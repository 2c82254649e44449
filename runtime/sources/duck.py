"""DuckDB within Spark's tasks: the calls of a translation as functions of a session, and what their errors say."""

from __future__ import annotations

import base64
import json
import re
import weakref
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from runtime.errors import ConfigError, said_by_spark
from runtime.lake import passes
from runtime.sources import duck_task, group_task, window_task
from runtime.sql.asking.said import brief, one_line
from runtime.sql.model import Call

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

#: Bytes that go to a worker at once, beside a number of rows: of lists and the like, and of other values.
BYTES = "spark.sql.execution.arrow.maxBytesPerBatch"
NESTED, MOST = 1 << 25, (1 << 31) - 1
_registered: weakref.WeakKeyDictionary[Any, set[str]] = weakref.WeakKeyDictionary()
#: Applications of Spark whose executors were asked.
_fit: set[str] = set()
_SAID = re.compile(re.escape(duck_task.MARK) + r"([A-Za-z0-9+/=]+):")
_QUOTED = re.compile(r"'.*'|\".*\"", re.S)


def register(spark: SparkSession, calls: Sequence[Call]) -> None:
    """Each call becomes a temporary function of this session under its name, which says what it computes."""
    if spark.conf.get(BYTES) in (str(NESTED), str(MOST)):  # else somebody chose another
        spark.conf.set(BYTES, str(bytes_at_once(calls)))
    known = _registered.setdefault(spark, set())
    new = [call for call in calls if call.name not in known]
    if not new:
        return
    from pyspark import cloudpickle
    from pyspark.sql.functions import arrow_udf
    from pyspark.sql.types import DataType

    for travelling in (duck_task, group_task, window_task):  # a worker may not find this project
        cloudpickle.register_pickle_by_value(travelling)
    versions = duck_task.packages()
    check_executors(spark, versions)
    rules = passes.rules(spark, lambda: cloudpickle.dumps((duck_task.passer(passes.SLOT), None), protocol=3))
    for call in new:
        kind = DataType.fromDDL(call.returns)
        asking = duck_task.Asking(call.name, call.inputs, call.expressions, versions)
        spark.udf.register(call.name, arrow_udf(duck_task.evaluator(asking), kind))
        for rule in rules:
            rule.define(call.name, told(call, versions, kind))
        known.add(call.name)


def bytes_at_once(calls: Sequence[Call]) -> int:
    """Spark looks for the bytes at each row, which takes a third of the time of all that it does for it, and not at all
    if they are the most that there can be: for values that are no lists the number of rows is bound enough."""
    nested = any(kind.endswith("]") or kind.startswith(("STRUCT", "MAP")) for c in calls for _, kind in c.inputs)
    return NESTED if nested else MOST


def check_executors(spark: SparkSession, versions: dict[str, str]) -> None:
    """Asks the Python of an executor elsewhere, once. ConfigError where it lacks what a task needs."""
    context = spark.sparkContext
    if context.master.startswith("local") or context.applicationId in _fit:
        return
    try:
        [unfit] = context.parallelize([versions], 1).map(duck_task.missing).collect()
    except Exception as error:
        told = said_by_spark(error)
        raise ConfigError(f"the Python of Spark's executors does not answer: {told}") from None
    if unfit:
        raise ConfigError(unfit)
    _fit.add(context.applicationId)


def told(call: Call, versions: dict[str, str], kind: Any) -> str:
    """What `duck_task.passer` needs to know of a call."""
    from pyspark.sql.pandas.types import to_arrow_schema

    schema = to_arrow_schema(kind, timezone="UTC").serialize().to_pybytes()
    asking = (call.inputs, call.expressions, versions)
    return json.dumps({"asking": asking, "schema": base64.b64encode(schema).decode()})


def said(error: BaseException | str, calls: Sequence[Call], *, hidden: bool = False) -> tuple[int, str] | None:
    """The line of the SQL and what is wrong there, if the error is one of a call: the expression, DuckDB's words and
    the values found, which are left out where they are `hidden`."""
    found = _SAID.search(str(error))
    if not found:
        return None
    heard = json.loads(base64.b64decode(found[1]))
    call = next((c for c in calls if c.name == heard["call"]), None)
    line, shown = call.places[heard["at"]] if call and call.places else (1, "")
    message = re.sub(r" when casting from source column i\d+$", "", one_line(brief(heard["message"])))
    if hidden:
        return line, f"{shown}: " + _QUOTED.sub("***", message)
    values = ", ".join(repr(v) for v in heard["values"].values())
    return line, f"{shown}: {message}" + (f" (found: {values})" if values else "")
