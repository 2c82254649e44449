"""No page reads a whole history, in either database, and none asks more of it where there is more (see plans.py)."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]


def asked(size: int, database: str) -> Any:
    """What `plans.py` found, of an install of that size."""
    env = {k: v for k, v in os.environ.items() if k != "DATABASE_URL"}
    done = subprocess.run(
        [sys.executable, "-m", "tests.web.plans", str(size)],
        cwd=ROOT,
        env=env | ({"DATABASE_URL": database} if database else {}),
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr[-3_000:]
    return json.loads(done.stdout.splitlines()[-1])


@pytest.mark.slow
def test_no_page_reads_a_whole_history_or_asks_more_where_there_is_more(postgres_url: str) -> None:
    little, much = asked(2, ""), asked(4, postgres_url)

    assert little["whole"] == {}, "of SQLite"
    assert much["whole"] == {}, "of PostgreSQL"
    assert [path for path in much["counts"] if much["counts"][path] != little["counts"][path]] == []
