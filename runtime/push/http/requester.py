"""HTTP for push functions: retries, auth made anew for each attempt, limits, and what is kept of each request."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any
from urllib.parse import urljoin

from runtime.custody.redact import BODY_LIMIT, Redactor
from runtime.errors import Cancelled
from runtime.push.api_dict import Api
from runtime.push.backoff import backoff
from runtime.push.http.addresses import front, same_host
from runtime.push.http.answers import Answer
from runtime.push.http.auth import Authorizer
from runtime.push.http.calls import Calls, Key
from runtime.push.http.client import AnswerTooLarge, Transport, TransportError
from runtime.push.http.rate_limits import LONGEST_PAUSE, Limiter, retry_after
from runtime.threads import wait

TEMPORARY = frozenset({429, 500, 502, 503, 504})
REDIRECTS = frozenset({301, 302, 303, 307, 308})
MAX_REDIRECTS = 5
#: Headers of a call that follow a redirect to another host; any other may hold what is meant for the first one only.
FOLLOWING = frozenset({"accept", "accept-language", "user-agent"})
#: Bytes of answers that one call keeps whole; of those beyond, only what people see.
MOST_KEPT = 64 * 1024 * 1024
#: A call that makes many requests asks so often whether its run was cancelled.
ASK_EVERY = 0.1


@dataclass  # not frozen: that costs a microsecond or two for each
class Request:
    """One request as push() asked for it, never changed; `url` is whole."""

    method: str
    url: str
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes | None = None
    content_type: str = ""
    timeout: float | None = None
    retry: int | None = None
    rows: tuple[str, ...] | None = None


class Requester:
    """Makes the requests of one call: adds auth and headers, waits, tries again, records."""

    def __init__(
        self,
        api: Api,
        authorizer: Authorizer,
        redactor: Redactor,
        *,
        limiter: Limiter,
        limit_key: str,
        transport: Transport,
        cancelled: Callable[[], bool],
        batch_number: int,
    ) -> None:
        self.api, self.authorizer, self.redactor = api, authorizer, redactor
        self.limiter, self.limit_key, self.transport = limiter, limit_key, transport
        self.cancelled, self.batch_number = cancelled, batch_number
        self._made = Calls(redactor, batch_number)
        self._keep = self._made.add
        self.sent = 0
        self.remarks: list[str] = []  # for the run's log
        self._kept = 0
        self._authorization = ""
        self.seconds = 0.0  # spent waiting for answers
        self._base = f"{api.base_url.rstrip('/')}/"
        self._same = {} if api.rate_limit or authorizer.same is None else authorizer.same  # what plain requests may use
        self._path, self._url = "", self._base  # of the last plain request
        self._ask_at = 0.0
        self._first: tuple[Answer | None, TransportError | None] | None = None
        self._led: dict[Key, Answer] = {}  # where redirects ended

    @property
    def calls(self) -> Calls:
        """What people may see of the requests."""
        return Calls() if self.api.api_calls == "off" else self._made

    @property
    def answers(self) -> dict[Key, Answer]:
        """What was answered last to each request, to find the row of an error."""
        return self._made.answers() | self._led

    def plain(self, method: str, path: str, body: bytes | None, kind: str, watch: Any) -> Answer | None:
        """The first attempt of a request without options, in the few steps that it takes in the usual case: many
        functions make one for each row. None where more is to be done, which is left to the `send` that must follow.
        Adds its time to `watch.away`. Raises OndatraError."""
        known, began = self._same.get((kind, self._base)), time.monotonic()
        if known is None or began > self._ask_at or path[:1] != "/" or "/.." in path:
            return None
        if path != self._path:
            self._path, self._url = path, f"{self._base}{path.lstrip('/')}"
        headers, self._authorization = known
        answer, error = self._exchange(method, self._url, headers, body, self.api.timeout, 1, None, began)
        watch.away += time.monotonic() - began
        if answer is not None and answer.status < 300:
            return answer
        self._first = answer, error
        return None

    def send(self, request: Request) -> Answer:
        """The last answer after retries and redirects. Raises TransportError, Cancelled, OndatraError."""
        answer = self._with_retries(request, request.method, request.url, request.body)
        if answer.status in REDIRECTS:
            answer = self._led[request.method, request.url, request.body] = self._redirected(request, answer)
        return answer

    def _redirected(self, request: Request, answer: Answer) -> Answer:
        url, method, body = request.url, request.method, request.body
        for _ in range(MAX_REDIRECTS):
            if (
                answer.status not in REDIRECTS
                or method not in ("GET", "HEAD")
                or not (location := answer.headers.get("location"))
            ):
                break
            try:
                url = urljoin(url, location)
            except ValueError:  # no address: the redirect is the answer
                break
            if not url.startswith(("http://", "https://")):
                break
            if not same_host(request.url, url):
                request = replace(request, headers={k: v for k, v in request.headers.items() if k.lower() in FOLLOWING})
            answer = self._with_retries(request, method, url, body)
        return answer

    def _with_retries(self, request: Request, method: str, url: str, body: bytes | None) -> Answer:
        attempt, failures, renewed = 0, 0, False
        while True:
            attempt += 1
            answer, error = self._first or self._attempt(request, method, url, body, attempt)
            self._first = None
            if answer is not None and answer.status < 400:
                return answer
            retries = self.api.retry if request.retry is None else request.retry
            if (
                answer is not None
                and answer.status == 401
                and not renewed
                and self.authorizer.drop_token(self._authorization)
            ):
                renewed = True  # a token that ended early is no failure of the request
                continue
            asked = self._asked(answer)
            if answer is not None and answer.status == 429 and asked and self.api.rate_limit:
                self.limiter.pause(self.limit_key, time.time() + asked)
            if answer is not None and answer.status not in TEMPORARY:
                return answer
            failures += 1
            if failures > retries or isinstance(error, AnswerTooLarge):
                if answer is None:
                    raise error or TransportError(f"{method} {url}: no answer")
                return answer
            wait(backoff(self.api.backoff, failures) if asked is None else asked, self.cancelled, "its next try")

    def _asked(self, answer: Answer | None) -> float | None:
        """Seconds that an answer asks to wait; a remark says where they are cut."""
        if answer is None or answer.status not in TEMPORARY:
            return None
        asked = retry_after(answer, time.time())
        if asked == LONGEST_PAUSE:
            said = answer.headers["retry-after"][:50]
            self.remarks.append(
                f"status {answer.status} with Retry-After {said!r}: waits {LONGEST_PAUSE / 3600:g} h, the longest pause"
            )
        return asked

    def _attempt(
        self, request: Request, method: str, url: str, body: bytes | None, attempt: int
    ) -> tuple[Answer | None, TransportError | None]:
        if self.cancelled():  # a function that sends much in one call must not go on
            raise Cancelled("the run was cancelled")
        self._ask_at = time.monotonic() + ASK_EVERY
        headers, url = self._dressed(request, url, body)
        if self.api.rate_limit:
            self._take_budget()
        return self._exchange(
            method, url, headers, body, request.timeout or self.api.timeout, attempt, request.rows, time.monotonic()
        )

    def _exchange(
        self,
        method: str,
        url: str,
        headers: dict[str, str],
        body: bytes | None,
        timeout: float,
        attempt: int,
        rows: tuple[str, ...] | None,
        began: float,
    ) -> tuple[Answer | None, TransportError | None]:
        self.sent += 1
        answer: Answer | None = None
        error: TransportError | None = None
        try:
            answer = self.transport.send(method, url, headers, body, timeout)
        except TransportError as failure:
            error = type(failure)(self.redactor.text(str(failure)))
        ended = time.monotonic()
        self.seconds += ended - began
        kept = answer if answer is None or len(answer.body) <= BODY_LIMIT else self._bounded(answer)
        self._keep((attempt, method, url, headers, body, kept, error, began, ended, rows))
        return answer, error

    def _bounded(self, answer: Answer) -> Answer:
        """What is kept of a large answer: all of it, as long as they are few."""
        self._kept += len(answer.body)
        if self._kept <= MOST_KEPT:
            return answer
        return replace(answer, body=answer.body[: 2 * BODY_LIMIT], _text=None, told=None, remarks=[])

    def _dressed(self, request: Request, url: str, body: bytes | None) -> tuple[dict[str, str], str]:
        """The headers and URL of one attempt: the API's, then auth's, then the call's own, which win."""
        known_ones = None if request.headers else self.authorizer.same
        place = request.content_type, self._base if url.startswith(self._base) else front(url)
        if known_ones is not None and (found := known_ones.get(place)):
            self._authorization = found[1]
            return found[0], url
        headers: dict[str, str] = {"Accept": "*/*"}
        known = {"accept": "Accept"}

        def put(more: Mapping[str, str]) -> None:
            for name, value in more.items():
                old = known.get(name.lower())
                if old is not None:
                    headers.pop(old, None)
                known[name.lower()] = name
                headers[name] = value

        if request.content_type:
            put({"Content-Type": request.content_type})
        if same_host(self.api.base_url, url):
            put(self.api.headers)
            auth_headers, url = self.authorizer.apply(url, body or b"", self._plain)
            put(auth_headers)
        put(request.headers)
        self._authorization = headers.get(known.get("authorization", ""), "")
        if known_ones is not None:
            known_ones[place] = headers, self._authorization
        return headers, url

    def _plain(self, method: str, url: str, headers: Mapping[str, str], body: bytes) -> Answer:
        """A request for a token: no auth of its own, but the same retries and the same budget."""
        failures = 0
        while True:
            self._take_budget()
            clock = time.monotonic()
            answer: Answer | None = None
            try:
                answer = self.transport.send(method, url, headers, body, self.api.timeout)
                if answer.status not in TEMPORARY or failures >= self.api.retry:
                    return answer
            except TransportError as error:
                if failures >= self.api.retry or isinstance(error, AnswerTooLarge):
                    raise
            finally:
                self.seconds += time.monotonic() - clock
            failures += 1
            asked = self._asked(answer)
            wait(backoff(self.api.backoff, failures) if asked is None else asked, self.cancelled, "a token")

    def _take_budget(self) -> None:
        if self.api.rate_limit:
            window = self.api.rate_limit.seconds
            # requests travel for different times: a little longer here, so that no window is too full over there
            self.limiter.take(
                self.limit_key, self.api.rate_limit.requests, window + min(0.1, window * 0.03), self.cancelled
            )
