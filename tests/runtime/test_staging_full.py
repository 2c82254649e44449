"""What a full run stages."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from staged import Lake, lines, waiting

from runtime.staging import states
from runtime.staging.chunks import WaitingChunk

pytestmark = pytest.mark.spark


def test_a_full_run_sends_each_current_row_and_the_deletes_that_wait(spark: Any, tmp_path: Path) -> None:
    lake = Lake(spark, tmp_path, "merge")
    lake.insert(("a", "1"), ("b", "1"), ("c", "1"))
    (chunk,), mark = lake.stage(None).chunks, lake.version
    fresh = WaitingChunk(1, chunk.url, np.array([states.REJECTED, states.DONE, states.DONE], dtype=np.uint8))
    lake.change([], gone=["c"])
    deletes, mark = waiting(lake.stage(mark, fresh), states.REJECTED, first_id=2), lake.version
    staged = lake.stage(mark, fresh, *deletes, own_from=mark, full=True)
    assert lines(staged) == [("delete", "c", "1"), ("insert", "a", "1"), ("update_postimage", "b", "1")]
    assert {i: p.tolist() for i, p in staged.superseded.items()} == {1: [0], 2: [0]}
    assert (staged.changed, staged.deleted, staged.carried) == (2, 0, 1)


def test_a_row_sent_again_whose_source_changed_meanwhile_is_an_ordinary_change(spark: Any, tmp_path: Path) -> None:
    lake = Lake(spark, tmp_path, "merge")
    lake.insert(("a", "1"), ("b", "1"))
    mark = lake.version
    again = waiting(lake.stage(mark, full=True), states.REFUSED)
    lake.change([("a", "2")], gone=["b"])
    staged = lake.stage(mark, *again)
    assert lines(staged) == [("delete", "b", "1"), ("update_preimage", "a", "1"), ("update_postimage", "a", "2")]


@pytest.mark.parametrize("kind", ["table", "tracked", "append", "scd2"])
def test_a_full_run_of_other_kinds_sends_current_rows_only(spark: Any, tmp_path: Path, kind: str) -> None:
    lake = Lake(spark, tmp_path, kind)
    lake.insert(("a", "1"), ("b", "1"))
    if kind == "scd2":
        lake.change([("a", "2")])
    what = "update_postimage" if kind == "scd2" else "insert"
    staged = lake.stage(lake.version, full=True)
    assert lines(staged) == [(what, "a", "2" if kind == "scd2" else "1"), (what, "b", "1")]
    assert (staged.changed, staged.deleted) == (2, 0)


def test_a_first_full_run_inserts(spark: Any, tmp_path: Path) -> None:
    lake = Lake(spark, tmp_path, "merge")
    lake.insert(("a", "1"))
    assert lines(lake.stage(None, full=True)) == [("insert", "a", "1")]


def test_a_full_run_leaves_rows_of_an_open_job_to_the_job(spark: Any, tmp_path: Path) -> None:
    lake = Lake(spark, tmp_path, "merge")
    lake.insert(("a", "1"), ("b", "1"))
    (chunk,), mark = lake.stage(None).chunks, lake.version
    job = WaitingChunk(1, chunk.url, np.array([states.BLOCKED, states.DONE], dtype=np.uint8))
    lake.change([("a", "2")])
    staged = lake.stage(mark, job, full=True)
    assert lines(staged) == [("update_postimage", "b", "1")]
    assert lines(staged, waits=True) == [("update_preimage", "a", "1"), ("update_postimage", "a", "2")]
