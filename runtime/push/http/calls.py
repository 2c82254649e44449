"""The requests of a call and their answers, as they are kept for people."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from runtime.custody.redact import Redactor
from runtime.push.http.answers import Answer

Key = tuple[str, str, bytes | None]  # method, URL, body


@dataclass(frozen=True)
class ApiCall:
    """One request and its answer as kept for people: secrets removed, bodies cut. `status` is None without an
    answer."""

    batch_number: int
    attempt: int
    method: str
    url: str
    request_headers: dict[str, str]
    request_body: str | None
    status: int | None
    response_headers: dict[str, str]
    response_text: str
    started_at: datetime
    ended_at: datetime
    rows: tuple[str, ...] | None = None  # "<rowid>:<change_type>" of row=, None where it was not given


class Calls(Sequence[ApiCall]):
    """Requests and answers in order. Each is put into words for people when it is looked at: most never are."""

    def __init__(self, redactor: Redactor | None = None, batch_number: int = 0) -> None:
        self._redactor, self._batch_number = redactor or Redactor(), batch_number
        self._epoch = time.time() - time.monotonic()
        self._raw: list[tuple[Any, ...]] = []
        #: Takes attempt, method, url, headers, body, answer or None, error or None, start and end (of the monotonic
        #: clock), rows.
        self.add = self._raw.append

    def answers(self) -> dict[Key, Answer]:
        """The last answer to each request."""
        return {(raw[1], raw[2], raw[4]): raw[5] for raw in self._raw if raw[5] is not None}

    def failed(self) -> list[int]:
        """The places of those without an answer or with one from 400 on."""
        return [place for place, raw in enumerate(self._raw) if raw[5] is None or raw[5].status >= 400]

    @classmethod
    def of(cls, raw: list[tuple[Any, ...]], redactor: Redactor, batch_number: int) -> Calls:
        """Those of another process, by its `raw`."""
        made = cls(redactor, batch_number)
        made._raw += raw
        return made

    def raw(self) -> list[tuple[Any, ...]]:
        return self._raw

    def extend(self, more: Calls) -> None:
        self._raw += more._raw

    def __len__(self) -> int:
        return len(self._raw)

    def __getitem__(self, place: Any) -> Any:
        if isinstance(place, slice):
            return [self[i] for i in range(*place.indices(len(self)))]
        attempt, method, url, headers, body, answer, error, started, ended, rows = self._raw[place]
        shown = self._redactor
        return ApiCall(
            batch_number=self._batch_number,
            attempt=attempt,
            method=method,
            url=shown.text(url),
            request_headers=shown.headers(headers),
            request_body=None if body is None else shown.body(body.decode("utf-8", "replace")),
            status=answer.status if answer else None,
            response_headers=shown.headers(answer.headers) if answer else {},
            response_text=shown.body(answer.text if answer else str(error)),
            started_at=datetime.fromtimestamp(self._epoch + started, UTC),
            ended_at=datetime.fromtimestamp(self._epoch + ended, UTC),
            rows=rows,
        )
