"""Private parts of Spark, each behind a plain function. Those of Delta are `runtime.lake.transactions`.

Nobody promises that these stay as they are. The first half is what the JVM offers through no other door, and what every
run needs. The second half only makes builds quicker: a rule of the optimizer, hashes that go on from a hash, filters,
counting in passing. Each of these has an equal of public parts, and is used where `runtime.lake.proof` has seen it
work.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NewType

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, Observation, SparkSession

#: From where Spark's xxhash64 begins.
SEED = 42
#: Spark's own, in the JVM: what a query consists of.
Plan = NewType("Plan", object)


def activate(spark: SparkSession) -> None:
    """Makes it the session of this thread: Delta's parts ask the active one for their settings, the run's id among
    them."""
    jvm: Any = spark._jvm
    jvm.org.apache.spark.sql.classic.SparkSession.setActiveSession(spark._jsparkSession)


def versions(spark: SparkSession) -> tuple[str, str]:
    """Of Spark and of Delta, as they are loaded; the latter empty where it cannot be asked."""
    jvm: Any = spark._jvm
    try:
        return str(spark.version), str(getattr(jvm.io.delta, "package").VERSION())  # noqa: B009 - a word of Python's
    except Exception:  # what does not say its version is another one
        return str(spark.version), ""


# the plan


def plan_text(frame: DataFrame) -> str:
    """The optimized plan, a node a line."""
    return str(_plan(frame).toString())


def leaf_bytes(frame: DataFrame) -> list[int]:
    """Bytes of each input of the plan, as Spark guesses them; astronomical where it has no idea."""
    leaves = _plan(frame).collectLeaves()
    return [int(str(leaves.apply(i).stats().sizeInBytes())) for i in range(leaves.size())]


def _plan(frame: DataFrame) -> Any:
    plan: Any = frame._jdf
    return plan.queryExecution().optimizedPlan()


def scanned_bytes(kept: DataFrame) -> int | None:
    """About how many bytes other databases gave a persisted frame as it was computed; None where that is not told."""
    session: Any = kept.sparkSession._jsparkSession
    try:
        found = session.sharedState().cacheManager().lookupCachedData(kept._jdf).get()
        scans = _scans(found.cachedRepresentation().cacheBuilder().cachedPlan())
        sizes = [int(s.metrics().apply("numOutputRows").value()) * int(s.schema().defaultSize()) for s in scans]
    except Exception:  # another Spark calls it otherwise
        return None
    return sum(sizes) if sizes else None


def asked_columns(frame: DataFrame) -> frozenset[str]:
    """The columns that a query, planned without adaptive execution, would ask of other databases."""
    plan: Any = frame._jdf
    plan = plan.queryExecution().executedPlan()
    parts = [plan, *map(plan.subqueriesAll().apply, range(plan.subqueriesAll().size()))]
    return frozenset(str(name) for part in parts for scan in _scans(part) for name in scan.schema().fieldNames())


def _scans(plan: Any) -> list[Any]:
    """Those of rows, as other databases give them, in a plan as it ran."""
    kind = str(plan.getClass().getSimpleName())
    if kind == "AdaptiveSparkPlanExec":
        return _scans(plan.executedPlan())
    if kind.endswith("QueryStageExec"):
        return _scans(plan.plan())
    children = plan.children()
    below = [scan for i in range(children.size()) for scan in _scans(children.apply(i))]
    return [plan] if kind in ("RowDataSourceScanExec", "BatchScanExec") else below


# what a text consists of


def parsed(spark: SparkSession, sql: str) -> Plan:
    """By the session's own parser; nothing runs."""
    session: Any = spark._jsparkSession
    return Plan(session.sessionState().sqlParser().parsePlan(sql))


def analysed(frame: DataFrame) -> Plan:
    """The plan in which names stand for what they mean."""
    plan: Any = frame._jdf
    return Plan(plan.queryExecution().analyzed())


def builtin_functions(spark: SparkSession) -> list[str]:
    """The names of Spark's functions and table functions, some with a catalog before them."""
    jvm: Any = spark._jvm
    registries = jvm.org.apache.spark.sql.catalyst.analysis
    kinds = ("FunctionRegistry", "TableFunctionRegistry")
    said = [getattr(registries, kind).builtin().listFunction().mkString(" ") for kind in kinds]
    return " ".join(map(str, said)).split()


# quicker than public parts: a rule of the optimizer


def optimize_by(spark: SparkSession, rule: object) -> None:
    """The rule is the last of this session's optimizer from now on."""
    session: Any = spark._jsparkSession
    methods = session.experimental()
    others = methods.extraOptimizations()
    if not others.contains(rule):
        getattr(methods, "extraOptimizations_$eq")(others.appended(rule))


# quicker than public parts: expressions


