"""Alerts: what is open, what was, and what became of one."""

from __future__ import annotations

from typing import Any

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.db.models import Q, QuerySet
from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.utils.http import url_has_allowed_host_and_scheme
from django.views.decorators.http import require_POST, require_safe

from ondatra_web.access import OPERATE, Person, alert_for, alerts_of, chosen_organization, may
from ondatra_web.alerts import states, words
from ondatra_web.alerts.kinds import SORTS
from ondatra_web.forms import ALERT_STATES, AlertFilterForm
from ondatra_web.models import Alert, AlertDelivery, AlertKind, AlertLevel, Organization
from ondatra_web.views.shown import SignedIn, page_of
from runtime.errors import OndatraError

SIZE = 50
#: Open alerts that other pages show.
FEW = 5
STATES = {
    "open": Q(resolved_at=None, acknowledged_at=None),
    "acknowledged": Q(resolved_at=None, acknowledged_at__isnull=False),
    "resolved": Q(resolved_at__isnull=False),
    "all": Q(),
}


@require_safe
@login_required
def index(request: SignedIn) -> HttpResponse:
    form = AlertFilterForm(request.GET)
    chosen = {**form.chosen, "state": form.chosen["state"] or "open"}
    rows = alerts_of(request.user, chosen_organization(request)).filter(STATES[chosen["state"]])
    for name in ("kind", "level"):
        rows = rows.filter(**{name: chosen[name]}) if chosen[name] else rows
    if chosen["q"]:
        rows = rows.filter(Q(sync__name__icontains=chosen["q"]) | Q(summary__icontains=chosen["q"]))
    order = "-resolved_at" if chosen["state"] == "resolved" else "-opened_at"
    page = page_of(rows.select_related("sync__workspace", "acknowledged_by").order_by(order, "-pk"), form.number, SIZE)
    context: dict[str, Any] = {
        "page": page,
        "chosen": chosen,
        "states": ALERT_STATES,
        "kinds": [(kind, sort.label) for kind, sort in SORTS.items()],
        "levels": AlertLevel.choices,
        "filtered": bool(chosen["q"] or chosen["kind"] or chosen["level"]),
    }
    return render(request, "alerts/index.html", context)


@require_safe
@login_required
def alert(request: SignedIn, alert_id: int) -> HttpResponse:
    found = alert_for(request.user, alert_id)
    sent = AlertDelivery.objects.filter(event__alert=found).select_related("channel").order_by("pk")
    by_event: dict[int, list[AlertDelivery]] = {}
    for one in sent:
        by_event.setdefault(one.event_id or 0, []).append(one)
    events = [
        (event, by_event.get(event.pk, [])) for event in found.alertevent_set.select_related("user").order_by("pk")
    ]
    context: dict[str, Any] = {
        "alert": found,
        "events": events,
        "sort": SORTS[AlertKind(found.kind)],
        "threshold": words.threshold(found.kind, found.details),
        "may_write": may(request.user, OPERATE, found.sync.workspace),
    }
    return render(request, "alerts/alert.html", context)


@require_POST
@login_required
def acknowledge(request: SignedIn, alert_id: int) -> HttpResponse:
    found = alert_for(request.user, alert_id, OPERATE)
    try:
        states.acknowledge(found, user=request.user)
    except OndatraError as error:
        messages.error(request, str(error))
    else:
        messages.success(request, f"Seen: {found.sync.name}, {found.summary}. It stays open until that is over.")
    back = request.POST.get("next", "")
    fine = url_has_allowed_host_and_scheme(back, allowed_hosts=None) and back.startswith("/")
    return redirect(back if fine else f"/alerts/{found.pk}/")


def open_alerts(user: Person, organization: Organization | None = None, **where: Any) -> QuerySet[Alert]:
    """Those that are not over, the worst first."""
    found = alerts_of(user, organization).filter(resolved_at=None, **where).select_related("sync", "acknowledged_by")
    return found.order_by("level", "-opened_at")  # critical comes before warning
