"""Bearer tokens: made once, shown once, kept as a hash, of one organization and of one person's rights in it."""

from __future__ import annotations

import hashlib
import secrets
from datetime import datetime, timedelta
from typing import Any

from django.contrib.auth.models import User
from django.utils import timezone
from drf_spectacular.extensions import OpenApiAuthenticationExtension
from rest_framework.authentication import BaseAuthentication, get_authorization_header
from rest_framework.exceptions import AuthenticationFailed
from rest_framework.permissions import BasePermission
from rest_framework.request import Request
from rest_framework.throttling import SimpleRateThrottle
from rest_framework.views import APIView

from ondatra_web import audit
from ondatra_web.models import ApiToken, Membership, Organization
from runtime.errors import ConfigError

#: What a token may do; each includes none of the others.
SCOPES = {
    "read": "syncs, runs, counts, models; no payload and no identifier",
    "records": "records with their payloads, histories, exports",
    "operate": "start, cancel, confirm, retry, pause, resume",
    "admin": "what an owner of the organization may do",
}
PREFIX = "ondatra_"
#: How often a token's last use is written down.
USED_EVERY = timedelta(minutes=1)


def make(
    organization: Organization, user: User, name: str, scopes: list[str], *, expires_at: datetime | None = None
) -> tuple[ApiToken, str]:
    """The token's row and its text, which is kept nowhere. Raises ConfigError."""
    if unknown := [s for s in scopes if s not in SCOPES]:
        raise ConfigError(f"there is no scope {unknown[0]!r}; there are: {', '.join(SCOPES)}")
    if not scopes:
        raise ConfigError(f"a token needs at least one scope; there are: {', '.join(SCOPES)}")
    if not Membership.objects.filter(user=user, organization=organization).exists():
        raise ConfigError(f"{user} does not belong to {organization}: a token has its person's rights")

    text = PREFIX + secrets.token_urlsafe(32)
    row = ApiToken.objects.create(
        organization=organization, user=user, name=name, scopes=scopes, expires_at=expires_at, digest=digest(text)
    )
    audit.write(organization.pk, user, "make_token", name, {"token": row.pk, "scopes": scopes})
    return row, text


def digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


class BearerAuthentication(BaseAuthentication):
    """`Authorization: Bearer …`; `request.auth` is the token's row."""

    def authenticate(self, request: Request) -> tuple[User, ApiToken] | None:
        words = get_authorization_header(request).split()
        if not words or words[0].lower() != b"bearer":
            return None
        if len(words) != 2:
            raise AuthenticationFailed("write the header as `Authorization: Bearer TOKEN`")

        token = (
            ApiToken.objects.select_related("user", "organization")
            .filter(digest=digest(words[1].decode("ascii", "replace")))
            .first()
        )
        now = timezone.now()
        if token is None or not token.user.is_active:
            raise AuthenticationFailed("this token is unknown or was revoked; make one with `manage.py token`")
        if token.expires_at is not None and token.expires_at <= now:
            raise AuthenticationFailed(f"this token expired at {token.expires_at:%Y-%m-%d %H:%M} UTC; make another")
        if token.last_used_at is None or now - token.last_used_at > USED_EVERY:
            ApiToken.objects.filter(pk=token.pk).update(last_used_at=now)
        return token.user, token

    def authenticate_header(self, request: Request) -> str:
        return 'Bearer realm="ondatra"'


class BearerScheme(OpenApiAuthenticationExtension):  # type: ignore[no-untyped-call]
    target_class = "ondatra_web.api.tokens.BearerAuthentication"
    name = "bearer"

    def get_security_definition(self, auto_schema: Any) -> dict[str, str]:
        return {"type": "http", "scheme": "bearer", "description": "A token of `manage.py token`."}


class HasScope(BasePermission):
    """The view's `scope` stands among the token's."""

    def has_permission(self, request: Request, view: APIView) -> bool:
        wanted = getattr(view, "scope", "read")
        self.message = f"this token lacks the scope {wanted}: {SCOPES[wanted]}"
        return isinstance(request.auth, ApiToken) and wanted in request.auth.scopes


class TokenThrottle(SimpleRateThrottle):
    """Requests of one token within a minute."""

    scope = "token"
    num_requests: int
    duration: int

    def get_cache_key(self, request: Request, view: APIView) -> str | None:
        return f"api-rate:{request.auth.pk}" if isinstance(request.auth, ApiToken) else None

    def allow_request(self, request: Request, view: APIView) -> bool:
        allowed = bool(super().allow_request(request, view))
        if isinstance(request.auth, ApiToken):
            left = max(0, self.num_requests - len(self.history))
            ends = self.history[-1] + self.duration - self.now if self.history else self.duration
            request._request.rate_limit = (self.num_requests, left, max(1, round(ends)))  # type: ignore[attr-defined]
        return allowed
