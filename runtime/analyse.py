"""The columns of a model in Spark's dialect: only Spark's analyser knows them, over empty inputs of the right types."""
from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from runtime.model import Column
from runtime.sql import Translated

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.types import DataType, StructType

NAMES = {"tinyint": "TINYINT", "smallint": "SMALLINT", "int": "INTEGER", "bigint": "BIGINT", "float": "FLOAT", "double": "DOUBLE", "boolean": "BOOLEAN",
         "string": "VARCHAR", "binary": "BLOB", "date": "DATE", "timestamp": "TIMESTAMP WITH TIME ZONE", "timestamp_ntz": "TIMESTAMP", "void": "VARCHAR"}


def columns_of(schema: StructType) -> tuple[Column, ...]:
    """The columns with the names that DuckDB gives to the same types."""
    return tuple(Column(f.name, duckdb_type(f.dataType), "STRING" if f.dataType.simpleString() == "void" else f.dataType.simpleString().upper())
                 for f in schema.fields)


def duckdb_type(kind: DataType) -> str:
    from pyspark.sql import types as t

    if isinstance(kind, t.ArrayType):
        return f"{duckdb_type(kind.elementType)}[]"
    if isinstance(kind, t.MapType):
        return f"MAP({duckdb_type(kind.keyType)}, {duckdb_type(kind.valueType)})"
    if isinstance(kind, t.StructType):
        return "STRUCT(" + ", ".join(f'"{f.name}" {duckdb_type(f.dataType)}' for f in kind.fields) + ")"
    text = kind.simpleString()
    return NAMES.get(text, text.upper() if text.startswith("decimal") else "TIME" if text.startswith("time(") else text.upper())


def with_spark(session: Callable[[], SparkSession]) -> Callable[[str, Translated, Mapping[str, tuple[Column, ...]]], tuple[Column, ...] | None]:
    """Analyses over empty views in a session that is started at the first need."""
    def analyse(name: str, translated: Translated, columns: Mapping[str, tuple[Column, ...]]) -> tuple[Column, ...] | None:
        spark = session()
        for table in translated.tables:
            if table not in columns:
                return None
            fields = ", ".join(f"`{c.name.replace('`', '``')}` {c.spark_type}" for c in columns[table])
            spark.createDataFrame([], fields).createOrReplaceTempView(table.replace(".", "__"))
        return columns_of(spark.sql(translated.spark_sql).schema)
    return analyse
