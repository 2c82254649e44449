"""Files, wherever Hadoop reaches: there is no other door to what lies in the lake than through its JVM."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def remove(spark: SparkSession, path: str) -> None:
    """A file or a folder with all that is in it; Delta forgets what it knew of tables there."""
    place, system = _place(spark, path)
    system.delete(place, True)
    jvm: Any = spark._jvm
    jvm.org.apache.spark.sql.delta.DeltaLog.clearCache()


def sweep(spark: SparkSession, folder: str, prefix: str) -> None:
    """Removes what stands in this folder under names that begin so."""
    place, system = _place(spark, folder)
    for found in system.listStatus(place) if system.exists(place) else ():
        if found.getPath().getName().startswith(prefix):
            system.delete(found.getPath(), True)


def read_text(spark: SparkSession, path: str) -> str:
    """Empty where there is no such file."""
    place, system = _place(spark, path)
    if not system.exists(place):
        return ""
    jvm: Any = spark._jvm
    stream = system.open(place)
    try:
        return str(jvm.org.apache.commons.io.IOUtils.toString(stream, "UTF-8"))
    finally:
        stream.close()


def write_text(spark: SparkSession, path: str, text: str) -> None:
    place, system = _place(spark, path)
    stream = system.create(place, True)
    stream.write(bytearray(text.encode()))
    stream.close()


def _place(spark: SparkSession, path: str) -> tuple[Any, Any]:
    jvm: Any = spark._jvm
    place = jvm.org.apache.hadoop.fs.Path(path)
    return place, place.getFileSystem(spark._jsparkSession.sessionState().newHadoopConf())
