"""All records of all runs as one Delta table for BI tools: the record columns, and the ids that the fact tables are
joined by.

A batch of record files is one commit under a number that only grows. Delta takes a number once, so a batch that is
written again after a crash leaves no row twice.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq

from runtime.errors import StoreError
from runtime.lake.spark import s3a
from runtime.lake.table import LakeTable, path_of, quoted
from runtime.store.base import Store
from runtime.tracking.schema import SCHEMA

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

IDS = ("source_object_id", "destination_id", "destination_object_id")
_TYPES = {"string": "STRING", "int64": "BIGINT", "int32": "INT", "timestamp[us, tz=UTC]": "TIMESTAMP_LTZ"}
COLUMNS = (*((f.name, _TYPES[str(f.type)]) for f in SCHEMA), *((name, "BIGINT") for name in IDS))
#: Rows that go into one file of the table.
FILE_ROWS = 1_000_000
APP = "ondatra.sync_log"
#: What old readers do not know is off.
PROPERTIES = {
    "delta.enableDeletionVectors": "false",
    "delta.checkpointInterval": "20",
    "delta.logRetentionDuration": "interval 30 days",
}


@dataclass(frozen=True)
class LogFile:
    """A record file on its way into the table; `ids` are those of its run, in the order of IDS."""

    store: Store
    path: str
    rows: int
    run_id: int
    ids: tuple[int | None, int | None, int | None]


def append(
    spark: SparkSession, url: str, files: Sequence[LogFile], number: int, *, cluster: bool | None = None
) -> None:
    """Adds the records of these files as batch `number`; does nothing if that was committed before. Raises whatever
    Spark raises.

    On a `cluster` files in a bucket are read there by its executors; where Spark is this machine, from the copies that
    it keeps anyway.
    """
    table = LakeTable(url)
    if not table.exists(spark):
        _create(spark, table)
    rows = sum(f.rows for f in files)
    places = _places(spark, files, not spark.sparkContext.master.startswith("local") if cluster is None else cluster)
    frame = _records(spark, files, places).coalesce(max(1, -(-rows // FILE_ROWS)))
    options: Mapping[str, Any] = {
        "txnAppId": APP,
        "txnVersion": number,
        "userMetadata": f"record files of batch {number}: {len(files)}",
    }
    frame.write.format("delta").mode("append").options(**options).save(table.path)


def _create(spark: SparkSession, table: LakeTable) -> None:
    listed = ", ".join(f"{quoted(name)} {kind}" for name, kind in COLUMNS)
    told = ", ".join(f"'{k}' = '{v}'" for k, v in PROPERTIES.items())
    spark.sql(f"CREATE TABLE IF NOT EXISTS {table.sql} ({listed}) USING delta TBLPROPERTIES ({told})")


def _records(spark: SparkSession, files: Sequence[LogFile], places: Sequence[str]) -> DataFrame:
    """The files' rows with the ids of their runs."""
    from pyspark.sql import functions as F

    schema = ", ".join(f"{quoted(name)} {kind}" for name, kind in COLUMNS[: len(SCHEMA.names)])
    frame = spark.read.schema(schema).parquet(*places)
    runs = {str(f.run_id): f.ids for f in files}
    ids = spark.createDataFrame(
        pa.table(
            {
                "sync_run_id": list(runs),
                **{name: pa.array([told[at] for told in runs.values()], pa.int64()) for at, name in enumerate(IDS)},
            }
        )
    )
    return frame.join(F.broadcast(ids), "sync_run_id", "left").select(*(F.col(quoted(name)) for name, _ in COLUMNS))


def _places(spark: SparkSession, files: Sequence[LogFile], cluster: bool) -> list[str]:
    """As Spark takes them."""
    found: list[str] = []
    for store in {id(f.store): f.store for f in files}.values():
        paths = [f.path for f in files if f.store is store]
        if cluster and store.url.startswith("s3:"):
            for name, value in _settings_of(store).items():
                spark.conf.set(name, value)
            found += [path_of(store.url_of(path)) for path in paths]
        else:
            found += ["file://" + str(place) for place in store.locals(paths)]
    return found


def _settings_of(store: Store) -> dict[str, str]:
    from runtime.store.s3 import S3Store

    assert isinstance(store, S3Store)
    key, secret, token = store.key_now()
    found = s3a(f"fs.s3a.bucket.{store.bucket}.", store.endpoint or None, store.region, key, secret, token)
    # a kept client would ask with a token that has expired by the next time
    return {**found, "fs.s3a.impl.disable.cache": "true"} if token else found


def damaged(files: Iterable[LogFile]) -> dict[str, str]:
    """Which of the files are not whole, and why; reads every one to its end, so it is only asked when a batch
    failed."""
    found = {}
    for file in files:
        try:
            with pq.ParquetFile(file.store.local(file.path)) as source:
                missing = set(SCHEMA.names[:1]) - set(source.schema_arrow.names)
                rows = sum(batch.num_rows for batch in source.iter_batches()) if not missing else 0
            if missing or rows != file.rows:
                found[file.path] = (
                    "it has no column `identifier`" if missing else f"it has {rows:,} rows, not {file.rows:,}"
                )
        except (pa.ArrowException, OSError, StoreError) as error:
            found[file.path] = str(error).splitlines()[0][:300]
    return found


def count(spark: SparkSession, url: str) -> int:
    """The rows of the table."""
    return int(LakeTable(url).read(spark).count())
