"""The literal `API` dict of a push function, read strictly into one frozen Api.

The dict is read from the text, not evaluated: so it is known before anything runs, and each problem has a line.
"""

from __future__ import annotations

import ast
import io
import re
import tokenize
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any, Literal, cast

from runtime.errors import Problem, ProjectError

BatchMode = Literal["sync", "atomic", "async"]
ApiCalls = Literal["all", "failures", "off"]
UNITS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}
#: A dict on one line, or up to the first bracket that begins a line.
_PLAIN = re.compile(r"[ \t]*\{(?:[^\n]*|.*?\n)\}[ \t]*$", re.MULTILINE | re.DOTALL)
#: Parameters of push() and poll() that are no arguments of `@sink`.
PUSH_PARAMETERS = ("rows", "batch_number", "kind", "key_columns", "columns", "run_id", "attempt")
POLL_PARAMETERS = ("job_ref", "rows", "key_columns")


@dataclass(frozen=True)
class Text:
    """A text that stands in the dict, or the name of the secret that holds it."""

    literal: str = ""
    env: str | None = None


@dataclass(frozen=True)
class Auth:
    """How a request proves who sends it. `secret` is the token or key; the other fields belong to their kind."""

    kind: Literal["bearer", "header", "param", "basic", "oauth2", "hmac"]
    secret: Text
    name: str = ""  # of the header or query parameter
    user: Text = Text()  # Basic's user, OAuth2's client id
    token_url: str = ""
    scope: str = ""

    def secrets(self) -> tuple[str, ...]:
        """The names of the secrets that it needs."""
        return tuple(t.env for t in (self.user, self.secret) if t.env)


@dataclass(frozen=True)
class RateLimit:
    requests: int
    seconds: float
    name: str | None = None


@dataclass(frozen=True)
class Destination:
    type: str
    object: str = "Record"
    named: bool = field(default=False, compare=False)  # whether the API dict says what the object is

    def of(self, sink_args: Sequence[str]) -> Destination:
        """That of one sync: `crm('contacts')` sends to contacts, unless the API dict names another object."""
        return self if self.named or not sink_args else replace(self, object=sink_args[0])


@dataclass(frozen=True)
class PushOptions:
    batch_size: int = 100
    batch_mode: BatchMode = "sync"
    max_concurrent: int = 1
    attempts: int = 1
    give_up_after: int = 0
    max_failed_batches: int = 10
    job_max_age: float = 7 * 86400.0
    poll_interval: float = 30.0
    poll_timeout: float = 3600.0
    args: tuple[str, ...] = ()


@dataclass(frozen=True)
class Api:
    """Every key of the API dict; durations in seconds."""

    destination: Destination
    base_url: str = ""
    headers: Mapping[str, str] = field(default_factory=dict)
    timeout: float = 30.0
    auth: Auth | None = None
    retry: int = 0
    backoff: float = 1.0
    rate_limit: RateLimit | None = None
    api_calls: ApiCalls = "all"
    push: PushOptions = PushOptions()


class _Wrong(Exception):
    """One key is wrong."""


class _Reader:
    """Reads keys and collects what is wrong, so that all problems show at once."""

    def __init__(self) -> None:
        self.wrong: list[str] = []

    def dict(self, value: object, where: str, readers: Mapping[str, Callable[[object, str], Any]]) -> dict[str, Any]:
        """The keys of `value` that are right."""
        name = where or "API"
        if not isinstance(value, dict):
            self.wrong.append(f"{name} must be a dict, not {value!r}")
            return {}
        found: dict[str, Any] = {}
        for key, item in value.items():
            path = f"{where}.{key}" if where else str(key)
            if key not in readers:
                self.wrong.append(f"{name} has the unknown key {key!r}; allowed are {', '.join(readers)}")
                continue
            try:
                found[key] = readers[key](item, path)
            except _Wrong as error:
                self.wrong.append(f"{path} {error}, not {_shown(item)}")
        return found

    def required(self, value: object, found: Mapping[str, Any], where: str, *names: str) -> bool:
        """Notes what is missing; a key that is there but wrong was noted before."""
        given = value if isinstance(value, dict) else {}
        missing = [n for n in names if n not in given]
        if missing and isinstance(value, dict):
            self.wrong.append(f"{where} needs {' and '.join(f'{where}.{n}' for n in missing)}")
        return all(n in found for n in names)


