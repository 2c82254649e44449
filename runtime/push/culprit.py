"""Finds the row on which a push function failed, by calling it again for each row alone without sending anything.

Each request is answered with what the same request was answered before; one that was never made ends the attempt. So
an error in making a body shows as well as one in reading an answer, and the destination notices nothing.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import Any

from runtime.custody.redact import Redactor
from runtime.errors import Cancelled, OndatraError
from runtime.push import starlark
from runtime.push.api_dict import Api
from runtime.push.builtins import Session, row_key
from runtime.push.http.answers import Answer
from runtime.push.http.requester import Request
from runtime.push.starlark import Module, StarlarkFailure, Watch

#: Seconds that the search may take; without a result the message names no row.
PATIENCE = 1.0


class Replay:
    """Stands for the network: only what was answered before is answered again."""

    def __init__(self, api: Api, answers: Mapping[tuple[str, str, bytes | None], Answer]) -> None:
        self.api, self.answers = api, answers
        self.remarks: list[str] = []

    def plain(self, *_: Any) -> None:
        """Whatever it is, `send` answers it."""

    def send(self, request: Request) -> Answer:
        answer = self.answers.get((request.method, request.url, request.body))
        if answer is None:
            raise OndatraError("this request was not made before")
        return answer


def find(
    module: Module,
    name: str,
    kwargs: Mapping[str, Any],
    rows: Sequence[dict[str, Any]],
    failure: StarlarkFailure,
    session: Session,
    answers: Mapping[tuple[str, str, bytes | None], Answer],
) -> str:
    """`<rowid>:<change_type>` of the first row that fails alone in the same place; empty if no row does, or none is to
    blame."""
    end = time.monotonic() + PATIENCE
    replay = Replay(session.requester.api, answers)

    def fails_alike(some: list[dict[str, Any]]) -> bool:
        watch = Watch(lambda: time.monotonic() > end)
        # redacts nothing that it has not seen: what it prints is thrown away
        alone = Session(replay, Redactor(), session.secrets, watch.cancelled, watch, some, None, replayed=True)
        try:
            starlark.call(module, name, {**kwargs, "rows": some}, alone, watch)
        except StarlarkFailure as other:
            return (other.message, other.place) == (failure.message, failure.place)
        except Cancelled:
            return False
        return False

    if fails_alike([]):  # it fails whatever the rows
        return ""
    for row in rows:
        if time.monotonic() > end:
            return ""
        if fails_alike([row]):
            return row_key(row)
    return ""
