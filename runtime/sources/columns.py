"""The columns of a model in Spark's dialect: only Spark's analyser knows them, over empty inputs of the right types."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from runtime.errors import BuildError, said_by_spark
from runtime.lake.table import quoted
from runtime.model import Column
from runtime.sources.connections import Connection
from runtime.sources.plans import open_query
from runtime.sources.tables import open_table
from runtime.sql import SqlProblems, Translated

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import DataType, StructType

NAMES = {
    "tinyint": "TINYINT",
    "smallint": "SMALLINT",
    "int": "INTEGER",
    "bigint": "BIGINT",
    "float": "FLOAT",
    "double": "DOUBLE",
    "boolean": "BOOLEAN",
    "string": "VARCHAR",
    "binary": "BLOB",
    "date": "DATE",
    "timestamp": "TIMESTAMP WITH TIME ZONE",
    "timestamp_ntz": "TIMESTAMP",
    "void": "VARCHAR",
}


def columns_of(schema: StructType) -> tuple[Column, ...]:
    """The columns with the names that DuckDB gives to the same types."""
    return tuple(
        Column(
            f.name,
            duckdb_type(f.dataType),
            "STRING" if f.dataType.simpleString() == "void" else f.dataType.simpleString().upper(),
        )
        for f in schema.fields
    )


def empty(spark: SparkSession, columns: Iterable[Column]) -> DataFrame:
    """No rows of these columns."""
    return spark.createDataFrame([], _ddl(columns))


def unknown(spark: SparkSession, columns: Iterable[Column]) -> DataFrame:
    """Rows of these columns of which Spark knows nothing when it plans, not even that there are none."""
    return spark.createDataFrame(spark.sparkContext.emptyRDD(), _ddl(columns))


def _ddl(columns: Iterable[Column]) -> str:
    return ", ".join(f"{quoted(c.name)} {c.spark_type}" for c in columns)


def duckdb_type(kind: DataType) -> str:
    from pyspark.sql import types as t

    if isinstance(kind, t.ArrayType):
        return f"{duckdb_type(kind.elementType)}[]"
    if isinstance(kind, t.MapType):
        return f"MAP({duckdb_type(kind.keyType)}, {duckdb_type(kind.valueType)})"
    if isinstance(kind, t.StructType):
        return "STRUCT(" + ", ".join(f'"{f.name}" {duckdb_type(f.dataType)}' for f in kind.fields) + ")"
    text = kind.simpleString()
    return NAMES.get(
        text, text.upper() if text.startswith("decimal") else "TIME" if text.startswith("time(") else text.upper()
    )


class WithSpark:
    """Asks the analyser over empty views, in a session that is started at the first need. No data is read."""

    def __init__(self, session: Callable[[], SparkSession], *, deep: bool = False) -> None:
        self.session, self.deep = session, deep
        self._spark: SparkSession | None = None

    @property
    def spark(self) -> SparkSession:
        self._spark = self._spark or self.session()
        return self._spark

    def columns(
        self, name: str, translated: Translated, known: Mapping[str, tuple[Column, ...]]
    ) -> tuple[Column, ...] | None:
        """The columns of a model; None if those of a table are not known. SqlProblems if Spark refuses the SQL."""
        from pyspark.errors import PySparkException

        if any(table not in known for table in translated.tables):
            return None
        views = {t.replace(".", "__"): known[t] for t in translated.tables} | {
            f.view: f.columns for f in translated.files
        }
        for view, columns in views.items():
            empty(self.spark, columns).createOrReplaceTempView(view)
        try:
            return columns_of(open_query(self.spark, translated).schema)
        except PySparkException as error:
            raise SqlProblems([refusal(error, translated)]) from None

    def outside(self, connection: Connection, name: str) -> tuple[Column, ...]:
        """The columns of a connection's table. BuildError if it cannot be reached."""
        columns = columns_of(open_table(self.spark, connection, name).schema)
        check_names(name, [c.name for c in columns], connection)
        return columns


def check_names(table: str, names: Sequence[str], connection: Connection) -> None:
    """BuildError for columns that other databases tell apart and SQL does not here."""
    told: dict[str, str] = {}
    for name in names:
        other = told.get(name.lower())
        if other is not None or not name:
            what = "a column without a name" if not name else f"the columns {other} and {name}, alike but for case"
            raise BuildError(f"{table} has {what}: make a view in {connection.name} that gives them names of their own")
        told[name.lower()] = name


def refusal(error: Exception, translated: Translated) -> tuple[int, str]:
    """(line of the SQL, Spark's message as one line with the tables' own names)."""
    text = str(getattr(error, "desc", None) or error)
    line = re.search(r"\bline (\d+),? pos \d+", text)
    message = said_by_spark(text)
    for table in translated.tables:
        message = message.replace(f"`{table.replace('.', '__')}`", table)
    if translated.columns is not None:  # the text is the translation's: its lines are not the file's
        return (
            1,
            f"Spark refuses the translation ({message}); rewrite it, or write the model in Spark SQL with `-- "
            f"@dialect: spark`",
        )
    return int(line[1]) if line else 1, message
