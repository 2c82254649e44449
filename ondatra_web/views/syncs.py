"""The list of syncs, and one sync with its history."""

from __future__ import annotations

from typing import Any

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.db.models import OuterRef, Q, QuerySet, Subquery, Sum
from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_POST, require_safe

from ondatra_web import actions
from ondatra_web.access import OPERATE, PAYLOADS, chosen_organization, may, sync_for, syncs_of
from ondatra_web.forms import STATES, StartForm, SyncFilterForm, matches_state
from ondatra_web.models import Run
from ondatra_web.runs import waiting as waiting_rows
from ondatra_web.views.alerts import open_alerts
from ondatra_web.views.recent import listed
from ondatra_web.views.shown import SignedIn, page_of
from runtime.errors import OndatraError

SIZE = 50
HISTORY = 25


@require_safe
@login_required
def index(request: SignedIn) -> HttpResponse:
    return render(request, "syncs/index.html", list_context(request, size=SIZE))


def list_context(request: SignedIn, *, size: int) -> dict[str, Any]:
    """The syncs of one page that the address asks for."""
    form = SyncFilterForm(request.GET)
    q, state = form.chosen["q"], form.chosen["state"]
    page = page_of(_matching(request, q, state), form.number, size)
    return {
        "page": page,
        "listed": listed(list(page.object_list)),
        "q": q,
        "state": state,
        "states": STATES,
        "filtered": bool(q or state),
    }


def _matching(request: SignedIn, q: str, state: str) -> QuerySet[Any]:
    last = Run.objects.filter(sync=OuterRef("pk"), dry_run=False).exclude(status=Run.Status.SKIPPED).order_by("-id")
    rows = syncs_of(request.user, chosen_organization(request)).annotate(
        last_status=Subquery(last.values("status")[:1])
    )
    rows = rows.filter(**matches_state(state), archived_at__isnull=state != "archived")
    if q:
        rows = rows.filter(Q(name__icontains=q) | Q(destination_type__icontains=q) | Q(destination_object__icontains=q))
    return rows.select_related("workspace").order_by("name")


@require_safe
@login_required
def sync(request: SignedIn, sync_id: int) -> HttpResponse:
    found = sync_for(request.user, sync_id)
    runs = found.run_set.select_related("started_by").defer("metadata").order_by("-id")
    page = page_of(runs, SyncFilterForm(request.GET).number, HISTORY)
    for run in page.object_list:
        run.sync = found  # so that the rows ask for nothing more
    waiting = waiting_rows.of_syncs([found]).aggregate(
        due=Sum("due_rows"), rejected=Sum("rejected_rows"), blocked=Sum("blocked_rows")
    )
    working = found.run_set.filter(status__in=Run.ACTIVE).order_by("-id").first()
    return render(
        request,
        "syncs/sync.html",
        {
            "sync": found,
            "page": page,
            "waiting": {name: n or 0 for name, n in waiting.items()},
            "working": working,
            "listed": listed([found])[0],
            "payloads": may(request.user, PAYLOADS, found.workspace),
            "may_write": may(request.user, OPERATE, found.workspace),
            "alerts": open_alerts(request.user, sync=found),
        },
    )


@require_POST
@login_required
def start(request: SignedIn, sync_id: int) -> HttpResponse:
    found = sync_for(request.user, sync_id, OPERATE)
    form = StartForm(request.POST)
    form.is_valid()
    try:
        run = actions.start_run(
            found,
            user=request.user,
            trigger="page",
            full=form.cleaned_data["full"],
            dry_run=form.cleaned_data["dry_run"],
        )
    except OndatraError as error:
        messages.error(request, str(error))
        return redirect("sync", sync_id)
    return redirect("run", run.pk)


@login_required
def discard(request: SignedIn, sync_id: int) -> HttpResponse:
    """What waits is counted and shown first; only the form on that page drops it."""
    found = sync_for(request.user, sync_id, OPERATE)
    if request.method != "POST":
        counts = waiting_rows.counted(found)
        return render(request, "syncs/discard.html", {"sync": found, "counts": counts, "total": sum(counts.values())})
    try:
        dropped = sum(actions.discard(found, user=request.user).values())
    except OndatraError as error:
        messages.error(request, str(error))
    else:
        messages.success(
            request, f"{dropped:,} records were dropped. A row that changes from here on is sent as usual."
        )
    return redirect("sync", sync_id)
