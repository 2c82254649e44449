"""The page of the dialect and the tables it is made of."""

from __future__ import annotations

from pathlib import Path

from runtime.sql.supported import TRIED, page


def test_the_page_is_what_the_tables_say_and_what_the_generator_found() -> None:
    said, head, found = (Path(__file__).parents[3] / "docs" / "dialect.md").read_text(encoding="utf-8").partition(TRIED)
    assert (said, head) == (page() + "\n", TRIED)
    assert ", 0 different." in found
