"""What needs a person first, then every sync."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from django.contrib.auth.decorators import login_required
from django.http import HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_safe

from ondatra_web.access import syncs_of
from ondatra_web.models import MessageGroup, Run
from ondatra_web.runs import waiting
from ondatra_web.views.shown import SignedIn, failing_since, needing
from ondatra_web.views.syncs import SIZE, list_context

MOST = 20


@dataclass(frozen=True)
class Need:
    """One thing that waits for a person."""

    run: Run
    tone: str
    label: str
    reason: str
    since: datetime | None = None


@require_safe
@login_required
def home(request: SignedIn) -> HttpResponse:
    runs = needing(request.user)
    total = runs.count()
    needs = _needs(list(runs[:MOST]))
    refused = sum(waiting.refused(syncs_of(request.user).filter(archived_at=None)).values())
    told = {"needs": needs, "needs_total": total, "refused": refused}
    return render(request, "home/home.html", {**told, **list_context(request, size=SIZE)})


def _needs(runs: list[Run]) -> list[Need]:
    since = failing_since(runs)
    newest: dict[int, MessageGroup] = {}
    for group in MessageGroup.objects.filter(run__in=runs).exclude(status="succeeded").order_by("rows"):
        if group.first_run_id == group.run_id or group.run_id not in newest:
            newest[group.run_id] = group
    return [_need(run, newest.get(run.pk), since.get(run.sync_id)) for run in runs]


def _need(run: Run, group: MessageGroup | None, since: datetime | None) -> Need:
    if run.status == Run.Status.HELD:
        return Need(run, "warn", "Held", run.error or "Nothing was sent.")
    said = f"{group.rows - group.beside:,} rows: {group.pattern}" if group else ""
    if run.status == Run.Status.FAILED:
        return Need(run, "bad", "Failing", run.error or said or "No reason was recorded.", since)
    return Need(run, "warn", "New reason", said)
