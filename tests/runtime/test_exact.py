"""JSON as people read it: numbers to the last digit."""

from __future__ import annotations

import pytest

from runtime.records import exact, query

HUGE, WIDE = "12345678901234567890123456789012345678", "12345678901234567890123456789.123456789"


@pytest.mark.parametrize("number", [HUGE, f"-{HUGE}", WIDE, "0.1", "1.10", "5e-324", "-0.0", "1E+400", "7"])
def test_a_number_reads_as_it_was_written(number: str) -> None:
    assert exact.dumps(exact.loads(f'{{"n": [{number}]}}')) == f'{{\n  "n": [\n    {number}\n  ]\n}}'


def test_numbers_compare_by_value_and_big_ones_to_the_last_digit() -> None:
    assert exact.loads("[5, 1.0, 0]") == exact.loads("[5.0, 1.00, -0.0]")
    assert exact.loads(HUGE) != exact.loads(HUGE[:-1] + "7")


def test_texts_are_read_as_text_and_half_a_pair_is_replaced() -> None:
    assert exact.dumps(exact.loads('"Pr\\u00e9nom \\ud83d"')) == '"Prénom �"'


def test_a_number_without_a_value_is_shown_as_its_text() -> None:
    assert exact.dumps(exact.loads("1e99999999999999999999")) == '"1e99999999999999999999"'


@pytest.mark.parametrize("deep", [600, 100_000])
def test_what_nests_too_deeply_is_said(deep: int) -> None:
    with pytest.raises(ValueError, match="nests too deeply"):
        exact.dumps(exact.loads("[" * deep + "]" * deep))


def test_a_difference_in_the_last_digit_is_a_difference() -> None:
    record = {"previous_payload": f'{{"n":{HUGE},"m":5}}', "record_payload": f'{{"n":{HUGE[:-1]}7,"m":5.0}}'}

    assert [(name, old.text, new.text) for name, old, new in query.difference(record)] == [("n", HUGE, HUGE[:-1] + "7")]
