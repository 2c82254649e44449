"""DuckDB within Spark's tasks: the calls of a translation as functions of a session, and what their errors say."""

from __future__ import annotations

import base64
import json
import re
import weakref
from collections.abc import Sequence
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

from runtime.sources import duck_task
from runtime.sql.model import Call
from runtime.sql.said import brief, one_line

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_registered: weakref.WeakKeyDictionary[Any, set[str]] = weakref.WeakKeyDictionary()
_SAID = re.compile(re.escape(duck_task.MARK) + r"([A-Za-z0-9+/=]+):")
_QUOTED = re.compile(r"'.*'|\".*\"", re.S)


def register(spark: SparkSession, calls: Sequence[Call]) -> None:
    """Each call becomes a temporary function of this session under its name, which says what it computes."""
    known = _registered.setdefault(spark, set())
    new = [call for call in calls if call.name not in known]
    if not new:
        return
    from pyspark import cloudpickle
    from pyspark.sql.functions import arrow_udf
    from pyspark.sql.types import DataType

    cloudpickle.register_pickle_by_value(duck_task)  # a worker may not find this project
    versions = {name: version(name) for name in ("duckdb", "pyarrow")}
    for call in new:
        evaluate = duck_task.evaluator(call.name, call.inputs, call.expressions, versions)
        spark.udf.register(call.name, arrow_udf(evaluate, DataType.fromDDL(call.returns)))
        known.add(call.name)


def said(error: BaseException | str, calls: Sequence[Call], *, hidden: bool = False) -> tuple[int, str] | None:
    """The line of the SQL and what is wrong there, if the error is one of a call: the expression, DuckDB's words and
    the values found, which are left out where they are `hidden`."""
    found = _SAID.search(str(error))
    if not found:
        return None
    told = json.loads(base64.b64decode(found[1]))
    call = next((c for c in calls if c.name == told["call"]), None)
    line, shown = call.places[told["at"]] if call and call.places else (1, "")
    message = re.sub(r" when casting from source column i\d+$", "", one_line(brief(told["message"])))
    if hidden:
        return line, f"{shown}: " + _QUOTED.sub("***", message)
    values = ", ".join(repr(v) for v in told["values"].values())
    return line, f"{shown}: {message}" + (f" (found: {values})" if values else "")
