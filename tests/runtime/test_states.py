"""States and masks survive packing."""

from __future__ import annotations

import numpy as np

from runtime.staging import states


def test_packed_states_come_back_writable() -> None:
    given = np.arange(7, dtype=np.uint8).repeat(1000)
    back = states.unpack(states.pack(given))
    assert back.tolist() == given.tolist()
    back[0] = states.BLOCKED
    assert back[0] == states.BLOCKED


def test_a_mask_comes_back_with_the_length_of_its_chunk() -> None:
    given = np.array([True, False, False, True, True, False, True, False, False, True, False])
    assert states.unpack_mask(states.pack_mask(given), len(given)).tolist() == given.tolist()


def test_a_million_equal_states_take_little_room() -> None:
    assert len(states.pack(np.full(1_000_000, states.UNTRIED, dtype=np.uint8))) < 2_000


def test_untried_refused_and_unknown_rows_are_due() -> None:
    every = np.arange(7, dtype=np.uint8)
    assert np.flatnonzero(states.due(every)).tolist() == [states.UNTRIED, states.REFUSED, states.UNKNOWN]


def test_rejected_and_blocked_rows_count_as_undelivered() -> None:
    every = np.arange(7, dtype=np.uint8)
    assert np.flatnonzero(~states.undelivered(every)).tolist() == [states.DONE, states.SUPERSEDED]
