"""The built-ins of push functions: what Starlark calls on Python's side. Each finds its call through
`starlark.current()`."""

from __future__ import annotations

import hashlib
import hmac
import json
import time
import uuid
from base64 import b64decode, b64encode
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Protocol
from urllib.parse import quote, urlencode

import orjson

from runtime.custody.redact import Redactor
from runtime.errors import Cancelled, OndatraError
from runtime.push import json_text
from runtime.push.api_dict import Api
from runtime.push.http.addresses import join_url
from runtime.push.http.answers import Answer
from runtime.push.http.auth import SecretSource
from runtime.push.http.requester import Request
from runtime.push.json_text import TooDeep, is_json
from runtime.push.starlark import Watch, current
from runtime.threads import wait

_NOTHING: Mapping[str, str] = {}
#: JSON values that may not read the same in Starlark: as the whole of an answer, and as a field of an object.
_UNLIKE, _UNLIKE_FIELDS = (list, float, str), (dict, list, float)
#: Answers up to so many bytes pass as one text.
_SMALL = 4096
#: Lines that one call may print; a run's log is read by people.
MAX_PRINTS = 1_000


class Sender(Protocol):
    """Makes requests: for real, or from what was answered before."""

    api: Api
    remarks: list[str]

    def send(self, request: Request) -> Answer: ...

    def plain(self, method: str, path: str, body: bytes | None, kind: str, watch: Watch) -> Answer | None: ...


@dataclass
class Session:
    """One call of push(), poll() or finalize() as its built-ins see it."""

    requester: Sender
    redactor: Redactor
    secrets: SecretSource
    cancelled: Callable[[], bool]
    watch: Watch
    rows: Sequence[Mapping[str, Any]] = ()
    change_ids: Sequence[str] | None = None
    prints: list[str] = field(default_factory=list)
    replayed: bool = False  # nothing happens for real: no request, no wait
    remarked: set[str] = field(default_factory=set)

    def remark(self, text: str) -> None:
        """A line in the run's log, once a call."""
        if text not in self.remarked and len(self.prints) < MAX_PRINTS:
            self.remarked.add(text)
            self.prints.append(self.redactor.body(text))

    def away(self, work: Callable[..., Any], *given: Any) -> Any:
        """Work that waits for others: it does not count as computing, and its errors keep their kind."""
        before = time.monotonic()
        try:
            return work(*given)
        except (Cancelled, OndatraError) as error:
            self.watch.raised = error
            raise
        finally:
            self.watch.away += time.monotonic() - before
            while self.requester.remarks:
                self.remark(self.requester.remarks.pop(0))


def _http(
    method: str,
    url: Any,
    encoded: str | None,
    value: Any = None,
    *,
    data: Any = None,
    body: Any = None,
    headers: Any = None,
    params: Any = None,
    timeout: Any = None,
    retry: Any = None,
    row: Any = None,
) -> dict[str, Any] | None:
    """One request; None asks the prelude for the value itself, because Starlark's own text of it is no JSON."""
    session: Session = current()
    if encoded is not None and not is_json(encoded):
        return None
    if value is not None:
        encoded = json_text.encode(value)
    if sum(x is not None for x in (encoded, data, body)) > 1:
        raise ValueError("only one of json=, data= and body= can be given")
    content, kind = _body(encoded, data, body)
    request = Request(
        method,
        _with_params(join_url(session.requester.api.base_url, _need_text(url, "url")), params),
        headers=_header_texts(headers),
        body=content,
        content_type=kind,
        timeout=_number(timeout, "timeout", 0.001),
        retry=None if retry is None else int(_number(retry, "retry", 0) or 0),
        rows=_tied(row),
    )
    answer: Answer = session.away(session.requester.send, request)
    said = _said(answer)
    _remark(session, answer, method, request.url)
    return said


def _remark(session: Session, answer: Answer, method: str, url: str) -> None:
    for remark in answer.remarks:
        session.remark(f"the answer to {method} {url.partition('?')[0]}: {remark}")


