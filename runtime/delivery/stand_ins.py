"""What stands in for the network and for secrets where nothing is sent."""

from __future__ import annotations

import time
from typing import Any

from runtime.errors import Cancelled
from runtime.push.http.answers import Answer
from runtime.push.http.auth import SecretSource
from runtime.push.http.requester import Request


class Recording:
    """A transport that keeps each request and gives the same answer to all."""

    def __init__(self, answer: Answer) -> None:
        self.answer = answer
        self.requests: list[Request] = []

    def send(self, method: str, url: str, headers: Any, body: bytes | None, timeout: float) -> Answer:
        self.requests.append(Request(method, url, headers, body, timeout=timeout))
        return self.answer


class Sampling(Recording):
    """Keeps the first requests, gives each an empty answer, and ends the call that makes more or takes long."""

    def __init__(self, token_url: str, most: int = 20, seconds: float = 10.0) -> None:
        super().__init__(Answer(200, {"content-type": "application/json"}, b"{}"))
        self.token_url, self.most, self.end = token_url, most, time.monotonic() + seconds

    @property
    def over(self) -> bool:
        return len(self.requests) >= self.most or time.monotonic() > self.end

    def send(self, method: str, url: str, headers: Any, body: bytes | None, timeout: float) -> Answer:
        if url == self.token_url:  # how it is authorized, not what would be sent
            return Answer(200, {"content-type": "application/json"}, b'{"access_token": "token-of-a-dry-run"}')
        if self.over:
            raise Cancelled("a dry run shows the first requests only")
        return super().send(method, url, headers, body, timeout)


class StandIns:
    """The real secrets where they are set, else a text that says which one would stand there."""

    def __init__(self, secrets: SecretSource) -> None:
        self._secrets = secrets

    def get(self, name: str, default: Any = None) -> Any:
        return self._secrets.get(name) or (f"<{name}>" if default is None else default)
