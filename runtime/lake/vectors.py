"""Deletion vectors of few rows, made by the driver: more of Delta's private parts, as `transactions` has them.

Delta makes them by jobs, of rows grouped by their files and of files joined with their statistics. Of few rows these
take longer than everything else of a commit.
"""

from __future__ import annotations

import struct
from collections import defaultdict
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from runtime.lake.internals import sequence
from runtime.lake.transactions import FILE, PLACE, Actions, Opened

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

#: Rows that are brought to the driver, and files of which each is asked for by itself.
MOST_ROWS, MOST_FILES = 5_000, 50


def without(opened: Opened, old: DataFrame) -> Actions | None:
    """What `Opened.without` does, of few rows; None where these lie in many files, or in one without statistics."""
    places: dict[str, list[int]] = defaultdict(list)
    for file, place in old.selectExpr(FILE, PLACE).collect():
        places[file].append(place)
    return _without(opened, places) if len(places) <= MOST_FILES else None


def _without(opened: Opened, places: dict[str, list[int]]) -> Actions | None:
    spark, transaction, log = opened.spark, opened.transaction, opened.log
    helper = _delta(spark).commands.DMLWithDeletionVectorsHelper
    known = helper.generateCandidateFileMap(log.dataPath(), opened.files)
    touched = {file: helper.getTouchedFile(log.dataPath(), file, known) for file in places}
    if not all(file.numPhysicalRecords().isDefined() for file in touched.values()):
        return None

    data = [_data(spark, file, touched[file].deletionVector(), rows) for file, rows in places.items()]
    length = _delta(spark).util.Utils.getRandomPrefixLength(transaction.metadata())
    store = _delta(spark).commands.DeletionVectorWriter.createMapperToStoreDeletionVectors(
        spark._jsparkSession, log.newDeltaHadoopConf(), log.dataPath(), length
    )
    stored = store.apply(sequence(spark, data).iterator()).toSeq()
    marked = helper.findFilesWithMatchingRows(transaction, known, stored)
    return Actions(sequence(spark, [a for i in range(marked.size()) for a in _actions(marked.apply(i))]))


def _data(spark: SparkSession, file: str, vector: Any, places: Sequence[int]) -> Any:
    """The rows of a file as Delta stores them, put together with those that it lacks already."""
    jvm: Any = spark._jvm
    known = jvm.scala.Option.apply(vector.serializeToBase64() if vector is not None else None)
    vectors = _delta(spark).deletionvectors
    numbers = jvm.scala.collection.immutable.ArraySeq.unsafeWrapArray(_longs(spark, places))
    bitmap = vectors.RoaringBitmapArray.apply(numbers)
    told = bitmap.serializeAsByteArray(vectors.RoaringBitmapArrayFormat.Portable())
    return _delta(spark).commands.DeletionVectorData.apply(file, known, told, len(places))


def _longs(spark: SparkSession, values: Sequence[int]) -> Any:
    """An array of Java's, in a few messages however many they are."""
    jvm: Any = spark._jvm
    gateway: Any = spark.sparkContext._gateway
    made = gateway.new_array(jvm.long, len(values))
    jvm.java.nio.ByteBuffer.wrap(struct.pack(f">{len(values)}q", *values)).asLongBuffer().get(made)
    return made


def _actions(file: Any) -> list[Any]:
    """What a commit says of a file that lacks more rows than before; its statistics become bounds."""
    entry = file.fileLogEntry()
    if file.isFullyReplaced():
        return [entry.removeWithTimestamp(getattr(entry, "removeWithTimestamp$default$1")(), True)]
    both = entry.removeRows(file.newDeletionVector(), True, True)
    return [both._1(), both._2()]


def _delta(spark: SparkSession) -> Any:
    jvm: Any = spark._jvm
    return jvm.org.apache.spark.sql.delta
