"""HTTP for push functions: retries, auth made anew for each attempt, limits, and what is kept of each request."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from functools import lru_cache
from typing import Any
from urllib.parse import urljoin, urlsplit

from runtime.custody.redact import Redactor
from runtime.errors import Cancelled, OndatraError
from runtime.push.api_dict import Api
from runtime.push.http.auth import Authorizer
from runtime.push.http.client import POOL, Answer, Transport, TransportError
from runtime.push.http.rate_limits import Limiter, wait

__all__ = [
    "POOL",
    "Answer",
    "ApiCall",
    "Calls",
    "Request",
    "Requester",
    "Transport",
    "TransportError",
    "join_url",
    "retry_after",
    "same_host",
]
TEMPORARY = frozenset({429, 500, 502, 503, 504})
REDIRECTS = frozenset({301, 302, 303, 307, 308})
MAX_REDIRECTS = 5
#: Headers of a call that do not follow a redirect to another host.
PRIVATE_HEADERS = frozenset({"authorization", "proxy-authorization", "cookie"})
#: A call that makes many requests asks so often whether its run was cancelled.
ASK_EVERY = 0.1
_Key = tuple[str, str, bytes | None]  # method, URL, body


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

    def answers(self) -> dict[_Key, Answer]:
        """The last answer to each request."""
        return {(raw[1], raw[2], raw[4]): raw[5] for raw in self._raw if raw[5] is not None}

    def failed(self) -> list[int]:
        """The places of those without an answer or with one from 400 on."""
        return [place for place, raw in enumerate(self._raw) if raw[5] is None or raw[5].status >= 400]

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


def join_url(base_url: str, url: str) -> str:
    """base_url, one slash, the URL; an absolute URL as it is."""
    if url[:1] in "hH" and url.lower().startswith(("http://", "https://")):
        return url
    if not base_url:
        raise OndatraError(f"the URL {url!r} is relative, but the API dict has no base_url")
    return f"{base_url.rstrip('/')}/{url.lstrip('/')}"


def same_host(base_url: str, url: str) -> bool:
    """Whether auth may go there: the same host and port, and never from https down to http."""
    base, other = _place(_front(base_url)), _place(_front(url))
    return bool(base[1]) and base[1:] == other[1:] and not (base[0] == "https" and other[0] == "http")


def _front(url: str) -> str:
    """Scheme and host, so that few texts are parsed."""
    return "/".join(url.split("/", 3)[:3])


@lru_cache(maxsize=1024)
def _place(front: str) -> tuple[str, str, int | None]:
    try:
        parts = urlsplit(front)
        return parts.scheme, parts.hostname or "", parts.port or {"http": 80, "https": 443}.get(parts.scheme)
    except ValueError:
        return "", "", None


def retry_after(answer: Answer, now: float) -> float | None:
    """Seconds that the server asks to wait; it may say seconds or a date, and that by its own clock where it tells the
    time."""
    said = answer.headers.get("retry-after", "").strip()
    if not said:
        return None
    try:
        return max(0.0, float(said))
    except ValueError:
        pass
    when, theirs = _moment(said), _moment(answer.headers.get("date", ""))
    return None if when is None else max(0.0, when - (now if theirs is None else theirs))


def _moment(text: str) -> float | None:
    try:
        when = parsedate_to_datetime(text)
    except (TypeError, ValueError):
        return None
    return (when if when.tzinfo else when.replace(tzinfo=UTC)).timestamp()


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
        self._authorization = ""
        self.seconds = 0.0  # spent waiting for answers
        self._base = f"{api.base_url.rstrip('/')}/"
        self._same = {} if api.rate_limit or authorizer.same is None else authorizer.same  # what plain requests may use
        self._path, self._url = "", self._base  # of the last plain request
        self._ask_at = 0.0
        self._first: tuple[Answer | None, TransportError | None] | None = None
        self._led: dict[_Key, Answer] = {}  # where redirects ended

    @property
    def calls(self) -> Calls:
        """What people may see of the requests."""
        return Calls() if self.api.api_calls == "off" else self._made

    @property
    def answers(self) -> dict[_Key, Answer]:
        """What was answered last to each request, to find the row of an error."""
        return self._made.answers() | self._led

    def plain(self, method: str, path: str, body: bytes | None, kind: str, watch: Any) -> Answer | None:
        """The first attempt of a request without options, in the few steps that it takes in the usual case: many
        functions make one for each row. None where more is to be done, which is left to the `send` that must follow.
        Adds its time to `watch.away`. Raises OndatraError."""
        known, began = self._same.get((kind, self._base)), time.monotonic()
        if known is None or began > self._ask_at or path[:1] != "/":
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
            url = urljoin(url, location)
            if not url.startswith(("http://", "https://")):
                break
            if not same_host(request.url, url):
                request = replace(
                    request, headers={k: v for k, v in request.headers.items() if k.lower() not in PRIVATE_HEADERS}
                )
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
            asked = retry_after(answer, time.time()) if answer is not None and answer.status in TEMPORARY else None
            if answer is not None and answer.status == 429 and asked and self.api.rate_limit:
                self.limiter.pause(self.limit_key, time.time() + asked)
            if answer is not None and answer.status not in TEMPORARY:
                return answer
            failures += 1
            if failures > retries:
                if answer is None:
                    raise error or TransportError(f"{method} {url}: no answer")
                return answer
            wait(
                self.api.backoff * 2 ** (failures - 1) * random.uniform(0.5, 1.5) if asked is None else asked,
                self.cancelled,
                "its next try",
            )

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
            error = TransportError(self.redactor.text(str(failure)))
        ended = time.monotonic()
        self.seconds += ended - began
        self._keep((attempt, method, url, headers, body, answer, error, began, ended, rows))
        return answer, error

    def _dressed(self, request: Request, url: str, body: bytes | None) -> tuple[dict[str, str], str]:
        """The headers and URL of one attempt: the API's, then auth's, then the call's own, which win."""
        known_ones = None if request.headers else self.authorizer.same
        place = request.content_type, self._base if url.startswith(self._base) else _front(url)
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
            except TransportError:
                if failures >= self.api.retry:
                    raise
            finally:
                self.seconds += time.monotonic() - clock
            failures += 1
            asked = retry_after(answer, time.time()) if answer else None
            wait(
                self.api.backoff * 2 ** (failures - 1) * random.uniform(0.5, 1.5) if asked is None else asked,
                self.cancelled,
                "a token",
            )

    def _take_budget(self) -> None:
        if self.api.rate_limit:
            window = self.api.rate_limit.seconds
            # requests travel for different times: a little longer here, so that no window is too full over there
            self.limiter.take(
                self.limit_key, self.api.rate_limit.requests, window + min(0.1, window * 0.03), self.cancelled
            )
