"""One run: where every row went, why some did not arrive, and what it is doing now."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_POST, require_safe

from ondatra_web import actions
from ondatra_web.access import OPERATE, PAYLOADS, may, run_for
from ondatra_web.environment import machine
from ondatra_web.forms import LEVELS, LogForm
from ondatra_web.models import Run
from ondatra_web.tracking.records import first_requests, kept_until, planned_files, visible
from ondatra_web.views.shown import SignedIn, run_took
from ondatra_web.views.steps import steps
from ondatra_web.views.sums import planned_of, sums
from ondatra_web.views.traces import MOST_LINES, lines, traces
from runtime.errors import OndatraError

MOST_REASONS = 50


@require_safe
@login_required
def run(request: SignedIn, run_id: int) -> HttpResponse:
    found = run_for(request.user, run_id)
    return render(request, "runs/run.html", context(request, found))


@require_safe
@login_required
def live(request: SignedIn, run_id: int) -> HttpResponse:
    """The part of the page that changes while the run works; it stops asking once the run has ended."""
    return render(request, "runs/live.html", context(request, run_for(request.user, run_id)))


def context(request: SignedIn, found: Run) -> dict[str, Any]:
    groups = list(found.messagegroup_set.select_related("first_run").order_by("-rows", "pattern")[: MOST_REASONS + 1])
    most = max((g.rows for g in groups), default=1) or 1
    active = found.status in Run.ACTIVE
    payloads = may(request.user, PAYLOADS, found.sync.workspace)
    log = LogForm(request.GET).chosen
    return {
        "run": found,
        "sync": found.sync,
        "active": active,
        "waits": machine.waits() if active and not found.staged else "",
        "steps": steps(found),
        "sums": sums(found),
        "planned_of": planned_of(found),
        "stays_due": found.not_tried and not active and not found.dry_run,
        "took": run_took(found),
        "reasons": [(g, max(2, round(84 * g.rows / most)), g.first_run_id == found.pk) for g in groups[:MOST_REASONS]],
        "more_reasons": len(groups) > MOST_REASONS,
        "undelivered": found.rejected + found.retrying,
        "lines": lines(found, log, prints=payloads),
        "log": log,
        "most_lines": MOST_LINES,
        "levels": LEVELS,
        "log_asked": bool(log["level"] or log["find"]),
        "traces": traces(found),
        "records": visible(found),
        "payloads": payloads,
        "kept_until": kept_until(found),
        "would_go": sum(f.rows for f in planned_files(found.pk)) if payloads and found.status == "held" else 0,
        "may_write": may(request.user, OPERATE, found.sync.workspace),
        "first": _first(found) if payloads else {},
    }


def _first(found: Run) -> dict[str, Any]:
    """What a dry run would have asked for first, with headers as text."""
    told = first_requests(found)
    for call in told.get("requests", ()):
        call["headers"] = "\n".join(f"{name}: {value}" for name, value in call["headers"].items())
    return told


@require_POST
@login_required
def cancel(request: SignedIn, run_id: int) -> HttpResponse:
    found = run_for(request.user, run_id, OPERATE)
    return _acted(request, found, lambda: actions.cancel_run(found, user=request.user))


@require_POST
@login_required
def confirm(request: SignedIn, run_id: int) -> HttpResponse:
    found = run_for(request.user, run_id, OPERATE)
    return _acted(request, found, lambda: actions.confirm_run(found, user=request.user))


def _acted(request: SignedIn, found: Run, act: Callable[[], Run]) -> HttpResponse:
    try:
        changed = act()
    except OndatraError as error:
        messages.error(request, str(error))
        changed = found
    return redirect("run", changed.pk)
