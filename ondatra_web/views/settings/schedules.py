"""What starts by the clock: every sync with a schedule, the next one first."""

from __future__ import annotations

from typing import Any

from django.contrib.auth.decorators import login_required
from django.db.models import F, OuterRef, QuerySet, Subquery
from django.http import HttpResponse
from django.shortcuts import render
from django.utils import timezone
from django.views.decorators.http import require_safe

from ondatra_web.access import OPERATE, own_organization, syncs_of, workspaces_of
from ondatra_web.forms import SCHEDULES, ScheduleFilterForm
from ondatra_web.models import Run, Sync, Worker
from ondatra_web.views.needs import LATE
from ondatra_web.views.shown import SignedIn, page_of
from ondatra_web.workers import LOST_AFTER

SIZE = 50


@require_safe
@login_required
def schedules(request: SignedIn) -> HttpResponse:
    organization = own_organization(request)
    form = ScheduleFilterForm(request.GET)
    known = syncs_of(request.user, organization).filter(archived_at=None)
    page = page_of(_asked(known.exclude(schedule=""), form.chosen), form.number, SIZE)
    context = {
        "organization": organization,
        "page": page,
        "listed": _listed(list(page.object_list)),
        "chosen": form.chosen,
        "filtered": bool(form.chosen["q"] or form.chosen["state"]),
        "states": SCHEDULES,
        "by_hand": known.filter(schedule="").count(),
        "unwatched": not Worker.objects.filter(
            kind="scheduler", ended_at=None, heartbeat_at__gt=timezone.now() - 2 * LOST_AFTER
        ).exists(),
        "operated": set(workspaces_of(request.user, organization, OPERATE).values_list("pk", flat=True)),
    }
    return render(request, "settings/schedules.html", context)


def _asked(syncs: QuerySet[Sync], chosen: dict[str, Any]) -> QuerySet[Sync]:
    if chosen["q"]:
        syncs = syncs.filter(name__icontains=chosen["q"])
    if chosen["state"]:
        syncs = syncs.filter(paused_at__isnull=chosen["state"] == "followed")
    last = Run.objects.filter(sync=OuterRef("pk"), trigger="schedule").order_by("-id").values("pk")[:1]
    following = F("paused_at").asc(nulls_first=True), F("next_run_at").asc(nulls_last=True), "pk"
    return syncs.annotate(last_id=Subquery(last)).select_related("workspace").order_by(*following)


def _listed(syncs: list[Any]) -> list[dict[str, Any]]:
    """Each with the last run that its schedule started, and whether its time has passed without one."""
    runs = Run.objects.defer("metadata").in_bulk([sync.last_id for sync in syncs if sync.last_id])
    late = timezone.now() - LATE
    return [
        {
            "sync": sync,
            "last": runs.get(sync.last_id),
            "late": bool(sync.next_run_at and sync.next_run_at < late and not sync.paused_at),
        }
        for sync in syncs
    ]
