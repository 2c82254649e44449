"""Every private part of Spark and of Delta that is used anywhere, each behind a plain function.

Nobody promises that these stay as they are. The first half is what the JVM offers through no other door, and what every
run needs. The second half only makes builds quicker: hashes that go on from a hash, filters, counting in passing,
tables that have rows from the start, and commits in place. Each of these has an equal of public parts, and is used
where `runtime.lake.proof` has seen it work.
"""

from __future__ import annotations

import json
import time
import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NewType

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, Observation, SparkSession

#: Columns that say where a row of a table lies.
FILE, PLACE = "__ondatra_file", "__ondatra_place"
#: Statistics are read by nobody; Delta asks how long texts in them may be.
TEXT = 32
#: How columns of tables that are created now are found in their files.
MAPPING = "spark.databricks.delta.properties.defaults.columnMapping.mode"
#: From where Spark's xxhash64 begins.
SEED = 42
#: Delta's own, in the JVM: what a commit does.
Actions = NewType("Actions", object)
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

    values = sequence(spark, [_tools(spark).expression(F.expr(text)._jc) for text in texts])
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
    tools = _tools(spark)
    return _column(
        spark, _catalyst(spark).BloomFilterMightContain(tools.expression(made._jc), tools.expression(value._jc))
    )


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
    added = jvm.PythonUtils.toScalaMap({"add": _tools(spark).expression(value._jc)})
    bean = expressions.objects.InitializeJavaBean(held, added)

    # never the same twice, so that it is asked once for each row, and where it stands
    objects, boolean = _class(spark, "java.util.Objects"), _single(types, "BooleanType")
    seen = expressions.objects.StaticInvoke(
        objects, boolean, "nonNull", sequence(spark, [bean]), sequence(spark, []), False, False, False, _none(spark)
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


# quicker than public parts: a commit in place


@dataclass(frozen=True)
class Opened:
    """A table's newest version in a transaction of Delta's: what a scan of it finds and what is committed afterwards
    belong together. The files are Delta's, all of that version."""

    spark: SparkSession
    log: Any
    transaction: Any
    files: Any

    @property
    def version(self) -> int:
        return int(self.transaction.snapshot().version())

    def rows(self, columns: Sequence[str]) -> DataFrame:
        """The table's columns with FILE and PLACE of each row. Of files that are known: asked for by the table's name,
        Delta makes them out several times for each scan."""
        from pyspark.sql import DataFrame

        frame = DataFrame(
            self.log.createDataFrame(self.transaction.snapshot(), self.files, False, _none(self.spark)), self.spark
        )
        return frame.selectExpr(*columns, f"_metadata.file_path AS {FILE}", f"_metadata.row_index AS {PLACE}")

    def highest(self, column: str) -> int:
        """The highest number that Delta gave in an identity column so far."""
        fields = json.loads(self.transaction.snapshot().metadata().schemaString())["fields"]
        told = next(f["metadata"] for f in fields if f["name"] == column)
        return int(told.get("delta.identity.highWaterMark", int(told["delta.identity.start"]) - 1))

    def without(self, old: DataFrame) -> Actions:
        """Takes rows, with their FILE and PLACE, out of their files by deletion vectors."""
        from pyspark.sql import functions as F

        jvm: Any = self.spark._jvm
        commands, option = jvm.org.apache.spark.sql.delta.commands, jvm.scala.Option
        marks = commands.DeletionVectorBitmapGenerator.buildRowIndexSetsForFilesMatchingCondition(
            self.spark._jsparkSession,
            self.transaction,
            True,
            old.select(FILE, PLACE)._jdf,
            self.files,
            _tools(self.spark).expression(F.lit(True)._jc),
            option.apply(F.col(FILE)._jc),
            option.apply(F.col(PLACE)._jc),
        )
        helper = commands.DMLWithDeletionVectorsHelper
        touched = helper.findFilesWithMatchingRows(
            self.transaction, helper.generateCandidateFileMap(self.log.dataPath(), self.files), marks
        )
        snapshot = self.transaction.snapshot()
        return Actions(helper.processUnmodifiedData(self.spark._jsparkSession, touched, snapshot, TEXT)._1())

    def nothing(self) -> Actions:
        """No row is taken out."""
        return Actions(sequence(self.spark, []))

    def written(self, rows: DataFrame, identity: str | None) -> Actions:
        """Files of rows that have every column of the table, and `_change_type`: those with one are of the change feed.
        `identity` is the column whose highest number may have grown."""
        if identity is not None:
            jvm: Any = self.spark._jvm
            self.transaction.setTrackHighWaterMarks(jvm.PythonUtils.toSeq([identity]).toSet())
        return Actions(self.transaction.writeFiles(rows._jdf))

    def commit(self, removed: Actions, added: Actions) -> None:
        """Raises Delta's error where another writer came first."""
        jvm: Any = self.spark._jvm
        update = getattr(jvm.org.apache.spark.sql.delta, "DeltaOperations$Update")(_none(self.spark))
        actions: Any = removed
        self.transaction.commit(actions.appendedAll(added), update)


def opened(spark: SparkSession, path: str) -> Opened:
    """The newest version of the table at a path."""
    jvm: Any = spark._jvm
    log = jvm.org.apache.spark.sql.delta.DeltaLog.forTable(spark._jsparkSession, path)
    transaction = log.startTransaction()
    return Opened(spark, log, transaction, _files(transaction))


def begun(
    spark: SparkSession, path: str, schema: str, properties: Mapping[str, str], rows: DataFrame
) -> Callable[[], None]:
    """A new table that has rows from the start: they are written, and what is returned commits both as version 0. It
    raises Delta's error where another writer came first. `schema` is JSON, with Delta's own metadata."""
    activate(spark)
    jvm: Any = spark._jvm
    delta, option, none = jvm.org.apache.spark.sql.delta, jvm.scala.Option, _none(spark)
    spark.conf.set(
        MAPPING, "name"
    )  # of a table with a change feed it may not change with rows: nothing is that already
    try:
        transaction = delta.DeltaLog.forTable(spark._jsparkSession, path).startTransaction()
        transaction.metadata().columnMappingMode()
    finally:
        spark.conf.unset(MAPPING)
    told = jvm.PythonUtils.toScalaMap(dict(properties))
    made = delta.actions.Metadata.apply(
        str(uuid.uuid4()),
        None,
        None,
        getattr(delta.actions.Metadata, "apply$default$4")(),
        schema,
        sequence(spark, []),
        told,
        option.apply(int(time.time() * 1000)),
    )
    transaction.updateMetadataForNewTable(made)
    added = transaction.writeFiles(rows._jdf)
    operation = getattr(delta, "DeltaOperations$CreateTable")(transaction.metadata(), False, True, none)
    return lambda: transaction.commit(added, operation)


def listed(spark: SparkSession, path: str) -> tuple[int, DataFrame] | None:
    """The number and the rows of the newest version of a table whose few files stand in its checksum; None where they
    do not. Asked for by the table's name, Delta makes them out by several jobs for each query."""
    from pyspark.sql import DataFrame

    jvm: Any = spark._jvm
    log = jvm.org.apache.spark.sql.delta.DeltaLog.forTable(spark._jsparkSession, path)
    snapshot = log.startTransaction().snapshot()
    files = _listed_files(snapshot)
    if not files.isDefined():
        return None
    frame = log.createDataFrame(snapshot, files.get(), False, _none(spark))
    return int(snapshot.version()), DataFrame(frame, spark)


def _files(transaction: Any) -> Any:
    """Few files stand in the checksum of their version; Delta's state of more is a query."""
    known = _listed_files(transaction.snapshot())
    if not known.isDefined():
        return transaction.filterFiles()
    transaction.readWholeTable()
    return known.get()


def _listed_files(snapshot: Any) -> Any:
    told = snapshot.checksumOpt()
    return told.get().allFiles() if told.isDefined() else told


# the JVM


def _catalyst(spark: SparkSession) -> Any:
    jvm: Any = spark._jvm
    return jvm.org.apache.spark.sql.catalyst.expressions


def _tools(spark: SparkSession) -> Any:
    jvm: Any = spark._jvm
    return jvm.org.apache.spark.sql.classic.ExpressionUtils


def _column(spark: SparkSession, expression: Any) -> Column:
    from pyspark.sql import Column

    return Column(_tools(spark).column(expression))


def sequence(spark: SparkSession, values: Sequence[Any]) -> Any:
    """Scala's."""
    jvm: Any = spark._jvm
    return jvm.PythonUtils.toSeq(list(values))


def _none(spark: SparkSession) -> Any:
    jvm: Any = spark._jvm
    return jvm.scala.Option.empty()


def _single(package: Any, name: str) -> Any:
    """An object of Scala's, of which there is one."""
    return getattr(package, f"{name}$").__getattr__("MODULE$")


def _class(spark: SparkSession, name: str) -> Any:
    jvm: Any = spark._jvm
    loader = jvm.java.lang.Thread.currentThread().getContextClassLoader()
    return jvm.java.lang.Class.forName(name, True, loader)
