"""Bearer tokens of the HTTP API: made once, shown once, kept as a hash, of one organization and of one person's rights
in it. The one home for making and revoking them."""

from __future__ import annotations

import hashlib
import secrets
from datetime import datetime

from django.contrib.auth.base_user import AbstractBaseUser
from django.contrib.auth.models import User
from django.db import transaction
from django.utils import timezone

from ondatra_web import audit
from ondatra_web.models import ApiToken, Membership, Organization
from runtime.errors import ConfigError

#: What a token may do; each includes none of the others.
SCOPES = {
    "read": "syncs, runs, counts, models; no payload and no identifier",
    "records": "records with their payloads, histories, exports",
    "operate": "start, cancel, confirm, retry, pause, resume",
    "admin": "what an admin of the organization may do",
}
PREFIX = "ondatra_"
LONGEST_NAME = 100


def make(
    organization: Organization, user: User, name: str, scopes: list[str], *, expires_at: datetime | None = None
) -> tuple[ApiToken, str]:
    """The token's row and its text, which is kept nowhere. Raises ConfigError."""
    if not 0 < len(name) <= LONGEST_NAME:
        raise ConfigError(f"the name of a token has 1 to {LONGEST_NAME} characters; found {len(name)}")
    if unknown := [s for s in scopes if s not in SCOPES]:
        raise ConfigError(f"there is no scope {unknown[0]!r}; there are: {', '.join(SCOPES)}")
    if not scopes:
        raise ConfigError(f"a token needs at least one scope; there are: {', '.join(SCOPES)}")
    if not Membership.objects.filter(user=user, organization=organization).exists():
        raise ConfigError(f"{user} does not belong to {organization}: a token has its person's rights")

    text = PREFIX + secrets.token_urlsafe(32)
    with transaction.atomic():
        row = ApiToken.objects.create(
            organization=organization, user=user, name=name, scopes=scopes, expires_at=expires_at, digest=digest(text)
        )
        audit.write(organization.pk, user, "make_token", name, {"token": row.pk, "scopes": scopes})
    return row, text


def revoke(token: ApiToken, *, user: AbstractBaseUser | None = None) -> None:
    """It stops working at once, with the links to files that it asked for."""
    with transaction.atomic():
        audit.write(token.organization_id, user, "revoke_token", token.name, {"token": token.pk, "of": str(token.user)})
        token.delete()


def digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def usable(token: ApiToken) -> bool:
    """Whether its person may sign in and its time is not over."""
    return bool(token.user.is_active) and (token.expires_at is None or token.expires_at > timezone.now())