def chained_hash(spark: SparkSession, begin: Sequence[int | str], texts: Sequence[str]) -> Column:
    """xxhash64(*begin, *texts), where `begin` are values and `texts` SQL. It goes on from a hash, so that of the first
    values, the same for all rows, is made once."""
    from pyspark.sql import functions as F

    values = sequence(spark, [expression(spark, F.expr(text)) for text in texts])
    return _column(spark, _catalyst(spark).XxHash64(values, begun_hash(spark, begin)))


def begun_hash(spark: SparkSession, begin: Sequence[int | str]) -> int:
    """xxhash64(*begin)."""
    expressions = _catalyst(spark)
    literal = _single(expressions, "Literal")
    values = sequence(spark, [literal.apply(value) for value in begin])
    return int(expressions.XxHash64(values, SEED).eval(None))


def filter_of(spark: SparkSession, value: Column, items: int, bits: int) -> Column:
    """An aggregate: a Bloom filter of all values of a BIGINT column. It works out the number of its functions from the
    items it expects."""
    from pyspark.sql import Column
    from pyspark.sql import functions as F

    module = _class(spark, "org.apache.spark.sql.Column$").getField("MODULE$").get(None)
    arguments = [value, F.lit(items).cast("bigint"), F.lit(bits).cast("bigint")]
    return Column(module.internalFn("bloom_filter_agg", sequence(spark, [a._jc for a in arguments])))


def may_contain(spark: SparkSession, made: Column, value: Column) -> Column:
    """Whether a filter, which is the same for all rows, may contain the BIGINT."""
    found = _catalyst(spark).BloomFilterMightContain(expression(spark, made), expression(spark, value))
    return _column(spark, found)


def counted(spark: SparkSession, rows: DataFrame, value: Column) -> tuple[DataFrame, Callable[[], tuple[int, int]]]:
    """The same rows, and what tells their number and the sum of the BIGINT, once they have passed.

    An aggregate would be the end of the rows, and Spark's own observation of rows is interpreted, which takes as long
    as the pass. An accumulator that the compiled code of the pass calls for each row costs nothing that could be
    measured. Spark adds a task's share again where it has to repeat a task: a sum that is too large is then seen by
    whoever compares it.
    """
    jvm: Any = spark._jvm
    context: Any = spark.sparkContext._jsc
    expressions, types = _catalyst(spark), jvm.org.apache.spark.sql.types

    counter = context.sc().longAccumulator()
    held = expressions.Literal(counter, types.ObjectType(counter.getClass()))
    # the way to call a method that returns nothing: a bean whose property is set
    added = jvm.PythonUtils.toScalaMap({"add": expression(spark, value)})
    bean = expressions.objects.InitializeJavaBean(held, added)

    # never the same twice, so that it is asked once for each row, and where it stands
    objects, boolean = _class(spark, "java.util.Objects"), _single(types, "BooleanType")
    seen = expressions.objects.StaticInvoke(
        objects, boolean, "nonNull", sequence(spark, [bean]), sequence(spark, []), False, False, False, none(spark)
    )

    passed = (
        rows.withColumn("__ondatra_passed", _column(spark, seen)).filter("__ondatra_passed").drop("__ondatra_passed")
    )
    return passed, lambda: (int(counter.count()), int(counter.sum()))


def told_by(spark: SparkSession, watch: Observation) -> dict[str, Any] | None:
    """What an observation saw of rows that were written; None where Spark left it out of the plan, as it does with rows
    of which it knows that there are none. Asked for in public, it would be waited for."""
    context: Any = spark.sparkContext._jsc
    context.sc().listenerBus().waitUntilEmpty()
    seen: Any = watch._jo
    return dict(watch.get) if seen.future().isCompleted() else None


# the JVM


def _catalyst(spark: SparkSession) -> Any:
    jvm: Any = spark._jvm
    return jvm.org.apache.spark.sql.catalyst.expressions


def _tools(spark: SparkSession) -> Any:
    jvm: Any = spark._jvm
    return jvm.org.apache.spark.sql.classic.ExpressionUtils


def expression(spark: SparkSession, column: Column) -> Any:
    """What the column is to Spark's planner."""
    return _tools(spark).expression(column._jc)


def _column(spark: SparkSession, made: Any) -> Column:
    from pyspark.sql import Column

    return Column(_tools(spark).column(made))


def sequence(spark: SparkSession, values: Sequence[Any]) -> Any:
    """Scala's."""
    jvm: Any = spark._jvm
    return jvm.PythonUtils.toSeq(list(values))


def none(spark: SparkSession) -> Any:
    """Scala's: an Option without a value."""
    jvm: Any = spark._jvm
    return jvm.scala.Option.empty()


def _single(package: Any, name: str) -> Any:
    """An object of Scala's, of which there is one."""
    return getattr(package, f"{name}$").__getattr__("MODULE$")


def _class(spark: SparkSession, name: str) -> Any:
    jvm: Any = spark._jvm
    loader = jvm.java.lang.Thread.currentThread().getContextClassLoader()
    return jvm.java.lang.Class.forName(name, True, loader)