def _said(answer: Answer) -> dict[str, Any]:
    text = answer.text
    return {
        "ok": 200 <= answer.status < 300,
        "status_code": answer.status,
        "text": text,
        "json": _json(answer),
        "headers": answer.headers,
    }


def _json(answer: Answer) -> Any:
    """The value of its text; None if that is no JSON, or nested too deeply."""
    try:
        value, remark = json_text.read(answer.text)
    except ValueError:
        return None
    if remark and remark not in answer.remarks:
        answer.remarks.append(remark)
    return value


def _plain_http(**asked: Any) -> dict[str, Any] | None:
    """A request without any options. The name of the one argument is lines: method, body in JSON or nothing, URL. The
    only key of its answer is the JSON list [ok, status, headers, text, json] where that reads the same in Starlark;
    else the answer is as `_http` gives it."""
    session: Session = current()
    (lines,) = asked
    method, encoded, url = lines.split("\n", 2)
    if ("inf" in encoded or "nan" in encoded) and not is_json(
        encoded
    ):  # all that Starlark's encoder writes and JSON has not
        return None
    requester = session.requester
    body, kind = (encoded.encode("utf-8", "replace"), "application/json") if encoded else (None, "")
    try:
        answer = requester.plain(method, url, body, kind, session.watch)
    except OndatraError as error:
        session.watch.raised = error
        raise
    if answer is None:
        answer = session.away(
            requester.send, Request(method, join_url(requester.api.base_url, url), _NOTHING, body, kind)
        )
    told: dict[str, Any] | None = answer.told
    if told is None:
        told = _told(answer)
        if len(answer.body) <= _SMALL:
            answer.told = told
    if answer.remarks:
        _remark(session, answer, method, url)
    return told


def _told(answer: Answer) -> dict[str, Any]:
    if len(answer.body) > _SMALL:
        return _said(answer)
    text = answer.text
    value = _json(answer)
    # Starlark's decoder sorts the fields of objects; one field is in order
    if (
        isinstance(value, _UNLIKE)
        or isinstance(value, dict)
        and (len(value) > 1 or any(isinstance(v, _UNLIKE_FIELDS) for v in value.values()))
    ):
        return _said(answer)
    try:
        return {orjson.dumps([200 <= answer.status < 300, answer.status, answer.headers, text, value]).decode(): 0}
    except (TypeError, ValueError):  # integers over 64 bits
        return _said(answer)


def _body(encoded: str | None, data: Any, body: Any) -> tuple[bytes | None, str]:
    if encoded is not None:
        return encoded.encode("utf-8", "replace"), "application/json"
    if isinstance(data, dict):
        return urlencode(_pairs(data, "data")).encode(), "application/x-www-form-urlencoded"
    if data is not None:
        return _need_text(data, "data").encode(), "application/x-www-form-urlencoded"
    if body is not None:
        return _need_text(body, "body").encode(), "text/plain; charset=utf-8"
    return None, ""


def _need_text(value: Any, name: str) -> str:
    if not isinstance(value, str):
        raise TypeError(f"{name} must be text, not {type(value).__name__}")
    return value


def _number(value: Any, name: str, least: float) -> float | None:
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int | float) or value < least:
        raise ValueError(f"{name} must be a number from {least:g} on, not {value!r}")
    return float(value)


def _header_texts(headers: Any) -> dict[str, str]:
    if headers is None:
        return {}
    if not isinstance(headers, dict):
        raise TypeError("headers must be a dict")
    return {
        _need_text(k, "a header's name"): v if isinstance(v, str) else _plain(v)
        for k, v in headers.items()
        if v is not None
    }


