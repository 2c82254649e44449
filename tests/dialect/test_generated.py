"""Each expression of a part of DuckDB's functions, chosen by a seed, gives DuckDB's answer; `python bench/dialect.py
--all` tries all of them."""

from __future__ import annotations

from typing import Any

import against
import pytest

pytestmark = pytest.mark.slow


def test_expressions_made_of_duckdbs_list_of_functions_give_its_answers(spark: Any, tmp_path: Any) -> None:
    found = against.run(spark, tmp_path, seed=1, every=40)
    print(found.said())
    assert found.different == {}
    assert found.right > 40 and found.right >= 0.9 * found.asked
