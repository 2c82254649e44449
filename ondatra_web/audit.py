"""Who did what, for an organization's admins: every write of a person leaves a line, in the transaction of what was
done, and so does every read of payloads."""

from __future__ import annotations

import os
import pwd
from typing import Any, cast

from django.contrib.auth.base_user import AbstractBaseUser
from django.contrib.auth.models import User

from ondatra_web.models import AuditLog, Sync


def write(
    organization_id: int,
    user: AbstractBaseUser | None,
    action: str,
    target: str,
    detail: dict[str, Any],
    *,
    sync: Sync | None = None,
) -> None:
    """Without a user it was a command. `detail` holds no secret and no plain form of a masked value."""
    AuditLog.objects.create(
        organization_id=organization_id,
        user=person(user),
        who=(user.get_username() if user else at_the_command_line())[:200],
        sync=sync,
        action=action,
        target=target[:200],
        detail=detail,
    )


def person(user: AbstractBaseUser | None) -> User | None:
    """The user table's own class, which is what a logged-in request carries."""
    return cast("User | None", user)


def at_the_command_line() -> str:
    """The system's user; environment variables that claim another are not asked."""
    try:
        name = pwd.getpwuid(os.getuid()).pw_name
    except KeyError:  # a container may run under a number alone
        name = f"user {os.getuid()}"
    return f"{name} (command line)"
