"""One HTTP request and its answer, by libcurl: handles that keep their connections, shared by the threads of a process.

libcurl, because the thread that asks also sends and reads, without Python's lock. A client with an event loop of its
own hands each request over twice, which takes longer than the request (docs/benchmarks.md).
"""

from __future__ import annotations

import os
import re
import socket
import ssl
import time
from collections import deque
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Protocol
from urllib.parse import quote, urlsplit
from urllib.request import getproxies

import pycurl

from runtime.errors import OndatraError
from runtime.push.http import answers
from runtime.push.http.answers import Answer, TooLarge

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
#: What no URL and no header can hold; a tab may stand in a header's value.
_CONTROL, _CONTROL_IN_HEADER = re.compile(r"[\x00-\x1f\x7f]"), re.compile(r"[\x00-\x08\x0a-\x1f\x7f]")
#: A connection that the server had closed breaks at once; one that breaks later took the request to somebody.
CLOSED_WITHIN = 2.0
_ANNOUNCED = f"Accept-Encoding: {', '.join(answers.PACKED)}".encode()
_OK, _ABORT = int(pycurl.PREREQFUNC_OK), int(pycurl.PREREQFUNC_ABORT)


class TransportError(OndatraError):
    """No answer came, or only a part of one: the destination may have done what was asked."""


class AnswerTooLarge(TransportError):
    """More was answered than is read: asking again would not help."""


class Transport(Protocol):
    """Sends one request and nothing more; a dry run gives a recording one."""

    def send(self, method: str, url: str, headers: Mapping[str, str], body: bytes | None, timeout: float) -> Answer:
        """Raises TransportError; OndatraError for what is no request."""


class PooledTransport:
    """The process' handles, made when needed, so that a forked worker makes its own. The one that was used last is used
    next. With `may_reach`, which is asked for each IP address before a connection is made, no proxy stands between."""

    def __init__(self, may_reach: Callable[[str], bool] | None = None) -> None:
        self._may_reach = may_reach
        self._idle: deque[_Handle] = deque()
        self._others: list[
            Any
        ] = []  # of the process that this one was forked from: closing them would end its connections
        self._settings: list[tuple[int, Any]] = []
        self._proxies: dict[str, str] = {}
        os.register_at_fork(after_in_child=self._forked)

    def _forked(self) -> None:
        self._others.append(self._idle)
        self._idle, self._settings = deque(), []

    def send(self, method: str, url: str, headers: Mapping[str, str], body: bytes | None, timeout: float) -> Answer:
        try:
            handle = self._idle.pop()
        except IndexError:
            handle = self._handle()
        try:
            return handle.send(method, url, headers, body, timeout)
        finally:
            self._idle.append(handle)

    def _handle(self) -> _Handle:
        """Proxies come from HTTP_PROXY, HTTPS_PROXY, ALL_PROXY and NO_PROXY, private authorities from the usual
        variables, as they are at the first request."""
        if not self._settings:
            self._proxies = {} if self._may_reach else getproxies()
            self._settings = [
                (pycurl.NOSIGNAL, 1),
                (pycurl.PROTOCOLS, pycurl.PROTO_HTTP | pycurl.PROTO_HTTPS),
                (pycurl.USERAGENT, "ondatra"),
                (pycurl.PATH_AS_IS, 1),
                (pycurl.MAXFILESIZE_LARGE, answers.MOST_BYTES),
                (pycurl.MAXAGE_CONN, 20),
                (pycurl.NOPROXY, self._proxies.get("no", "")),
                *_authorities(),
                *_gate(self._may_reach),
            ]
        return _Handle(self._settings, self._proxies)


def _gate(may_reach: Callable[[str], bool] | None) -> list[tuple[int, Any]]:
    if may_reach is None:
        return []

    def opened(_purpose: int, place: Any) -> Any:
        family, kind, protocol, address = place
        return socket.socket(family, kind, protocol) if may_reach(address[0]) else pycurl.SOCKET_BAD

    return [(pycurl.OPENSOCKETFUNCTION, opened), (pycurl.PROXY, "")]


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
        self._began = 0.0
        self._said: list[Any] = [None] * 5  # URL, scheme, headers, timeout, method and whether there is a body
        self._last_head: list[bytes] = []
        self._last_body = b""
        self._last = Answer(0, {}, b"")
        for option, value in [
            *settings,
            (pycurl.HEADERFUNCTION, self._head.append),
            (pycurl.WRITEFUNCTION, self._body.append),
            (pycurl.PREREQFUNCTION, self._begins),
        ]:
            self._curl.setopt(option, value)

    def _begins(self, _there: str, _here: str, _port: int, _own_port: int) -> int:
        """libcurl sends a request again, on a new connection, where one that it had kept ended without a byte of an
        answer. That may be, whatever the method, where the server had closed it: nobody read the request."""
        now = time.monotonic()
        if self._began and now - self._began > CLOSED_WITHIN:
            return _ABORT
        self._began = self._began or now
        return _OK

    def send(self, method: str, url: str, headers: Mapping[str, str], body: bytes | None, timeout: float) -> Answer:
        self._head.clear()
        self._began = 0.0
        try:
            self._say(method, url, headers, body, timeout)
            self._curl.perform()
            return self._answer()
        except pycurl.error as error:
            code, text = error.args
            if code == pycurl.E_URL_MALFORMAT or code == pycurl.E_UNSUPPORTED_PROTOCOL and not self._began:
                raise OndatraError(f"{method} {url} is no request that can be sent: {text}") from None
            if code == pycurl.E_FILESIZE_EXCEEDED:
                raise AnswerTooLarge(f"{method} {url}: {TooLarge()}") from None
            raise TransportError(f"{method} {url}: {self._reason(code, text, timeout)}") from None
        except TooLarge as error:
            raise AnswerTooLarge(f"{method} {url}: {error}") from None
        except ValueError as error:
            raise (TransportError if self._began else OndatraError)(f"{method} {_visible(url)}: {error}") from None
        finally:
            self._body.clear()  # a handle that rests shall not hold it

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
        """What many destinations say to each of many requests is read once. Raises ValueError."""
        body, last = b"".join(self._body), self._last
        if self._head == self._last_head:
            if body == self._last_body:
                return last
            status, headers = last.status, last.headers
        else:
            status, headers = self._curl.getinfo(pycurl.RESPONSE_CODE), answers.read_head(self._head)
        answer = answers.read(status, headers, body)
        self._last_head = self._head.copy()
        small = len(body) <= _REMEMBERED and len(answer.body) <= _REMEMBERED
        self._last_body, self._last = (body, answer) if small else (b"", Answer(status, headers, b""))
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
        if not _NAME.fullmatch(name) or _CONTROL_IN_HEADER.search(value):
            raise ValueError(
                f"the header {name!r} cannot be sent: a name has no spaces, and neither name nor value has a line break"
                " or another control character"
            )
        lines.append(f"{name}: {value}".encode() if value.strip() else f"{name};".encode())
    given = {name.lower() for name in headers}
    if "content-type" not in given:
        lines.append(b"Content-Type:")
    if "accept-encoding" not in given:
        lines.append(_ANNOUNCED)
    return lines


def _ascii(url: str) -> str:
    """The URL as it travels: what is escaped stays so, spaces and other letters are escaped. Raises ValueError."""
    if _CONTROL.search(url):
        raise ValueError(
            "a URL has no line break and no other control character: quote what comes from data with url_quote()"
        )
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


def _visible(url: str) -> str:
    return repr(url) if _CONTROL.search(url) else url


POOL = PooledTransport()