def _shown(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."


def _text(value: object, _: str = "") -> str:
    if not isinstance(value, str) or not value:
        raise _Wrong("must be text")
    return value


def _url(value: object, _: str = "") -> str:
    if not isinstance(value, str) or not re.match(r"https?://[^/\s]+(?:/\S*)?$", value):
        raise _Wrong("must be text that begins with http:// or https://")
    return value


def _whole(least: int) -> Callable[[object, str], int]:
    def read(value: object, _: str) -> int:
        if isinstance(value, bool) or not isinstance(value, int) or value < least:
            raise _Wrong(f"must be a whole number from {least} on")
        return value

    return read


def _seconds(*, zero: bool) -> Callable[[object, str], float]:
    def read(value: object, _: str) -> float:
        if (
            isinstance(value, bool)
            or not isinstance(value, int | float)
            or not (0 <= value < 1e9)
            or (value == 0 and not zero)
        ):
            raise _Wrong(f"must be a number of seconds {'from 0 on' if zero else 'above 0'}")
        return float(value)

    return read


def duration(value: object, _: str = "") -> float:
    """Seconds of a text such as 500ms, 10s, 1.5h."""
    match = re.fullmatch(r"(\d+(?:\.\d+)?)\s*(ms|s|m|h|d)", value) if isinstance(value, str) else None
    if not match or not float(match[1]):
        raise _Wrong("must be text with a unit of ms, s, m, h or d, such as '10s'")
    return float(match[1]) * UNITS[match[2]]


def _one_of(*allowed: str) -> Callable[[object, str], str]:
    def read(value: object, _: str) -> str:
        if value not in allowed:
            raise _Wrong(f"must be one of {', '.join(allowed)}")
        return str(value)

    return read


def _headers(value: object, _: str) -> dict[str, str]:
    if not isinstance(value, dict) or not all(
        isinstance(k, str) and k and isinstance(v, str) for k, v in value.items()
    ):
        raise _Wrong("must be a dict of text to text")
    if any("\n" in k + v or "\r" in k + v for k, v in value.items()):
        raise _Wrong("must not contain line breaks")
    return dict(value)


def _args(value: object, _: str) -> tuple[str, ...]:
    if not isinstance(value, list | tuple) or not all(isinstance(v, str) and v.isidentifier() for v in value):
        raise _Wrong("must be a list of parameter names")
    taken = [v for v in value if v in PUSH_PARAMETERS + POLL_PARAMETERS]
    if taken or len(set(value)) != len(value):
        raise _Wrong(
            f"must be names of their own (each once, and none of "
            f"{', '.join(dict.fromkeys(PUSH_PARAMETERS + POLL_PARAMETERS))})"
        )
    return tuple(value)


def _secret(value: object, _: str = "") -> Text:
    if isinstance(value, str) and value:
        return Text(literal=value)
    return _env(value)


def _env(value: object, _: str = "") -> Text:
    if isinstance(value, dict) and set(value) == {"env"} and isinstance(value["env"], str) and value["env"]:
        return Text(env=value["env"])
    raise _Wrong("must be {'env': 'NAME'}")


AUTH_FORMS = (
    "{'env': K}, {'env': K, 'header': H}, {'env': K, 'param': P}, {'user': …, 'pass': …}, "
    "{'oauth2': {'token_url': …, 'client_id': …, 'client_secret': …, 'scope': …}}, {'hmac': {'env': K, 'header': H}}"
)


def _auth(reader: _Reader, value: object, where: str) -> Auth | None:
    keys = set(value) if isinstance(value, dict) else set()
    given = cast(dict[str, object], value)
    if keys in ({"env"}, {"env", "header"}, {"env", "param"}):
        found = reader.dict(value, where, {"env": _text, "header": _text, "param": _text})
        if set(found) != keys:
            return None
        kind: Literal["bearer", "header", "param"] = (
            "header" if "header" in keys else "param" if "param" in keys else "bearer"
        )
        return Auth(kind, Text(env=found["env"]), found.get("header") or found.get("param") or "")
    if keys == {"user", "pass"}:
        found = reader.dict(value, where, {"user": _secret, "pass": _secret})
        return Auth("basic", found["pass"], user=found["user"]) if set(found) == keys else None
    if keys == {"oauth2"}:
        inner = given["oauth2"]
        found = reader.dict(
            inner,
            f"{where}.oauth2",
            {"token_url": _url, "client_id": _secret, "client_secret": _secret, "scope": _text},
        )
        if not reader.required(inner, found, f"{where}.oauth2", "token_url", "client_id", "client_secret"):
            return None
        return Auth(
            "oauth2",
            found["client_secret"],
            user=found["client_id"],
            token_url=found["token_url"],
            scope=found.get("scope", ""),
        )
    if keys == {"hmac"}:
        inner = given["hmac"]
        found = reader.dict(inner, f"{where}.hmac", {"env": _text, "header": _text})
        return (
            Auth("hmac", Text(env=found["env"]), found["header"])
            if reader.required(inner, found, f"{where}.hmac", "env", "header")
            else None
        )
    raise _Wrong(f"must be one of {AUTH_FORMS}")


def _rate_limit(reader: _Reader, value: object, where: str) -> RateLimit | None:
    found = reader.dict(value, where, {"requests": _whole(1), "per": duration, "name": _text})
    if not reader.required(value, found, where, "requests", "per"):
        return None
    return RateLimit(found["requests"], found["per"], found.get("name"))


def _push(reader: _Reader, value: object, where: str) -> PushOptions:
    found = reader.dict(
        value,
        where,
        {
            "batch_size": _whole(1),
            "batch_mode": _one_of("sync", "atomic", "async"),
            "max_concurrent": _whole(1),
            "attempts": _whole(1),
            "give_up_after": _whole(0),
            "max_failed_batches": _whole(1),
            "job_max_age": duration,
            "poll_interval": duration,
            "poll_timeout": duration,
            "args": _args,
        },
    )
    mode = value.get("batch_mode", "sync") if isinstance(value, dict) else "sync"
    given = value if isinstance(value, dict) else {}
    if mode != "async":
        reader.wrong += [
            f"{where}.{key} goes with batch_mode 'async' only"
            for key in ("poll_interval", "poll_timeout")
            if key in given
        ]
    if mode != "sync" and found.get("max_concurrent", 1) > 1:
        reader.wrong.append(f"{where}.max_concurrent above 1 goes with batch_mode 'sync' only, not {mode!r}")
    return PushOptions(**found)


def _destination(reader: _Reader, value: object, where: str, default: str) -> Destination:
    found = reader.dict(value, where, {"type": _text, "object": _text})
    return Destination(found.get("type", default), found.get("object", "Record"), "object" in found)


def default_type(function: str) -> str:
    """`crm` is Crm, `google_sheets` is Google Sheets."""
    return " ".join(part[:1].upper() + part[1:] for part in function.split("_") if part) or function


def read_api(value: object, function: str, *, file: str, line: int) -> Api:
    """The Api that a dict describes. Raises ProjectError with everything that is wrong in it."""
    reader = _Reader()
    default = default_type(function)
    found = reader.dict(
        value,
        "",
        {
            "base_url": _url,
            "headers": _headers,
            "timeout": _seconds(zero=False),
            "auth": lambda v, w: _auth(reader, v, w),
            "retry": _whole(0),
            "backoff": _seconds(zero=True),
            "rate_limit": lambda v, w: _rate_limit(reader, v, w),
            "api_calls": _one_of("all", "failures", "off"),
            "destination": lambda v, w: _destination(reader, v, w, default),
            "push": lambda v, w: _push(reader, v, w),
        },
    )
    if reader.wrong:
        raise ProjectError([Problem(file, line, message) for message in reader.wrong])
    return Api(**{"destination": Destination(default), **found})


def find_api(text: str, *, file: str) -> tuple[object, int]:
    """The value of the API dict and its line. Raises ProjectError if there is none or it is computed."""
    start = re.search(r"^API[ \t]*=(?!=)", text, re.MULTILINE)
    if not start:
        raise ProjectError([Problem(file, 1, "the file needs a literal API dict at its top level: API = {…}")])
    line = text.count("\n", 0, start.start()) + 1
    source = _expression(text[start.end() :])
    try:
        return ast.literal_eval(source.strip()), line
    except (ValueError, SyntaxError, TypeError, MemoryError, RecursionError):
        raise ProjectError(
            [
                Problem(
                    file,
                    line,
                    "API must be a literal dict: texts, numbers, True, False, lists and dicts, nothing computed",
                )
            ]
        ) from None


def _expression(text: str) -> str:
    """The text up to the end of the first statement; brackets may span lines."""
    plain = _PLAIN.match(text)  # nearly all: the tokenizer takes longer to load than to read them
    if plain is not None:
        with suppress(ValueError, SyntaxError, TypeError, MemoryError, RecursionError):
            ast.literal_eval(plain[0].strip())
            return plain[0]
    lines = text.splitlines(keepends=True)
    try:
        for token in tokenize.generate_tokens(io.StringIO(text).readline):
            if token.type == tokenize.NEWLINE or (token.type == tokenize.OP and token.string == ";"):
                row, column = token.start
                return "".join(lines[: row - 1]) + lines[row - 1][:column] if row <= len(lines) else text
    except (tokenize.TokenError, IndentationError, SyntaxError):
        return text
    return text
