"""The list of syncs, and one sync with its history."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.db.models import F, OuterRef, Q, QuerySet, Subquery, Sum, TextField
from django.db.models.functions import Cast, Coalesce
from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_POST, require_safe

from ondatra_web import actions
from ondatra_web.access import OPERATE, PAYLOADS, chosen_organization, may, sync_for, syncs_of
from ondatra_web.forms import (
    RUN_STATES,
    SORTS,
    STATES,
    TRIGGERS,
    RunFilterForm,
    StartForm,
    SyncFilterForm,
    matches_state,
)
from ondatra_web.models import UNDELIVERED, Chunk, Run, Sync
from ondatra_web.runs import waiting as waiting_rows
from ondatra_web.views import saved_filters, sync_file
from ondatra_web.views.alerts import open_alerts
from ondatra_web.views.recent import listed
from ondatra_web.views.shown import SignedIn, page_of
from ondatra_web.views.trends import trends
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
    chosen = form.chosen
    page = page_of(_matching(request, chosen), form.number, size)
    seen = syncs_of(request.user, chosen_organization(request)).filter(archived_at=None)
    filtered = any(chosen[name] for name in ("q", "state", "tag", "workspace"))
    saved = saved_filters.kept(request, chosen)
    return {
        "saved": saved,
        "can_save": saved_filters.asked(chosen) if filtered and not any(one.here for one in saved) else {},
        "page": page,
        "listed": listed(list(page.object_list)),
        "q": chosen["q"],
        "state": chosen["state"],
        "chosen": chosen,
        "states": STATES,
        "sorts": SORTS,
        "tags": sorted({tag for tags in seen.exclude(tags=[]).values_list("tags", flat=True) for tag in tags}),
        "workspaces": sorted(set(seen.order_by().values_list("workspace__slug", flat=True).distinct())),
        "filtered": filtered,
    }


def _matching(request: SignedIn, chosen: Mapping[str, Any]) -> QuerySet[Any]:
    """The syncs that the address asks for, in its order."""
    q, state = chosen["q"], chosen["state"]
    last = Run.objects.filter(sync=OuterRef("pk"), dry_run=False).exclude(status=Run.Status.SKIPPED).order_by("-id")
    rows = syncs_of(request.user, chosen_organization(request)).annotate(
        last_status=Subquery(last.values("status")[:1])
    )
    rows = rows.filter(**matches_state(state), archived_at__isnull=state != "archived")
    if q:
        rows = rows.filter(Q(name__icontains=q) | Q(destination_type__icontains=q) | Q(destination_object__icontains=q))
    if chosen["tag"]:
        rows = rows.alias(told=Cast("tags", TextField())).filter(told__contains=json.dumps(chosen["tag"]))
    if chosen["workspace"]:
        rows = rows.filter(workspace__slug=chosen["workspace"])
    return _sorted(rows, chosen["sort"], last).select_related("workspace")


def _sorted(rows: QuerySet[Any], sort: str, last: QuerySet[Run]) -> QuerySet[Any]:
    if sort == "last":
        return rows.alias(ran=Subquery(last.values("pk")[:1])).order_by(F("ran").desc(nulls_last=True), "name")
    if sort == "next":
        return rows.order_by(F("next_run_at").asc(nulls_last=True), "name")
    if sort == "due":
        due = Chunk.objects.filter(UNDELIVERED, sync=OuterRef("pk")).order_by().values("sync")
        rows = rows.alias(due=Coalesce(Subquery(due.annotate(n=Sum("due_rows")).values("n")), 0))
        return rows.order_by("-due", "name")
    return rows.order_by("name")


@require_safe
@login_required
def sync(request: SignedIn, sync_id: int) -> HttpResponse:
    found = sync_for(request.user, sync_id)
    form = RunFilterForm(request.GET)
    page = page_of(_runs(found, form.chosen), form.number, HISTORY)
    for run in page.object_list:
        run.sync = found  # so that the rows ask for nothing more
    active = Run.objects.filter(status__in=Run.ACTIVE)  # few of all; its own may be thousands
    working = found.run_set.filter(pk__in=active.values("pk")).order_by("-id").first()
    item = listed([found])[0]
    payloads = may(request.user, PAYLOADS, found.workspace)
    kept = {name: value for name, value in form.chosen.items() if value and name != "page"}
    return render(
        request,
        "syncs/sync.html",
        {
            "sync": found,
            "page": page,
            "chosen": form.chosen,
            "filtered": bool(kept),
            "run_states": RUN_STATES,
            "triggers": TRIGGERS,
            "waiting": waiting_rows.summed(found),
            "working": working,
            "newest": working or item.last,
            "listed": item,
            "files": sync_file.files_of(found, with_function=payloads),
            "trends": trends(found),
            "payloads": payloads,
            "may_write": may(request.user, OPERATE, found.workspace),
            "alerts": open_alerts(request.user, sync=found),
        },
    )


def _runs(found: Sync, chosen: Mapping[str, Any]) -> QuerySet[Run]:
    """The runs of a sync that the address asks for, newest first."""
    asked = {
        "status": chosen["state"],
        "trigger": chosen["trigger"],
        "created_at__date__gte": chosen["since"],
        "created_at__date__lte": chosen["until"],
    }
    runs = found.run_set.filter(**{name: value for name, value in asked.items() if value})
    return runs.select_related("started_by").defer("metadata").order_by("-id")


#: What a run may do; each is asked about first, and the first two send what is due.
HOW = ("run", "dry_run", "full", "baseline", "limit")


@require_safe
@login_required
def ask(request: SignedIn, sync_id: int) -> HttpResponse:
    """What one of HOW would do, with what is known without a look at the source; its form starts the run.
    What a baseline drops is counted to the record."""
    found = sync_for(request.user, sync_id, OPERATE)
    how = request.GET.get("how", "")
    if how not in HOW:
        return redirect("sync", sync_id)
    counts = waiting_rows.counted(found) if how == "baseline" else waiting_rows.summed(found)
    last = listed([found])[0].last
    told = {
        "sync": found,
        "how": how,
        "counts": counts,
        "total": sum(counts.values()),
        "last": last,
        "working": found.run_set.filter(status__in=Run.ACTIVE).order_by("-id").first(),
    }
    return render(request, "syncs/start.html", told)


@require_POST
@login_required
def start(request: SignedIn, sync_id: int) -> HttpResponse:
    found = sync_for(request.user, sync_id, OPERATE)
    form = StartForm(request.POST)
    if not form.is_valid():
        messages.error(request, "a limit is a whole number of records, 1 or more")
        return redirect("sync", sync_id)
    try:
        run = actions.start_run(found, user=request.user, trigger="page", **form.cleaned_data)
    except OndatraError as error:
        messages.error(request, str(error))
        return redirect("sync", sync_id)
    return redirect("run", run.pk)


@require_POST
@login_required
def pause(request: SignedIn, sync_id: int) -> HttpResponse:
    actions.pause_sync(sync_for(request.user, sync_id, OPERATE), user=request.user)
    messages.success(request, "Paused: its schedule starts no run until it is resumed; a person still can.")
    return _back(request, sync_id)


@require_POST
@login_required
def resume(request: SignedIn, sync_id: int) -> HttpResponse:
    actions.resume_sync(sync_for(request.user, sync_id, OPERATE), user=request.user)
    messages.success(request, "Resumed: its schedule starts runs again.")
    return _back(request, sync_id)


def _back(request: SignedIn, sync_id: int) -> HttpResponse:
    """To the page whose button it was."""
    return redirect("schedules") if request.POST.get("back") == "schedules" else redirect("sync", sync_id)


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
