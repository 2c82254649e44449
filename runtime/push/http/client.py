"""One HTTP request and its answer, by libcurl: handles that keep their connections, shared by the threads of a process.

libcurl, because the thread that asks also sends and reads, without Python's lock. A client with an event loop of its
own hands each request over twice, which takes longer than the request (docs/benchmarks.md).
"""

from __future__ import annotations

import os
import re
import ssl
import time
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol
from urllib.parse import quote, urlsplit
from urllib.request import getproxies

import pycurl

from runtime.errors import OndatraError

#: Variables that name a file of further authorities.
AUTHORITIES = ("SSL_CERT_FILE", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE")
#: Where systems keep the authorities that they trust.
SYSTEM_AUTHORITIES = (
    "/etc/ssl/certs/ca-certificates.crt",
    "/etc/pki/tls/certs/ca-bundle.crt",
    "/etc/ssl/ca-bundle.pem",
    "/etc/ssl/cert.pem",
)
_NAME = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
#: A handle keeps the last answer of up to so many bytes.
_REMEMBERED = 4096
#: A destination is near where it answers within so many seconds: on this machine or beside it. Sleeping and waking
#: again takes as long as that.
NEAR = 0.00025
#: So many answers more must have come so quickly than not, before they are waited for awake.
NEAR_AFTER = 50
_BREAK = re.compile(r"[\r\n\0]")
_OK, _ABORT = int(pycurl.PREREQFUNC_OK), int(pycurl.PREREQFUNC_ABORT)


class TransportError(OndatraError):
    """No answer came, or only a part of one: the destination may have done what was asked."""


@dataclass  # not frozen: that costs a microsecond or two for each
class Answer:
    """What a server said, never changed; the same again may be the same object. Header names are in lower case,
    repeated ones joined by comma and space."""

    status: int
    headers: dict[str, str]
    body: bytes
    told: Any = None  # how push functions get it, once they did
    _text: str | None = None

    @property
    def text(self) -> str:
        if self._text is None:
            self._text = self._decoded()
        return self._text

    def _decoded(self) -> str:
        charset = "utf-8"
        kind = self.headers.get("content-type", "")
        for part in kind.split(";")[1:] if ";" in kind else ():
            name, _, value = part.strip().partition("=")
            charset = value.strip("\"' ") if name.lower() == "charset" and value else charset
        try:
            return self.body.decode(charset, "replace")
        except LookupError:
            return self.body.decode("utf-8", "replace")


class Transport(Protocol):
    """Sends one request and nothing more; a dry run gives a recording one."""

    def send(self, method: str, url: str, headers: Mapping[str, str], body: bytes | None, timeout: float) -> Answer:
        """Raises TransportError; OndatraError for what is no request."""


class PooledTransport:
    """The process' handles, made when needed, so that a forked worker makes its own. The one that was used last is used
    next."""

    def __init__(self) -> None:
        self._handles: list[_Handle] = []
        self._idle: deque[_Handle] = deque()
        self._others: list[
            Any
        ] = []  # of the process that this one was forked from: closing them would end its connections
        self._settings: list[tuple[int, Any]] = []
        self._proxies: dict[str, str] = {}
        os.register_at_fork(after_in_child=self._forked)

    def _forked(self) -> None:
        self._others.append(self._idle)
        self._handles, self._idle, self._settings = [], deque(), []

    def send(self, method: str, url: str, headers: Mapping[str, str], body: bytes | None, timeout: float) -> Answer:
        try:
            handle = self._idle.pop()
        except IndexError:
            handle = self._handle()
        try:
            # several threads that stay awake would take Python's lock from each other
            return handle.send(method, url, headers, body, timeout, alone=len(self._idle) + 1 == len(self._handles))
        finally:
            self._idle.append(handle)

    def _handle(self) -> _Handle:
        """Proxies come from HTTP_PROXY, HTTPS_PROXY, ALL_PROXY and NO_PROXY, private authorities from the usual
        variables, as they are at the first request."""
        if not self._settings:
            self._proxies = getproxies()
            self._settings = [
                (pycurl.NOSIGNAL, 1),
                (pycurl.PROTOCOLS, pycurl.PROTO_HTTP | pycurl.PROTO_HTTPS),
                (pycurl.USERAGENT, "ondatra"),
                (pycurl.ACCEPT_ENCODING, ""),
                (pycurl.MAXAGE_CONN, 20),
                (pycurl.NOPROXY, self._proxies.get("no", "")),
                *_authorities(),
            ]
        handle = _Handle(self._settings, self._proxies)
        self._handles.append(handle)
        return handle


def _authorities() -> list[tuple[int, Any]]:
    paths = [Path(p) for p in (ssl.get_default_verify_paths().openssl_cafile, *SYSTEM_AUTHORITIES)]
    system = next((p for p in paths if p.is_file()), None)
    own = next((Path(p) for name in AUTHORITIES if (p := os.environ.get(name)) and Path(p).is_file()), None)
    if own is None:
        return [] if system is None else [(pycurl.CAINFO, str(system))]
    return [(pycurl.CAINFO_BLOB, b"\n".join(p.read_bytes() for p in (system, own) if p))]


class _Handle:
    """One of libcurl's, for one request at a time. What stays the same from request to request is not said again."""

    def __init__(self, settings: list[tuple[int, Any]], proxies: Mapping[str, str]) -> None:
        self._curl = pycurl.Curl()
        self._proxies = proxies
        self._head: list[bytes] = []
        self._body: list[bytes] = []
        self._begun = False
        self._said: list[Any] = [None] * 5  # URL, scheme, headers, timeout, method and whether there is a body
        self._last_head: list[bytes] = []
        self._last = Answer(0, {}, b"")
        self._near = 0
        self._multi: Any = None
        for option, value in [
            *settings,
            (pycurl.HEADERFUNCTION, self._head.append),
            (pycurl.WRITEFUNCTION, self._body.append),
            (pycurl.PREREQFUNCTION, self._begins),
        ]:
            self._curl.setopt(option, value)

    def _begins(self, _there: str, _here: str, _port: int, _own_port: int) -> int:
        """libcurl itself sends a request again when a connection that it kept breaks; whether that may be is not its to
        decide."""
        if self._begun:
            return _ABORT
        self._begun = True
        return _OK

    def send(
        self, method: str, url: str, headers: Mapping[str, str], body: bytes | None, timeout: float, *, alone: bool
    ) -> Answer:
        """`alone`: no other request of the process is out."""
        self._head.clear()
        self._body.clear()
        self._begun = False
        try:
            self._say(method, url, headers, body, timeout)
            self._perform(alone)
            return self._answer()
        except pycurl.error as error:
            code, text = error.args
            if code == pycurl.E_URL_MALFORMAT or code == pycurl.E_UNSUPPORTED_PROTOCOL and not self._begun:
                raise OndatraError(f"{method} {url} is no request that can be sent: {text}") from None
            raise TransportError(f"{method} {url}: {self._reason(code, text, timeout)}") from None
        except ValueError as error:
            raise (TransportError if self._begun else OndatraError)(f"{method} {url}: {error}") from None

    def _perform(self, alone: bool) -> None:
        """Raises pycurl.error."""
        began = time.monotonic()
        if alone and self._near >= NEAR_AFTER:
            self._perform_awake(began + NEAR)
        else:
            self._curl.perform()
        if time.monotonic() - began < NEAR:
            self._near += self._near < 2 * NEAR_AFTER
        else:
            self._near = max(0, self._near - NEAR_AFTER // 5)

    def _perform_awake(self, until: float) -> None:
        """As perform(), which sleeps while it waits, and a processor that slept takes longer to wake than a near answer
        takes to come."""
        multi = self._multi = self._multi or pycurl.CurlMulti()
        multi.add_handle(self._curl)
        try:
            while multi.perform()[1]:
                if time.monotonic() > until:
                    self._sleep(multi)
            _, _, failed = multi.info_read()
        finally:
            multi.remove_handle(self._curl)
        for _, code, text in failed:
            raise pycurl.error(code, text)

    @staticmethod
    def _sleep(multi: Any) -> None:
        """Until there is something to do; select() knows no file descriptor over 1023, and nothing is asked about those
        for a moment."""
        wanted = multi.timeout()  # ms, -1 for none
        seconds = min(1.0, wanted / 1000) if wanted >= 0 else 1.0
        if not multi.select(seconds):
            time.sleep(min(seconds, 0.001))

    def _say(self, method: str, url: str, headers: Mapping[str, str], body: bytes | None, timeout: float) -> None:
        curl, said = self._curl, self._said
        if url != said[0]:
            scheme = url[:5].lower().rstrip(":")
            if scheme != said[1]:
                curl.setopt(pycurl.PROXY, self._proxies.get(scheme) or self._proxies.get("all") or "")
                said[1] = scheme
            curl.setopt(pycurl.URL, _ascii(url))
            said[0] = url
        if headers is not said[2]:
            curl.setopt(pycurl.HTTPHEADER, _lines(headers))
            said[2] = headers
        if timeout != said[3]:
            curl.setopt(pycurl.TIMEOUT_MS, max(1, round(timeout * 1000)))
            said[3] = timeout
        if body is None and method in ("POST", "PUT", "PATCH"):
            body = b""  # so that it has a length
        if (method, body is None) != said[4]:
            curl.unsetopt(pycurl.CUSTOMREQUEST)
            curl.setopt(pycurl.HTTPGET if body is None else pycurl.POST, 1)
            if method == "HEAD":
                curl.setopt(pycurl.NOBODY, 1)
            elif method != ("GET" if body is None else "POST"):
                curl.setopt(pycurl.CUSTOMREQUEST, method)
            said[4] = method, body is None
        if body is not None:
            curl.setopt(pycurl.POSTFIELDS, body)

    def _answer(self) -> Answer:
        """What many destinations say to each of many requests is read once."""
        body, last = b"".join(self._body), self._last
        if self._head != self._last_head:
            answer = Answer(self._curl.getinfo(pycurl.RESPONSE_CODE), _read(self._head), body)
            self._last_head = self._head.copy()
        elif body != last.body:
            answer = Answer(last.status, last.headers, body)
        else:
            return last
        self._last = answer if len(body) <= _REMEMBERED else Answer(answer.status, answer.headers, b"")
        return answer

    def _reason(self, code: int, text: str, timeout: float) -> str:
        if code == pycurl.E_OPERATION_TIMEDOUT:
            return f"no answer within {timeout:g} s"
        if code == pycurl.E_ABORTED_BY_CALLBACK:
            return "the connection was closed before an answer came"
        number = self._curl.getinfo(pycurl.OS_ERRNO)
        if code == pycurl.E_COULDNT_CONNECT:
            return f"connection error: {os.strerror(number) if number else text}"
        return f"{text}: {os.strerror(number)}" if number else str(text)


def _lines(headers: Mapping[str, str]) -> list[bytes]:
    """Headers as libcurl takes them. It adds none of its own for a body. Raises ValueError for what would be more than
    a header."""
    lines = [b"Expect:"]
    for name, value in headers.items():
        if not _NAME.fullmatch(name) or _BREAK.search(value):
            raise ValueError(
                f"the header {name!r} cannot be sent: a name has no spaces, and neither name nor value has a line break"
            )
        lines.append(f"{name}: {value}".encode() if value.strip() else f"{name};".encode())
    if not any(name.lower() == "content-type" for name in headers):
        lines.append(b"Content-Type:")
    return lines


def _read(head: list[bytes]) -> dict[str, str]:
    """The fields of the last head: one of an interim answer may stand before it. Raises ValueError where it was cut
    off."""
    start = max((i for i, line in enumerate(head) if line.startswith(b"HTTP/")), default=0)
    found: dict[str, str] = {}
    for line in head[start + 1 :]:
        if not line.strip():
            return found
        try:
            text = line.decode()
        except UnicodeDecodeError:
            text = line.decode("latin-1")
        name, _, value = text.partition(":")
        name, value = name.strip().lower(), value.strip()
        found[name] = f"{found[name]}, {value}" if name in found else value
    raise ValueError("the answer was cut off within its head")


def _ascii(url: str) -> str:
    """The URL as it travels; what is escaped stays so."""
    if url.isascii() and " " not in url:
        return url
    parts = urlsplit(url)
    try:
        place = parts.netloc.encode("idna").decode()
    except UnicodeError:
        raise ValueError("its host is no name") from None
    safe = "/%:@!$&'()*+,;=~-._?[]"
    query = f"?{quote(parts.query, safe=safe)}" if parts.query else ""
    return f"{parts.scheme}://{place}{quote(parts.path, safe=safe.replace('?', ''))}{query}"


POOL = PooledTransport()
