"""Tables of connections as DataFrames. Nothing is filtered or summed up over there: text compares otherwise in other
databases."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from runtime.config import from_env
from runtime.errors import BuildError, said_by_spark
from runtime.lake.spark import s3a
from runtime.sources.connections import DRIVERS, Connection

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

NAME = re.compile(r"[a-z_][a-z0-9_$]*\Z")
#: What a person can do about the commonest refusals.
WAYS_OUT = {
    "No suitable driver": "its driver is not among the jars",
    "ClassNotFoundException": "its driver or file system is not among the jars",
    "DATA_SOURCE_NOT_FOUND": "its driver or file system is not among the jars",
}
JARS = (
    "-m runtime.lake.jars GROUP:NAME:VERSION FOLDER` fetches one into the folder of ONDATRA_JARS_DIR, see "
    "docs/connections.md"
)


def open_table(spark: SparkSession, connection: Connection, name: str) -> DataFrame:
    """`connection.schema.table`, not yet read. BuildError, without secrets, if it cannot be reached or is not there."""
    _, schema, table = name.split(".")
    for part in (schema, table):
        if not NAME.match(part):
            raise BuildError(f"{name}: {part!r} is no plain name; make a view for it in {connection.name}")
    try:
        return {"jdbc": _jdbc, "s3": _s3, "catalog": _catalog}[connection.type](spark, connection, schema, table)
    except Exception as error:
        raise BuildError(f"{name}: {explained(connection, error)}") from None


def explained(connection: Connection, error: BaseException) -> str:
    """The other side's words in one line, without secrets, with a way out where one is known."""
    text = f"{error}\n{getattr(error, '_stackTrace', '')}"  # causes stand in the trace only
    cause = re.findall(r"(?:SQL\w*|ClassNotFound|FileNotFound|AccessDenied)Exception: (.+)", text)
    line = said_by_spark(
        cause[-1] if cause else next((t for t in text.splitlines() if t.strip()), type(error).__name__)
    )
    way_out = next((f" ({way}: `{from_env().python} {JARS})" for mark, way in WAYS_OUT.items() if mark in text), "")
    return connection.scrub(line)[:500] + way_out


def _jdbc(spark: SparkSession, connection: Connection, schema: str, table: str) -> DataFrame:
    told = connection.told
    options = {
        **{k: str(v).lower() if isinstance(v, bool) else str(v) for k, v in told.get("properties", {}).items()},
        "url": told["url"],
        "driver": DRIVERS[told["url"].split(":")[1]],
        "dbtable": f"{schema}.{table}",
        "fetchsize": str(told.get("fetch_size", 10_000)),
        "preferTimestampNTZ": "true",
        "pushDownPredicate": "false",
        "pushDownAggregate": "false",
        "pushDownLimit": "false",
        "pushDownOffset": "false",
        "pushDownTableSample": "false",
    }
    options |= {k: str(told[k]) for k in ("user", "password") if told.get(k)}
    return spark.read.format("jdbc").options(**options).load()


def _s3(spark: SparkSession, connection: Connection, schema: str, table: str) -> DataFrame:
    told = connection.told
    options = s3a(
        "fs.s3a.",
        told.get("endpoint"),
        told.get("region", "us-east-1"),
        told["access_key"],
        told["secret_key"],
        told.get("session_token"),
    )
    # a file system is cached by its host alone: two connections to one bucket with other keys must not share it
    options |= {"fs.s3a.path.style.access": "true", "fs.s3a.impl.disable.cache": "true"}
    path = told["url"].replace("s3://", "s3a://", 1).rstrip("/") + f"/{schema}/{table}"
    frame = spark.read.format(told.get("format", "parquet")).options(**options).load(path)
    if told.get("format") == "delta":
        check_below(frame, path)
    return frame


def check_below(frame: DataFrame, path: str) -> None:
    """BuildError where the log of a Delta table names a file that is not the table's own: one of this machine, say."""
    elsewhere = next((file for file in frame.inputFiles() if not file.startswith(f"{path}/")), None)
    if elsewhere:
        raise BuildError(f"its log names the file {elsewhere}, which is not below the table")


def _catalog(spark: SparkSession, connection: Connection, schema: str, table: str) -> DataFrame:
    """A catalog belongs to the session, which is one walk's own: no other project finds it there."""
    prefix = f"spark.sql.catalog.{connection.name}"
    spark.conf.set(prefix, connection.told["class"])
    for key, value in connection.told["options"].items():
        spark.conf.set(f"{prefix}.{key}", str(value).lower() if isinstance(value, bool) else str(value))
    return spark.read.table(".".join(f"`{part}`" for part in (connection.name, schema, table)))
