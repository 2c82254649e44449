"""What happened to one record over all runs of its sync, on a page of its own."""

from __future__ import annotations

from django.contrib.auth.decorators import login_required
from django.http import HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_safe

from ondatra_web.access import PAYLOADS, sync_for
from ondatra_web.forms import FindForm
from ondatra_web.tracking import reads
from ondatra_web.tracking.history import history_of
from ondatra_web.views.filters import address_of
from ondatra_web.views.shown import SignedIn, record_status
from runtime.errors import OndatraError

MOST = 500


@require_safe
@login_required
def history(request: SignedIn, sync_id: int) -> HttpResponse:
    sync = sync_for(request.user, sync_id, PAYLOADS)
    identifier = FindForm(request.GET).chosen["q"]
    told: dict[str, object] = {"sync": sync, "identifier": identifier, "most": MOST}
    try:
        found = history_of(sync, identifier, limit=MOST) if identifier else []
    except OndatraError as error:
        return render(request, "records/history.html", {**told, "problem": str(error)})

    reads.of_sync(request.user, "read_history", sync, identifier, len(found))
    for entry in found:
        entry["shown"] = record_status(entry)
        entry["query"] = address_of({}, record=entry["place"].partition("/")[2])
    return render(request, "records/history.html", {**told, "rows": found, "more": len(found) == MOST})
