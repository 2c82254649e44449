"""What ends at once: sessions of a person, a token."""

from __future__ import annotations

from typing import Any

from django.contrib.auth import SESSION_KEY
from django.contrib.auth.models import User
from django.contrib.sessions.models import Session
from django.db import transaction
from django.utils import timezone

from ondatra_web import audit
from ondatra_web.models import ApiToken, Membership


def revoke(token: ApiToken, *, user: Any) -> str:
    with transaction.atomic():
        audit.write(token.organization_id, user, "revoke_token", token.name, {"token": token.pk})
        token.delete()
    return f"{token.name} is revoked."


def end_sessions(person: User, *, user: Any) -> int:
    """Reads every session that has not expired: the table does not say whose one is."""
    living = Session.objects.filter(expire_date__gt=timezone.now()).iterator()
    theirs = [one.pk for one in living if one.get_decoded().get(SESSION_KEY) == str(person.pk)]
    with transaction.atomic():
        Session.objects.filter(pk__in=theirs).delete()
        for membership in Membership.objects.filter(user=person):
            audit.write(membership.organization_id, user, "end_sessions", str(person), {"sessions": len(theirs)})
    return len(theirs)
