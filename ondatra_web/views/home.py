"""What needs a person first, then every sync."""

from __future__ import annotations

from django.contrib.auth.decorators import login_required
from django.http import HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_safe

from ondatra_web.access import chosen_organization, syncs_of
from ondatra_web.runs import waiting
from ondatra_web.views.alerts import FEW, open_alerts
from ondatra_web.views.needs import needing, needs_of
from ondatra_web.views.shown import SignedIn
from ondatra_web.views.syncs import SIZE, list_context

MOST = 20


@require_safe
@login_required
def home(request: SignedIn) -> HttpResponse:
    here = chosen_organization(request)
    runs = needing(request.user, here)
    total = runs.count()
    needs = needs_of(list(runs[:MOST]))
    refused = sum(waiting.refused(syncs_of(request.user, here).filter(archived_at=None)).values())
    alerts = open_alerts(request.user, here)
    shown = {"alerts": alerts[:FEW], "alerts_total": alerts.count()}
    told = {**shown, "needs": needs, "needs_total": total, "refused": refused}
    return render(request, "home/home.html", {**told, **list_context(request, size=SIZE)})
