"""Tables of other databases that several models of one run read: each is asked for once, in one query, and lies as
Parquet in the staging area until the run ends. So all of them see the same rows.

What is asked for are the columns that any of them needs, as Spark's optimizer has it; a model that is alone with its
table reads it without a copy.
"""

from __future__ import annotations

import logging
import threading
import uuid
from collections import Counter
from collections.abc import Collection, Mapping
from contextlib import suppress
from types import TracebackType
from typing import TYPE_CHECKING

from runtime.errors import BuildError, StoreError
from runtime.lake import effort, internals
from runtime.lake.table import path_of, quoted
from runtime.model import Column
from runtime.sources import brought
from runtime.sources.columns import unknown
from runtime.sources.connections import Connection
from runtime.sources.plans import open_query
from runtime.sources.tables import explained, open_table
from runtime.sql import Translated
from runtime.store.base import Store

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType

log = logging.getLogger("ondatra.sources")
#: One file, which a failed attempt leaves unread: nothing has to be moved to its place.
WRITTEN = {
    "mapreduce.fileoutputcommitter.marksuccessfuljobs": "false",
    "mapreduce.fileoutputcommitter.algorithm.version": "2",
}
#: What models need of tables stays true from run to run, as long as texts and columns do.
MOST_REMEMBERED = 2_000
_needed: dict[object, frozenset[str] | None] = {}


class Copies:
    """Of one run, whose end removes them. `read` are its models, `columns` those of all that they read. Safe for
    threads."""

    def __init__(
        self,
        read: Collection[Translated],
        connections: Mapping[str, Connection],
        columns: Mapping[str, tuple[Column, ...]],
    ) -> None:
        self._connections = connections
        times = Counter(table for model in read for table in model.tables if table.count(".") == 2)
        self._copies = {
            name: _Copy(connection, name, [model for model in read if name in model.tables], columns)
            for name, count in times.items()
            if count > 1 and (connection := self._of(name)).type == "jdbc"
        }

    def open(self, spark: SparkSession, name: str) -> DataFrame:
        """`connection.schema.table`; other temporary views of the session may be gone afterwards. BuildError, without
        secrets, if it cannot be read."""
        copy = self._copies.get(name)
        return copy.open(spark) if copy else open_table(spark, self._of(name), name)

    def _of(self, table: str) -> Connection:
        return self._connections[table.split(".")[0]]

    def __enter__(self) -> Copies:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for copy in self._copies.values():
            copy.remove()


class _Copy:
    """Of one table; made by whoever needs it first. If that fails, whoever waited tries for itself."""

    def __init__(
        self,
        connection: Connection,
        name: str,
        readers: Collection[Translated],
        columns: Mapping[str, tuple[Column, ...]],
    ) -> None:
        self.connection, self.name, self.readers, self.columns = connection, name, readers, columns
        self._guard = threading.Lock()
        self._made: tuple[str, StructType] | None = None
        self._places: list[tuple[Store, str]] = []
        self._is_over = False

    def open(self, spark: SparkSession) -> DataFrame:
        """All columns of the table; those that nobody needs are empty."""
        with self._guard:
            if self._is_over:  # a builder that did not end with its run
                raise BuildError(f"{self.name}: the run that reads it is over")
            if self._made is None:
                self._made = self._make(spark)
            if self._is_over:  # since then, and what was removed then was not all
                self.remove()
            path, schema = self._made
        return spark.read.schema(schema).parquet(path)

    def _make(self, spark: SparkSession) -> tuple[str, StructType]:
        table = open_table(spark, self.connection, self.name)
        store, mine = brought.place()
        place = f"{mine}/{uuid.uuid4().hex}"
        self._places.append((store, place))
        path = path_of(store.url_of(place))
        try:
            table.select(*map(quoted, self._asked(spark, table))).write.options(**WRITTEN).parquet(path)
        except Exception as error:
            raise BuildError(f"{self.name}: {explained(self.connection, error)}") from error
        return path, table.schema

    def _asked(self, spark: SparkSession, table: DataFrame) -> list[str]:
        """The columns that are asked for; one at least, which tells how many rows there are."""
        needed: set[str] = set()
        for model in self.readers:
            of_model = needed_of(spark, table, self.name, model, self.columns)
            if of_model is None:
                return table.columns
            needed |= of_model
        return [column for column in table.columns if column in needed] or table.columns[:1]

    def remove(self) -> None:
        self._is_over = True  # without the guard: who holds it may be reading
        for store, place in self._places:
            with suppress(StoreError):  # it goes with the process
                store.delete_prefix(place)


def needed_of(
    spark: SparkSession, table: DataFrame, name: str, model: Translated, columns: Mapping[str, tuple[Column, ...]]
) -> frozenset[str] | None:
    """The columns of the table `name` that the model's result depends on, whatever its other inputs hold; None where
    that cannot be told: the plan of a model that asks for the time holds for one moment."""
    if model.volatile:
        return None
    key = (name, model.spark_sql, tuple(table.columns), tuple(columns.get(other) for other in model.tables))
    if key not in _needed:
        if len(_needed) > MOST_REMEMBERED:
            _needed.clear()
        try:
            _needed[key] = _planned(spark, table, name, model, columns)
        except Exception as error:  # the model itself says what is wrong with it
            log.info("%s is read whole: which of its columns are needed is not known: %s", name, error)
            return None
    return _needed[key]


def _planned(
    spark: SparkSession, table: DataFrame, name: str, model: Translated, columns: Mapping[str, tuple[Column, ...]]
) -> frozenset[str]:
    for other in model.tables:
        frame = table if other == name else unknown(spark, columns[other])
        frame.createOrReplaceTempView(other.replace(".", "__"))
    for file in model.files:
        unknown(spark, file.columns).createOrReplaceTempView(file.view)
    with effort.fit(spark, 0):
        return internals.asked_columns(open_query(spark, model))
