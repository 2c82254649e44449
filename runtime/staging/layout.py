"""How rows become files: delivery order, ranges of keys or row ids, one folder for each part. Spark's executors
write."""

from __future__ import annotations

import math
import uuid
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote, urlsplit

import numpy as np
import pyarrow as pa

from runtime.columns import CHANGE_TYPE, PART, ROWID
from runtime.lake.table import quoted
from runtime.staging import changes
from runtime.staging import chunks as chunk_files
from runtime.staging.changes import Shape

if TYPE_CHECKING:
    from pyspark.sql import Column as SparkColumn
    from pyspark.sql import DataFrame

#: So many chunks' rows still go through one task into one file.
ONE_TASK = 1.5
NUMBER = "__ondatra_number"
#: The order of a unit's own rows.
RANK_OF = (
    f"CASE {CHANGE_TYPE} WHEN 'delete' THEN 0 WHEN 'update_preimage' THEN 1 WHEN 'update_postimage' THEN 2 ELSE 3 END"
)
#: Sampled rows a chunk when its bounds are drawn: sizes then differ by about one part in twenty.
SAMPLE_A_CHUNK = 500
#: More bounds than this make an expression that Spark no longer compiles; chunks then grow instead.
MOST_BOUNDS = 2_000


def spark_path(url: str) -> str:
    """A URL as Spark's file systems spell it; Hadoop paths are not percent-encoded."""
    parts = urlsplit(url)
    return f"file://{unquote(parts.path)}" if parts.scheme == "file" else f"s3a://{parts.netloc}{unquote(parts.path)}"


def write_plain(
    frame: DataFrame, out_url: str, rows: int, chunk_rows: int = 50_000, order: Sequence[str] = ()
) -> list[str]:
    """Writes a frame of about so many rows to files of about `chunk_rows`, in this order if one is given; their URLs in
    it."""
    from pyspark.sql import functions as F

    url = f"{out_url.rstrip('/')}/{uuid.uuid4().hex}"
    files = max(1, round(rows / chunk_rows))
    if order and files > 1:  # numbered, so that many equal rows need not lie in one file
        order = (*order, NUMBER)
        laid = frame.withColumn(NUMBER, F.monotonically_increasing_id()).repartitionByRange(files, *order)
    else:
        laid = frame.coalesce(1) if files == 1 else frame.repartition(files)
    _save(laid.sortWithinPartitions(*order).drop(NUMBER) if order else laid, url)
    return chunk_files.list_files(url)


def _save(frame: DataFrame, url: str, *parts: str) -> None:
    # version 2 moves each file once, which is a copy on S3; a job that fails half way leaves files that nothing refers
    # to
    frame.write.options(
        **{
            "compression": "zstd",
            "mapreduce.fileoutputcommitter.marksuccessfuljobs": "false",
            "mapreduce.fileoutputcommitter.algorithm.version": "2",
        }
    ).partitionBy(*parts).parquet(spark_path(url))


def write(rows: DataFrame, shape: Shape, out_url: str, most: int, chunk_rows: int) -> list[str]:
    """Files of about `chunk_rows` in delivery order, in a folder for each part. A unit is never cut over two files."""
    url = f"{out_url.rstrip('/')}/{uuid.uuid4().hex}"
    if most <= chunk_rows * ONE_TASK:
        laid = rows.coalesce(1)
    else:
        number, files = _file_numbers(rows, shape, most, chunk_rows)
        laid = rows.withColumn("__ondatra_file", number).repartitionById(files, "__ondatra_file").drop("__ondatra_file")
    # Spark sorts by a partition column that is a constant anew, and then takes the sort below for needless: no
    # optimizer sees that this one is
    part = f"CAST({PART} + monotonically_increasing_id() * 0 AS INT) AS {PART}"
    columns = [*map(quoted, shape.names), *changes.CARRIED_ALONG]
    laid = laid.selectExpr(*columns, part, f"{RANK_OF} AS __ondatra_rank")
    laid = laid.sortWithinPartitions(PART, *map(quoted, shape.order), "__ondatra_rank", ROWID)
    _save(laid.selectExpr(*columns, PART), url, PART)
    return chunk_files.list_files(url)


def _file_numbers(rows: DataFrame, shape: Shape, most: int, chunk_rows: int) -> tuple[SparkColumn, int]:
    """The number of each row's file, by ranges of the key or row id drawn from a sample of narrow rows; and how many
    there are."""
    from pyspark.sql import functions as F

    share = min(1.0, SAMPLE_A_CHUNK / chunk_rows)
    sample = rows.select(F.col(PART), F.col(shape.together)).sample(share, seed=1).toArrow()
    part, key = sample.column(0).to_numpy(), sample.column(1)
    number: SparkColumn = F.lit(0)
    files = 0
    for value in np.unique(part).tolist():
        bounds = _bounds(key.filter(pa.array(part == value)), math.ceil(share * chunk_rows))
        number = F.when(F.col(PART) == value, F.lit(files) + _range_number(F.col(shape.together), bounds)).otherwise(
            number
        )
        files += len(bounds) + 1
    return number.cast("int"), max(files, 1)


def _bounds(sample: Any, a_chunk: int) -> list[Any]:
    """Keys at which a new file begins."""
    chunks = min(MOST_BOUNDS, round(len(sample) / a_chunk))
    if chunks < 2:
        return []
    ordered = (
        np.sort(sample.to_numpy())
        if pa.types.is_integer(sample.type)
        else np.array(sorted(sample.to_pylist(), key=lambda k: k.encode()), dtype=object)
    )
    picked = [ordered[len(ordered) * i // chunks] for i in range(1, chunks)]
    return [b.item() if isinstance(b, np.generic) else b for i, b in enumerate(picked) if i == 0 or b != picked[i - 1]]


def _range_number(key: SparkColumn, bounds: list[Any], first: int = 0) -> SparkColumn:
    """How many bounds are not above the key, by halving."""
    from pyspark.sql import functions as F

    if not bounds:
        return F.lit(first)
    middle = len(bounds) // 2
    return F.when(key < F.lit(bounds[middle]), _range_number(key, bounds[:middle], first)).otherwise(
        _range_number(key, bounds[middle + 1 :], first + middle + 1)
    )
