"""Sending records again: what would be sent, and the button that does it."""

from __future__ import annotations

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.http import HttpResponse
from django.shortcuts import redirect, render

from ondatra_web import actions
from ondatra_web.access import OPERATE, run_for
from ondatra_web.forms import RecordFilterForm
from ondatra_web.runs import retries
from ondatra_web.tracking import asked, records
from ondatra_web.views.filters import chosen_of
from ondatra_web.views.shown import SignedIn
from runtime.errors import OndatraError


@login_required
def retry(request: SignedIn, run_id: int) -> HttpResponse:
    """GET previews what the address chooses: identifiers (`i`, repeated), else the filter of the window of records.
    POST sends it."""
    run = run_for(request.user, run_id, OPERATE)
    address = {name: value for name, value in RecordFilterForm(request.GET).chosen.items() if value}
    ticked = {"identifiers": request.GET.getlist("i")}
    try:
        chosen = asked.asked(run, ticked if ticked["identifiers"] else chosen_of(run, address))
        if request.method == "POST":
            return redirect("run", actions.retry_run(run, records.without_plain(chosen, run), user=request.user).pk)
        planned = retries.plan(run, chosen)
    except OndatraError as error:
        messages.error(request, str(error))
        return redirect("run", run.pk)
    return render(
        request,
        "runs/retry.html",
        {"run": run, "sync": run.sync, "planned": planned, "lines": retries.told(planned, run)},
    )
