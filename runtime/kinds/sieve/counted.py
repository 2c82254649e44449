"""Counts rows while they pass: a digest that costs no pass of its own.

An aggregate would be the end of the rows, and Spark's own observation of rows is interpreted, which takes as long as
the pass. An accumulator that the compiled code of the pass calls for each row costs nothing that could be measured.
Spark adds a task's share again where it has to repeat a task; a digest that is too large is then seen by whoever
compares it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from runtime.kinds.build import Job
from runtime.lake.table import H2

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def counted(job: Job, rows: DataFrame) -> tuple[DataFrame, Callable[[], tuple[int, int]]]:
    """The same rows, and what tells their number and the sum of their second hashes' upper halves, once they have
    passed."""
    from pyspark.sql import Column
    from pyspark.sql import functions as F

    jvm: Any = job.spark._jvm
    tools, expressions, types = (
        jvm.org.apache.spark.sql.classic.ExpressionUtils,
        jvm.org.apache.spark.sql.catalyst.expressions,
        jvm.org.apache.spark.sql.types,
    )
    counter = job.spark.sparkContext._jsc.sc().longAccumulator()
    held = expressions.Literal(counter, types.ObjectType(counter.getClass()))
    # the way to call a method that returns nothing: a bean whose property is set
    set_ = expressions.objects.InitializeJavaBean(
        held, jvm.PythonUtils.toScalaMap({"add": tools.expression(F.expr(f"shiftright({H2}, 32)")._jc)})
    )
    none = jvm.PythonUtils.toSeq([])
    loader = jvm.java.lang.Thread.currentThread().getContextClassLoader()
    objects = jvm.java.lang.Class.forName("java.util.Objects", True, loader)
    boolean = getattr(types, "BooleanType$").__getattr__("MODULE$")
    # never the same twice, so that it is asked once for each row, and where it stands
    seen = expressions.objects.StaticInvoke(
        objects, boolean, "nonNull", jvm.PythonUtils.toSeq([set_]), none, False, False, False, jvm.scala.Option.empty()
    )
    passed = rows.withColumn("__passed", Column(tools.column(seen))).filter("__passed").drop("__passed")
    return passed, lambda: (int(counter.count()), int(counter.sum()))
