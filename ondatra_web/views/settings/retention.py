"""What is kept for how long: the records of each sync, and everything else that goes by itself or never."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

from django.contrib.auth.decorators import login_required
from django.db.models import Count, F, Min, Q
from django.http import HttpResponse
from django.shortcuts import render
from django.utils import timezone
from django.views.decorators.http import require_safe

from ondatra_web.access import own_organization, syncs_of
from ondatra_web.alerts import sending
from ondatra_web.forms import NameFilterForm
from ondatra_web.models import Bucket, Organization, Run, Sync
from ondatra_web.people import INVITED_FOR
from ondatra_web.tracking import exporting
from ondatra_web.views.shown import SignedIn, page_of

SIZE = 50


@require_safe
@login_required
def retention(request: SignedIn) -> HttpResponse:
    organization = own_organization(request)
    form = NameFilterForm(request.GET)
    asked = syncs_of(request.user, organization)
    if form.chosen["q"]:
        asked = asked.filter(name__icontains=form.chosen["q"])
    page = page_of(
        asked.select_related("workspace").order_by(F("archived_at").asc(nulls_first=True), "name", "pk"),
        form.number,
        SIZE,
    )
    context = {
        "organization": organization,
        "page": page,
        "listed": _listed(list(page.object_list)),
        "chosen": form.chosen,
        "filtered": bool(form.chosen["q"]),
        "buckets": Bucket.objects.filter(organization=organization).order_by("-in_use", "-saved_at"),
        "stuck": _stuck(organization),
        "exports": exporting.KEPT,
        "messages_kept": sending.KEPT,
        "invitations": INVITED_FOR,
    }
    return render(request, "settings/retention.html", context)


def _listed(syncs: list[Sync]) -> list[dict[str, Any]]:
    """Each with how many of its runs still have records in the install's store and in buckets, the oldest of the former
    and when these go."""
    there = Run.objects.filter(sync__in=syncs, rows_expired_at=None, dry_run=False).exclude(status__in=Run.ACTIVE)
    found = there.filter(Q(planned__gt=0) | Q(invalid__gt=0)).order_by().values("sync")
    ours = Q(bucket=None)
    kept: dict[int, dict[str, Any]] = {
        row["sync"]: dict(row)
        for row in found.annotate(
            here=Count("pk", filter=ours),
            elsewhere=Count("pk", filter=~ours),
            oldest=Min("created_at", filter=ours),
        )
    }
    return [_told(sync, kept.get(sync.pk) or {}) for sync in syncs]


def _told(sync: Sync, kept: dict[str, Any]) -> dict[str, Any]:
    oldest: datetime | None = kept.get("oldest")
    goes = oldest + timedelta(days=sync.retention_days) if oldest else None
    return {
        "sync": sync,
        "here": kept.get("here", 0),
        "elsewhere": kept.get("elsewhere", 0),
        "oldest": oldest,
        "goes": goes,
        "past": bool(goes and goes < timezone.now()),
    }


def _stuck(organization: Organization) -> int:
    """Runs whose files still wait for their store: nothing of them is removed before they are written."""
    return Run.objects.filter(sync__workspace__organization=organization, tracking="pending").count()
