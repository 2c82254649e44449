"""Requests that show a bearer token: who asks, whether the token's scope allows it, how often."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from django.conf import settings
from django.contrib.auth.models import User
from django.utils import timezone
from drf_spectacular.extensions import OpenApiAuthenticationExtension
from rest_framework.authentication import BaseAuthentication, get_authorization_header
from rest_framework.exceptions import AuthenticationFailed
from rest_framework.permissions import BasePermission
from rest_framework.request import Request
from rest_framework.throttling import SimpleRateThrottle
from rest_framework.views import APIView

from ondatra_web.models import ApiToken
from ondatra_web.tokens import SCOPES, digest

#: How often a token's last use is written down.
USED_EVERY = timedelta(minutes=1)


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
            raise AuthenticationFailed(
                f"this token is unknown or was revoked; `{settings.ONDATRA.command('token NAME')}` makes one, and so "
                f"does the page API tokens of the settings"
            )
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
        return {
            "type": "http",
            "scheme": "bearer",
            "description": "A token of the page API tokens, or of the command token.",
        }


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
