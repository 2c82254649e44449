"""Who did what, for an organization's owners: every write of a person leaves a line, in the transaction of what was
done."""

from __future__ import annotations

from typing import Any, cast

from django.contrib.auth.base_user import AbstractBaseUser
from django.contrib.auth.models import User

from ondatra_web.models import AuditLog


def write(
    organization_id: int, user: AbstractBaseUser | None, action: str, target: str, detail: dict[str, Any]
) -> None:
    """Without a user it was a command or the scheduler. `detail` holds no secret and no plain form of a masked
    value."""
    AuditLog.objects.create(
        organization_id=organization_id, user=person(user), action=action, target=target[:200], detail=detail
    )


def person(user: AbstractBaseUser | None) -> User | None:
    """The user table's own class, which is what a logged-in request carries."""
    return cast("User | None", user)
