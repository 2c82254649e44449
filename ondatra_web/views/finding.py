"""Find: the page of a search in every sync."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from django.contrib.auth.decorators import login_required
from django.http import HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_safe

from ondatra_web.access import Person, chosen_organization, runs_of
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
    upto = chosen["upto"] or finding.newest_run(request.user, here)
    search = finding.search(request.user, here, q, begins=begins, upto=upto, after=chosen["after"] or 0)
    search.rows = list(_told(request.user, search.rows))
    found = (chosen["found"] or 0) + len(search.rows)
    kept = {"q": q, "how": chosen["how"]}
    context |= {
        "search": search,
        "found": found,
        "on": address_of(kept, upto=upto, after=search.after, found=found),
        "beginning": address_of({"q": q, "how": "beginning"}),
    }
    return render(request, "records/find.html", context)


def _told(user: Person, found: list[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """The records with their runs, as the page shows them."""
    runs = runs_of(user).in_bulk({int(record["sync_run_id"]) for record in found})
    for record in found:
        run = runs.get(int(record["sync_run_id"]))
        if run is not None:
            query = address_of({"q": record["identifier"]})
            yield {**record, "run": run, "shown": record_status(record), "query": query}
