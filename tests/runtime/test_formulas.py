"""What the bounds of a record file say of formulas in it."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from runtime.records import formulas


@pytest.mark.parametrize(
    ("values", "harmless"),
    [
        (["customer-1", "zebra"], True),
        (["0017", "99"], True),
        (["Ångström", "{}"], True),
        ([None, None], True),
        (["customer-1", "=1+1"], False),
        (["17", "a"], False),  # '9' and 'A' have '@' between them
        (["", "a"], False),
    ],
)
def test_a_column_is_asked_for_formulas_unless_its_bounds_leave_no_room(
    tmp_path: Path, values: list[str | None], harmless: bool
) -> None:
    place = tmp_path / "records.parquet"
    pq.write_table(
        pa.table({"bounded": pa.array(values, pa.string()), "not": values}), place, write_statistics=["bounded"]
    )
    assert formulas.without(place) == (frozenset({"bounded"}) if harmless else frozenset())
