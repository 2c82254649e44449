"""Auth variants of the API dict. Made anew for each attempt; a token is cached until it expires or is refused."""

from __future__ import annotations

import hashlib
import hmac
import math
import threading
import time
from base64 import b64encode
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Protocol
from urllib.parse import quote, urlencode

import orjson

from runtime.custody.redact import Redactor
from runtime.errors import OndatraError
from runtime.push.api_dict import Auth, Text

if TYPE_CHECKING:
    from runtime.push.http.answers import Answer

Send = Callable[[str, str, Mapping[str, str], bytes], "Answer"]
#: A token is renewed this much before its end, so that it does not end on its way.
MARGIN = 30.0


class SecretSource(Protocol):
    """The secrets of a workspace."""

    def get(self, name: str, default: Any = None) -> Any:
        """The value, `default` where it is not set."""


class Authorizer:
    """Adds the auth of one API to requests; shared by all threads, so that they share one token."""

    def __init__(self, auth: Auth | None, secrets: SecretSource, redactor: Redactor) -> None:
        self.auth, self.secrets, self.redactor = auth, secrets, redactor
        #: Headers of requests without any of their own, by content type and host, and their Authorization; only where
        #: auth says the same each time.
        self.same: dict[tuple[str, str], tuple[dict[str, str], str]] | None = (
            {} if auth is None or auth.kind in ("bearer", "header", "basic") else None
        )
        self._token: tuple[str, float] | None = None
        self._dropped = ""
        self._lock = threading.Lock()
        if auth:
            values = [self._value(t) for t in (auth.secret, auth.user) if t.env]
            for value in values:
                redactor.add(value)
            if auth.secret.literal:
                redactor.add(auth.secret.literal)
            if auth.kind in ("basic", "oauth2"):
                redactor.add_basic(self._value(auth.user), self._value(auth.secret))

    def apply(self, url: str, body: bytes, send: Send) -> tuple[dict[str, str], str]:
        """The headers to add and the URL to use. Raises OndatraError when no token can be had."""
        auth = self.auth
        if auth is None:
            return {}, url
        secret = self._value(auth.secret)
        if auth.kind == "bearer":
            return {"Authorization": f"Bearer {secret}"}, url
        if auth.kind == "header":
            return {auth.name: secret}, url
        if auth.kind == "param":
            return {}, f"{url}{'&' if '?' in url else '?'}{quote(auth.name, safe='')}={quote(secret, safe='')}"
        if auth.kind == "basic":
            return {"Authorization": _basic(self._value(auth.user), secret)}, url
        if auth.kind == "hmac":
            return {auth.name: hmac.new(secret.encode(), body, hashlib.sha256).hexdigest()}, url
        return {"Authorization": f"Bearer {self._bearer(auth, send)}"}, url

    def drop_token(self, authorization: str) -> bool:
        """Forgets the token that was refused; False if the request carried none of ours. Others may have renewed it
        already."""
        if self.auth is None or self.auth.kind != "oauth2":
            return False
        with self._lock:
            if self._token and authorization == f"Bearer {self._token[0]}":
                self._dropped, self._token = authorization, None
            return authorization == self._dropped

    def _value(self, text: Text) -> str:
        if text.env is None:
            return text.literal
        value = self.secrets.get(text.env)
        if not value:
            raise OndatraError(f"the secret {text.env} is not set")
        return value

    def _bearer(self, auth: Auth, send: Send) -> str:
        with self._lock:  # one thread fetches, the others wait for its token
            if self._token is None or self._token[1] <= time.monotonic():
                self._token = self._fetch(auth, send)
            return self._token[0]

    def _fetch(self, auth: Auth, send: Send) -> tuple[str, float]:
        fields = {"grant_type": "client_credentials", **({"scope": auth.scope} if auth.scope else {})}
        headers = {
            "Content-Type": "application/x-www-form-urlencoded",
            "Accept": "application/json",
            "Authorization": _basic(self._value(auth.user), self._value(auth.secret)),
        }
        answer = send("POST", auth.token_url, headers, urlencode(fields).encode())
        try:
            said: Any = orjson.loads(answer.text) if 200 <= answer.status < 300 else None
        except ValueError:
            said = None
        token = said.get("access_token") if isinstance(said, dict) else None
        if not isinstance(token, str) or not token:
            raise OndatraError(
                f"no token from {auth.token_url}: it answered {answer.status} {self.redactor.text(answer.text[:500])}"
            )
        self.redactor.add(token)
        lifetime = said.get("expires_in")
        try:
            seconds = float(lifetime) if lifetime is not None else 3600.0
        except (TypeError, ValueError):
            seconds = 3600.0
        seconds = seconds if math.isfinite(seconds) else 3600.0
        return token, time.monotonic() + seconds - min(MARGIN, seconds / 10)


def _basic(user: str, password: str) -> str:
    return "Basic " + b64encode(f"{user}:{password}".encode()).decode()
