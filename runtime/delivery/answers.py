"""What push() answered for some rows, small enough to be committed every 200 ms.

An entry names rows by their index within the delivery (not within the chunk file). Later entries win over earlier
ones: a further attempt overwrites the first.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
import orjson
import pyarrow as pa

from runtime.staging import states

OK, WARN, ERROR, UNKNOWN, REJECT, JOB = "k", "w", "e", "u", "r", "j"
NO_ANSWER = "-"
#: Not an answer: calls with these rows may have begun. Written before the first of them.
BEGUN = "b"
#: What a code is called in the record files; both kinds of error are `error` there.
OUTCOMES: dict[str, Literal["ok", "warn", "error", "reject"]] = {
    OK: "ok",
    WARN: "warn",
    ERROR: "error",
    UNKNOWN: "error",
    REJECT: "reject",
}
_WORDS = tuple(dict.fromkeys(OUTCOMES.values()))
_PLACES = np.array(
    [_WORDS.index(OUTCOMES[chr(code)]) if chr(code) in OUTCOMES else -1 for code in range(128)], dtype=np.int8
)
#: The state that a row's answer leaves behind.
STATES = {
    OK: states.DONE,
    WARN: states.DONE,
    ERROR: states.REFUSED,
    UNKNOWN: states.UNKNOWN,
    REJECT: states.REJECTED,
    JOB: states.BLOCKED,
}
#: Mixed answers count for a unit as the worst of them: due again before dead letter before delivered.
SEVERITY = {NO_ANSWER: -1, OK: 0, WARN: 1, REJECT: 2, ERROR: 3, UNKNOWN: 4, JOB: 5}
BY_SEVERITY = {rank: code for code, rank in SEVERITY.items()}


@dataclass(frozen=True)
class Entry:
    """The answer of one push call: `codes` has one letter a row of `index`; times are microseconds since 1970 UTC."""

    call: int
    attempt: int
    started: int
    ended: int
    index: Sequence[int]
    codes: str
    messages: dict[int, str] = field(default_factory=dict)  # place within `index` -> message


def pack(entries: Iterable[Entry]) -> bytes:
    """One blob for the database."""
    plain = []
    for e in entries:
        first, n = int(e.index[0]), len(e.index)
        span = int(e.index[-1]) - first + 1 == n
        plain.append(
            [
                e.call,
                e.attempt,
                e.started,
                e.ended,
                [first, n] if span else [int(i) for i in e.index],
                int(span),
                e.codes if len(set(e.codes)) > 1 else e.codes[:1],
                {str(k): v for k, v in e.messages.items()},
            ]
        )
    return zlib.compress(orjson.dumps(plain), 1)


def unpack(blob: bytes) -> list[Entry]:
    """The entries of one blob, in the order in which they were recorded."""
    found = []
    for call, attempt, started, ended, index, span, codes, messages in orjson.loads(zlib.decompress(blob)):
        places = range(index[0], index[0] + index[1]) if span else index
        found.append(
            Entry(
                call,
                attempt,
                started,
                ended,
                places,
                codes if len(codes) == len(places) else codes * len(places),
                {int(k): v for k, v in messages.items()},
            )
        )
    return found


class Answers:
    """The newest answer of each of `n` rows."""

    def __init__(self, n: int, entries: Iterable[Entry] = ()) -> None:
        self.codes = np.full(n, NO_ANSWER, dtype="U1")
        self.attempt = np.zeros(n, dtype=np.int32)
        self.call = np.zeros(n, dtype=np.int32)
        self.started = np.zeros(n, dtype=np.int64)
        self.ended = np.zeros(n, dtype=np.int64)
        self.messages: dict[int, str] = {}
        self.begun = np.zeros(n, dtype=bool)
        for entry in entries:
            self.add(entry)

    def add(self, e: Entry) -> None:
        where: Any = (
            slice(e.index.start, e.index.stop) if isinstance(e.index, range) else np.asarray(e.index, dtype=np.int64)
        )
        if e.codes[:1] == BEGUN:
            self.begun[where] = True
            return
        same = e.codes.count(e.codes[:1]) == len(e.codes)
        self.codes[where] = e.codes[:1] if same else list(e.codes)
        self.attempt[where], self.call[where] = e.attempt, e.call
        self.started[where], self.ended[where] = e.started, e.ended
        if self.messages:
            for i in e.index:
                self.messages.pop(int(i), None)
        for place, message in e.messages.items():
            self.messages[int(e.index[place])] = message

    def outcomes(self, index: np.ndarray[Any, Any]) -> pa.DictionaryArray:
        """What the answers of these rows are called in the record files; they should have one."""
        return pa.DictionaryArray.from_arrays(
            pa.array(_PLACES[self.codes[index].view(np.uint32)]), pa.array(_WORDS, pa.string())
        )

    def failed(self, index: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
        """A mask of those of some rows that ended in error."""
        said = self.codes[index]
        return np.asarray((said == ERROR) | (said == UNKNOWN))

    def answered(self) -> np.ndarray[Any, Any]:
        """A mask of the rows that have an answer."""
        return np.asarray(self.codes != NO_ANSWER)

    def in_flight(self, starts: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
        """The unanswered rows of units of which a call may have begun."""
        if not len(starts):
            return np.zeros(0, dtype=bool)
        begun = np.logical_or.reduceat(self.begun, starts)
        return np.asarray(np.repeat(begun, np.diff(np.append(starts, len(self.begun)))) & (self.codes == NO_ANSWER))

    def worst_of_units(self, starts: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
        """For each row the code that counts for its whole unit; `starts` are the first rows of the units."""
        ranks = np.zeros(len(self.codes), dtype=np.int8)
        for code, rank in SEVERITY.items():
            ranks[self.codes == code] = rank
        if not len(starts):
            return self.codes
        worst = np.maximum.reduceat(ranks, starts)
        lengths = np.diff(np.append(starts, len(ranks)))
        letters = np.array([BY_SEVERITY[r] for r in range(-1, 6)])
        return np.asarray(np.repeat(letters[worst + 1], lengths))
