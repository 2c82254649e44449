"""Few changes of a table of any size are one commit of Delta's own parts, with the same result as a MERGE."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from building import Built

#: The feed of what became of (1, a), (2, b), (3, c), and whether Delta's history names a MERGE.
WANTED = {
    "tracked": ["delete 2 b", "delete 3 c", "insert 2 B", "insert 4 d"],
    "scd2": ["insert 2 B", "insert 4 d", "update_postimage 2 b", "update_preimage 2 b"],
}


@pytest.mark.parametrize("kind", WANTED)
def test_few_changes_are_committed_without_a_merge(spark: Any, tmp_path: Path, kind: str) -> None:
    table = Built(spark, tmp_path, kind, "id")
    table.build((1, "a"), (2, "b"), (3, "c"))
    table.build((1, "a"), (2, "B"), (4, "d"))
    newest = spark.sql(f"DESCRIBE HISTORY {table.table.sql} LIMIT 1").head()
    assert [" ".join(map(str, change)) for change in table.changes()] == WANTED[kind]
    assert newest["operation"] == "UPDATE"
