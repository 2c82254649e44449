"""Sign-in by name and password, with a limit of attempts: by name and address together, by either alone. Every form
that signs in comes through here."""

from __future__ import annotations

import hashlib
import time
import unicodedata
from typing import Any

from django.contrib.auth.backends import ModelBackend
from django.contrib.auth.models import User
from django.core.cache import cache
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest

#: Seconds within which attempts are counted.
WINDOW = 15 * 60
#: Attempts within it. Of one name from anywhere there are more: nobody should be able to lock somebody else out easily.
BY_BOTH, BY_NAME, BY_ADDRESS = 5, 50, 50


class Backend(ModelBackend):
    """Django's own, behind the limit. Past it the right password is refused too, so that it is no answer;
    `sign_in_wait` of the request then says for how many seconds."""

    def authenticate(
        self, request: HttpRequest | None, username: str | None = None, password: str | None = None, **more: Any
    ) -> User | None:
        if request is None or username is None:
            return super().authenticate(request, username, password, **more)

        keys = _keys(username, str(request.META.get("REMOTE_ADDR", "")))
        if wait := count(keys):
            request.sign_in_wait = wait  # type: ignore[attr-defined]
            raise PermissionDenied
        user = super().authenticate(request, username, password, **more)
        if user is not None:
            cache.delete_many([keys[0][0]])
        return user


def too_many(name: str, address: str) -> bool:
    """Whether one more attempt of this name, counted here, is too many."""
    return count(_keys(name, address)) > 0


def count(keys: list[tuple[str, int]]) -> int:
    """Counts one attempt; the seconds to wait where it is one too many, else 0."""
    used = False
    for key, most in keys:
        cache.add(key, 0, WINDOW)
        used = cache.incr(key) > most or used
    return WINDOW - int(time.time()) % WINDOW if used else 0


def _keys(name: str, address: str) -> list[tuple[str, int]]:
    """What is counted, and how often it may be; the cache sees no name."""
    name = unicodedata.normalize("NFKC", name).strip().casefold()
    told = ((f"both {address} {name}", BY_BOTH), (f"name {name}", BY_NAME), (f"address {address}", BY_ADDRESS))
    window = int(time.time()) // WINDOW
    return [(f"sign-in:{window}:{hashlib.sha256(text.encode()).hexdigest()}", most) for text, most in told]
