"""Whether the install has everything that it needs, each part with what to do; for admins."""

from __future__ import annotations

from django.contrib.auth.decorators import login_required
from django.http import HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_safe

from ondatra_web.access import ADMINISTER, own_organization
from ondatra_web.environment.findings import BAD, OK, WARNING
from ondatra_web.environment.looking import look
from ondatra_web.views.shown import SignedIn

#: The words and colours of what was found.
TONES = {OK: ("ok", "Works"), WARNING: ("warn", "Look at it"), BAD: ("bad", "Does not work")}


@require_safe
@login_required
def environment(request: SignedIn) -> HttpResponse:
    """Addresses, folders and hosts only for who runs the install."""
    organization = own_organization(request, ADMINISTER)
    findings = look(organization.pk)
    context = {
        "organization": organization,
        "findings": [(found, *TONES[found.state]) for found in findings],
        "wrong": sum(found.state != OK for found in findings),
        "tone": "bad" if any(found.state == BAD for found in findings) else "warn",
        "detailed": request.user.is_superuser,
    }
    return render(request, "settings/environment.html", context)
