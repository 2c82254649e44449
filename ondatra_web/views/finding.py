"""Find: the page of a search in every sync."""

from __future__ import annotations

from typing import Any

from django.contrib.auth.decorators import login_required
from django.http import HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_safe

from ondatra_web.access import chosen_organization
from ondatra_web.forms import FindForm
from ondatra_web.tracking import finding
from ondatra_web.views.filters import address_of
from ondatra_web.views.shown import SignedIn, record_status


@require_safe
@login_required
def find(request: SignedIn) -> HttpResponse:
    chosen = FindForm(request.GET).chosen
    q, begins = chosen["q"], chosen["how"] == "beginning"
    context: dict[str, Any] = {"q": q, "begins": begins, "find_q": q}
    if not q:
        return render(request, "records/find.html", context)

    here = chosen_organization(request)
    upto = chosen["upto"] or finding.newest_run()
    search = finding.search(request.user, here, q, begins=begins, upto=upto, after=chosen["after"] or 0)
    search.rows = list(map(_told, search.rows))
    found = (chosen["found"] or 0) + len(search.rows)
    kept = {"q": q, "how": chosen["how"]}
    context |= {
        "search": search,
        "found": found,
        "on": address_of(kept, upto=upto, after=search.after, found=found),
        "beginning": address_of({"q": q, "how": "beginning"}),
    }
    return render(request, "records/find.html", context)


def _told(record: dict[str, Any]) -> dict[str, Any]:
    """The record as the page shows it."""
    return {**record, "shown": record_status(record), "query": address_of({"q": record["identifier"]})}
