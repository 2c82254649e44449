"""What needs a person first, then every sync."""

from __future__ import annotations

from django.contrib.auth.decorators import login_required
from django.http import HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_safe

from ondatra_web.access import chosen_organization
from ondatra_web.environment import machine
from ondatra_web.views.alerts import FEW, open_alerts
from ondatra_web.views.needs import needs
from ondatra_web.views.shown import SignedIn
from ondatra_web.views.syncs import SIZE, list_context

MOST = 20


@require_safe
@login_required
def home(request: SignedIn) -> HttpResponse:
    here = chosen_organization(request)
    found, total = needs(request.user, here, MOST)
    request._needs = total  # type: ignore[attr-defined]  # the rail beside the page tells it, too
    alerts = open_alerts(request.user, here)
    told = {"needs": found, "needs_total": total, "alerts": alerts[:FEW], "alerts_total": alerts.count()}
    waits = machine.waits()
    return render(request, "home/home.html", {**told, "waits": waits, **list_context(request, size=SIZE)})
