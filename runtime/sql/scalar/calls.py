"""Calls of DuckDB from Spark's text: which expressions go together, over which inputs, and how Spark names them.

While a statement is written, an expression of DuckDB's stands in it as a mark. At the end the marks of one place (see
`Place`) become fields of one call, which DuckDB answers for a batch of rows at a time.
"""

from __future__ import annotations

import hashlib
import json
import re
import uuid
from collections.abc import Sequence
from dataclasses import dataclass, field

from runtime.sql.asking.types import Type, UnknownType, carried, declared, spark_type
from runtime.sql.model import Call, Refused

#: Expressions of a call times its inputs, at most: so often inputs stand in Spark's text.
LONGEST = 100
#: No text of a model holds it.
_TOKEN = uuid.uuid4().hex
_MARK = re.compile(rf"<{_TOKEN}:(\d+):(\d+)>")


@dataclass(frozen=True)
class Asked:
    """One expression of DuckDB's over the inputs `i0`, `i1`… of its place."""

    sql: str
    inputs: tuple[int, ...]
    type: Type
    offset: tuple[int, int] = field(compare=False)  # where it stands in the model's text, and how long it is


@dataclass
class Place:
    """Where expressions are computed together: over the same rows, after the same steps."""

    number: int
    inputs: dict[tuple[str, Type], int] = field(default_factory=dict)
    asked: list[Asked] = field(default_factory=list)


def grouped(place: Place, used: Sequence[int]) -> list[list[int]]:
    """The expressions of a place that share a call: its text stands once for each of them, and is to stay short."""
    out: list[list[int]] = []
    inputs: set[int] = set()
    for at in used:
        own = set(place.asked[at].inputs)
        if out and (len(out[-1]) + 1) * len(inputs | own) <= LONGEST:
            out[-1].append(at)
            inputs |= own
        else:
            out.append([at])
            inputs = own
    return out


class Calls:
    """The calls of one statement."""

    def __init__(self, source: str, *, exact: bool = False) -> None:
        """`exact`: nothing is left to how a text is spelt, see spellings."""
        self.source = source.encode()
        self.exact = exact
        self.places: list[Place] = []
        self.made: dict[str, Call] = {}

    def place(self) -> Place:
        self.places.append(Place(len(self.places)))
        return self.places[-1]

    def input(self, place: Place, text: str, kind: Type, *, anew: bool = False) -> int:
        """The number of an input; `anew` for one that has another value each time."""
        declared(kind)  # raises UnknownType
        key = (text, kind) if not anew else (f"{text}/*{len(place.inputs)}*/", kind)
        return place.inputs.setdefault(key, len(place.inputs))

    def add(self, place: Place, asked: Asked) -> str:
        """The mark of an expression."""
        if asked not in place.asked:
            place.asked.append(asked)
        return f"<{_TOKEN}:{place.number}:{place.asked.index(asked)}>"

    def holds(self, text: str) -> bool:
        """Whether a mark stands in a text."""
        return bool(_MARK.search(text))

    def finds(self, what: re.Pattern[str], text: str) -> bool:
        """Whether it stands in a text, or in that of an input of its marks."""
        left, seen = [text], set[tuple[str, str]]()
        while left:
            one = left.pop()
            if what.search(one):
                return True
            for mark in set(_MARK.findall(one)) - seen:
                seen.add(mark)
                place = self.places[int(mark[0])]
                left += [list(place.inputs)[i][0] for i in place.asked[int(mark[1])].inputs]
        return False

    def wraps(self, text: str, place: Place) -> bool:
        """Whether a mark of this place stands within more text, so that nothing computed along with it may need it."""
        marks = [mark for mark in _MARK.finditer(text) if int(mark[1]) == place.number]
        return any(mark[0] != text for mark in marks)

    def asked(self, text: str, place: Place) -> Asked | None:
        """What a text that is nothing but a mark of this place stands for."""
        found = _MARK.fullmatch(text)
        return place.asked[int(found[2])] if found and int(found[1]) == place.number else None

    def written(self, text: str) -> str:
        """The text with its marks replaced by fields of calls."""
        used: dict[int, set[int]] = {}
        left = [text]
        while left:
            for mark in _MARK.finditer(left.pop()):
                number, at = int(mark[1]), int(mark[2])
                if at not in used.setdefault(number, set()):
                    used[number].add(at)
                    names = list(self.places[number].inputs)
                    left += [names[i][0] for i in self.places[number].asked[at].inputs]
        return self._replaced(text, {n: sorted(of) for n, of in used.items()}, {})

    def _replaced(self, text: str, used: dict[int, list[int]], done: dict[tuple[int, int], str]) -> str:
        def field_of(mark: re.Match[str]) -> str:
            number, at = int(mark[1]), int(mark[2])
            if (number, at) not in done:
                place = self.places[number]
                for group in grouped(place, used[number]):
                    called = self._called(place, group, used, done)
                    done.update({(number, one): f"{called}.f{i}" for i, one in enumerate(group)})
            return done[number, at]

        return _MARK.sub(field_of, text)

    def _called(
        self, place: Place, group: Sequence[int], used: dict[int, list[int]], done: dict[tuple[int, int], str]
    ) -> str:
        asked = [place.asked[at] for at in group]
        keys = list(place.inputs)
        inputs = sorted({i for one in asked for i in one.inputs})
        call = self.call(asked, inputs, [keys[i][1] for i in inputs])
        texts = [self._replaced(keys[i][0], used, done) for i in inputs] or ["1"]
        return f"{call.name}({', '.join(texts)})"

    def call(self, asked: Sequence[Asked], inputs: Sequence[int], kinds: Sequence[Type]) -> Call:
        """The call of these expressions; its name says all that it computes. Refused for one that Spark cannot hold."""
        for one in asked:
            try:
                spark_type(one.type)
            except UnknownType as error:
                at = one.offset[0] if one.offset[0] >= 0 else None
                raise Refused(f"a value of type {error} (cast it, or use it within one expression)", at) from None
        said = Call(
            "",
            tuple((f"i{i}", declared(kind)) for i, kind in zip(inputs, kinds, strict=True)) or (("__none", "INTEGER"),),
            tuple((one.sql, str(one.type), carried(one.type)) for one in asked),
            "STRUCT<" + ", ".join(f"f{i}: {spark_type(one.type)}" for i, one in enumerate(asked)) + ">",
            tuple(self.told(one) for one in asked),
        )
        name = "duck_" + hashlib.sha256(json.dumps([said.inputs, said.expressions]).encode()).hexdigest()[:16]
        return self.made.setdefault(name, Call(name, said.inputs, said.expressions, said.returns, said.places))

    def told(self, asked: Asked) -> tuple[int, str]:
        """The line of an expression and its text as the model has it."""
        start, length = asked.offset
        if start < 0:
            return 1, asked.sql
        shown = " ".join(self.source[start : start + length].decode(errors="replace").split())
        return self.source[:start].count(b"\n") + 1, shown or asked.sql
