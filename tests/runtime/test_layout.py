"""Chunk files are in delivery order, whatever order Spark has the rows in."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from runtime.staging import changes, chunks, layout

COLUMNS = (
    "id long, __ondatra_rowid long, __ondatra_change_type string, __ondatra_key string, __ondatra_record boolean, "
    "__ondatra_h1 long, "
    "__ondatra_h2 long, __ondatra_again boolean"
)
KEYS = range(40)


@pytest.mark.parametrize("chunk_rows", [1_000, 2])
@pytest.mark.parametrize("part", ["1", "CASE WHEN id >= 0 THEN 1 ELSE 2 END"])
def test_rows_of_a_key_stand_together_with_the_old_image_first(
    spark: Any, tmp_path: Path, part: str, chunk_rows: int
) -> None:
    from pyspark.sql import types as t

    images = [
        (key, key + 100, kind, f"{key:02}", True, 1, 1, False)
        for kind in ("update_postimage", "update_preimage")
        for key in reversed(KEYS)
    ]
    rows = spark.createDataFrame(images, COLUMNS).selectExpr("*", f"{part} AS {changes.PART}")
    shape = changes.Shape("merge", (t.StructField("id", t.LongType()),))

    urls = layout.write(rows, shape, tmp_path.as_uri(), len(images), chunk_rows)

    told = [(r["id"], r["__ondatra_change_type"]) for url in urls for r in chunks.read_chunk(url, None).to_pylist()]
    assert told == [(key, kind) for key in KEYS for kind in ("update_preimage", "update_postimage")]
    assert (len(urls) > 1) == (chunk_rows == 2) and {chunks.part_of(url) for url in urls} == {1}
