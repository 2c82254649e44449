"""Transactions of Delta's, by private parts of it: what makes a new table with its rows one commit, and a change of a
large one a commit in place.

Nobody promises that these stay as they are. Each has an equal of public parts (`LakeTable` creates and reads by the
table's path, a MERGE writes), and is used where `runtime.lake.proof` has seen it work. More of them, for deletion
vectors of few rows, are `runtime.lake.vectors`.
"""

from __future__ import annotations

import json
import time
import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NewType

from runtime.lake.internals import activate, expression, none, sequence

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

#: Columns that say where a row of a table lies.
FILE, PLACE = "__ondatra_file", "__ondatra_place"
#: Statistics are read by nobody; Delta asks how long texts in them may be.
TEXT = 32
#: How columns of tables that are created now are found in their files.
MAPPING = "spark.databricks.delta.properties.defaults.columnMapping.mode"
#: Delta's own, in the JVM: what a commit does.
Actions = NewType("Actions", object)


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
            self.log.createDataFrame(self.transaction.snapshot(), self.files, False, none(self.spark)), self.spark
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
            expression(self.spark, F.lit(True)),
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
        update = getattr(jvm.org.apache.spark.sql.delta, "DeltaOperations$Update")(none(self.spark))
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
    delta, option = jvm.org.apache.spark.sql.delta, jvm.scala.Option
    # of a table with a change feed it may not change with rows: nothing is that already
    spark.conf.set(MAPPING, "name")
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
    operation = getattr(delta, "DeltaOperations$CreateTable")(transaction.metadata(), False, True, none(spark))
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
    frame = log.createDataFrame(snapshot, files.get(), False, none(spark))
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
