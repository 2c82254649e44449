"""One identifier, looked for in every sync that a person may see."""

from __future__ import annotations

from typing import Any
from urllib.parse import urlencode

from django.contrib.auth.decorators import login_required
from django.db.models import Exists, OuterRef, Q
from django.http import HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_safe

from ondatra_web.access import Person, runs_of, syncs_of
from ondatra_web.models import RecordFile
from ondatra_web.tracking.records import history_of
from ondatra_web.views.shown import SignedIn, record_status
from runtime.errors import OndatraError

MOST_SYNCS = 100


@require_safe
@login_required
def find(request: SignedIn) -> HttpResponse:
    """One thing, looked for in the kept records of every sync."""
    q = request.GET.get("q", "")[:2_000]
    problems: list[str] = []
    rows = found_records(request.user, q, problems) if q else []
    return render(request, "records/find.html", {"q": q, "rows": rows, "problems": problems})


def found_records(user: Person, identifier: str, problems: list[str]) -> list[dict[str, Any]]:
    """The newest record of the thing in each sync. Only syncs with a file whose range of identifiers may hold it are
    opened."""
    kept = RecordFile.objects.filter(run__sync=OuterRef("pk"), run__rows_expired_at=None)
    may_hold = Q(min_identifier=None) | Q(min_identifier__lte=identifier, max_identifier__gte=identifier)
    hashed = Q(min_identifier__regex="^[0-9a-f]{64}$")  # a masked key: its range says nothing of the plain one
    newest: list[dict[str, Any]] = []
    for sync in (
        syncs_of(user)
        .filter(Exists(kept.filter(may_hold | hashed)))
        .select_related("workspace")
        .order_by("name")[:MOST_SYNCS]
    ):
        try:
            newest += [{**entry, "sync": sync} for entry in history_of(sync, identifier, limit=1)]
        except OndatraError as error:
            problems.append(f"{sync.name}: {error}")
    runs = runs_of(user).in_bulk([int(entry["sync_run_id"]) for entry in newest])
    query = "?" + urlencode({"q": identifier})
    return [
        {**entry, "run": runs[int(entry["sync_run_id"])], "shown": record_status(entry), "query": query}
        for entry in newest
        if int(entry["sync_run_id"]) in runs
    ]