def _plain(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _pairs(values: Any, name: str) -> list[tuple[str, str]]:
    """Names and texts of a query or form; a list gives its name several times, None gives nothing."""
    if not isinstance(values, dict):
        raise TypeError(f"{name} must be a dict, not {type(values).__name__}")
    return [
        (str(k), _plain(v))
        for k, item in values.items()
        for v in (item if isinstance(item, list) else [item])
        if v is not None
    ]


def _with_params(url: str, params: Any) -> str:
    if not params:
        return url
    query = urlencode(_pairs(params, "params"), quote_via=quote)
    url, mark, fragment = url.partition("#")
    return f"{url}{'&' if '?' in url else '?'}{query}{mark}{fragment}" if query else url


def row_key(row: Mapping[str, Any]) -> str:
    return f"{row.get('__ondatra_rowid')}:{row.get('__ondatra_change_type')}"


def _tied(row: Any) -> tuple[str, ...] | None:
    if row is None:
        return None
    rows = row if isinstance(row, list) else [row]
    if not all(isinstance(r, dict) and "__ondatra_rowid" in r for r in rows):
        raise TypeError("row must be a row that push() was given, or a list of them")
    return tuple(map(row_key, rows))


def _decode(text: str, *default: Any, **named: Any) -> Any:
    try:
        if not isinstance(text, str):
            raise ValueError
        value, remark = json_text.read(text)
    except ValueError as error:
        if default or "default" in named:
            return default[0] if default else named["default"]
        wrong = f"nested more than {json_text.MOST_NESTED} levels deep" if isinstance(error, TooDeep) else "no JSON"
        raise ValueError(f"json.decode: this is {wrong}: {str(text)[:200]}") from None
    if remark:
        current().remark(f"json.decode: {remark}")
    return value


def _env_get(name: str, default: Any = None, secret: bool = True) -> Any:
    """The variable of the workspace; with `secret=False` it may be shown."""
    session: Session = current()
    value = session.secrets.get(name, default)
    if value is default:
        return default
    if secret:
        session.redactor.add(value)
    return value


def _print(*values: Any, sep: str = " ") -> None:
    session: Session = current()
    if len(session.prints) < MAX_PRINTS:
        line = sep.join(v if isinstance(v, str) else json_text.encode(v) for v in values)
        session.prints.append(session.redactor.body(line))
    elif len(session.prints) == MAX_PRINTS:
        session.prints.append(f"(more than {MAX_PRINTS} lines; the rest is left out)")


def _sleep(seconds: float) -> None:
    session: Session = current()
    if session.replayed:
        return
    session.away(lambda: wait(_number(seconds, "seconds", 0) or 0.0, session.cancelled, "sleep()"))


def _hmac_sha256(key: str, text: str) -> str:
    return hmac.new(key.encode(), text.encode(), hashlib.sha256).hexdigest()


def _base64_decode(text: str) -> str:
    return b64decode(text, validate=True).decode()


def _url_quote(text: str) -> str:
    """The text as one segment of a path: `.` and `..` alone would lead elsewhere."""
    return text.replace(".", "%2E") if text in (".", "..") else quote(text, safe="")


def _idempotency_key(row: dict[str, Any]) -> str:
    """The same for the same change however often it is sent; with the change's own id two equal changes differ."""
    session: Session = current()
    name = row_key(row)
    if session.change_ids:
        for known, change in zip(session.rows, session.change_ids, strict=False):
            if row_key(known) == name:
                return str(uuid.uuid5(uuid.NAMESPACE_OID, f"{name}:{change}"))
    return str(uuid.uuid5(uuid.NAMESPACE_OID, name + json.dumps(row, sort_keys=True, ensure_ascii=False)))


FUNCTIONS: dict[str, Callable[..., Any]] = {
    "ondatra__http": _http,
    "ondatra__plain": _plain_http,
    "ondatra__is_json": is_json,
    "ondatra__encode_value": json_text.encode,
    "ondatra__decode": _decode,
    "ondatra__env_get": _env_get,
    "ondatra__now": lambda: datetime.now(UTC).isoformat().replace("+00:00", "Z"),
    "ondatra__unix": lambda: int(time.time()),
    "md5": lambda text: hashlib.md5(text.encode(), usedforsecurity=False).hexdigest(),
    "sha256": lambda text: hashlib.sha256(text.encode()).hexdigest(),
    "hmac_sha256": _hmac_sha256,
    "base64_encode": lambda text: b64encode(text.encode()).decode(),
    "base64_decode": _base64_decode,
    "url_quote": _url_quote,
    "uuid": lambda: str(uuid.uuid4()),
    "idempotency_key": _idempotency_key,
    "sleep": _sleep,
    "print": _print,
}
