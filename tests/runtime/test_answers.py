"""Answers on their way to the database."""

from __future__ import annotations

import numpy as np

from runtime.delivery import answers as codes
from runtime.delivery.answers import Answers, Entry, pack, unpack


def entry(index: range | list[int], codes: str, messages: dict[int, str] | None = None, attempt: int = 1) -> Entry:
    return Entry(call=3, attempt=attempt, started=10, ended=20, index=index, codes=codes, messages=messages or {})


def test_a_blob_gives_back_what_was_packed() -> None:
    entries = [
        entry(range(4, 8), "kkkk"),
        entry([1, 5, 9], "krk", {1: 'no "é"\n'}),
        entry(range(1), "u", {0: "cut off"}),
    ]
    assert [
        (e.call, e.attempt, e.started, e.ended, list(e.index), e.codes, e.messages) for e in unpack(pack(entries))
    ] == [(e.call, e.attempt, e.started, e.ended, list(e.index), e.codes, e.messages) for e in entries]


def test_a_call_that_went_well_takes_few_bytes() -> None:
    assert len(pack([entry(range(100_000), "k" * 100_000)])) < 60


def test_a_later_answer_wins_with_its_message() -> None:
    answers = Answers(
        4,
        [
            entry(range(0, 3), "eek", {0: "busy", 1: "busy"}),
            entry([1], "w", {0: "cut"}, attempt=2),
            entry([0], "k", attempt=2),
        ],
    )
    assert ("".join(answers.codes), answers.messages, answers.attempt.tolist()) == ("kwk-", {1: "cut"}, [2, 2, 1, 0])


def test_a_unit_counts_as_the_worst_of_its_answers() -> None:
    answers = Answers(8, [entry(range(0, 7), "kkrkweu")])
    assert "".join(answers.worst_of_units(np.array([0, 2, 4, 6, 7]))) == "kkrreeu-"


def test_rows_of_announced_calls_without_an_answer_are_in_flight_with_their_whole_unit() -> None:
    begun, answered = Entry(1, 0, 5, 5, range(0, 4), codes.BEGUN * 4), Entry(1, 1, 5, 6, range(0, 2), "kk")
    answers = Answers(6, unpack(pack([begun, answered])))
    assert answers.in_flight(np.array([0, 1, 2, 3, 5])).tolist() == [False, False, True, True, True, False]
    assert answers.answered().tolist() == [True, True, False, False, False, False]
