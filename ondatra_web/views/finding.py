"""Find: one identifier, or the beginning of one, looked for in every sync whose records a person may read.

Syncs are searched one after the other, those that ran last first, each by the index of its history. A request searches
as many as fit into its time; the page says how many that were, and its link goes on behind them.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from django.contrib.auth.decorators import login_required
from django.contrib.auth.models import User
from django.db.models import Max, OuterRef, QuerySet, Subquery
from django.http import HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_safe

from ondatra_web.access import PAYLOADS, Person, chosen_organization, runs_of, syncs_of
from ondatra_web.forms import FindForm
from ondatra_web.models import Organization, Run, Sync
from ondatra_web.tracking import reads
from ondatra_web.tracking.records import history_of
from ondatra_web.views.filters import address_of
from ondatra_web.views.shown import SignedIn, record_status
from runtime.errors import OndatraError

#: A request that searched this long ends with the sync at hand.
SECONDS = 2.0
#: Things of one sync, where a beginning is looked for.
MOST_OF_A_SYNC = 10
#: A request that found this many ends with the sync at hand.
MOST_ROWS = 100
#: Records of one sync that are looked at to find its newest things.
_LOOKED_AT = 200


@dataclass
class Search:
    """What one request looked at, and what it found."""

    total: int  # syncs that have run
    searched: int  # of them, with those of the requests before
    rows: list[dict[str, Any]] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)
    more_in: list[Sync] = field(default_factory=list)  # syncs with more things than are shown
    after: int = 0  # behind which sync it goes on

    @property
    def ended(self) -> bool:
        return self.searched >= self.total


@require_safe
@login_required
def find(request: SignedIn) -> HttpResponse:
    chosen = FindForm(request.GET).chosen
    q, begins = chosen["q"], chosen["how"] == "beginning"
    context: dict[str, Any] = {"q": q, "begins": begins, "find_q": q}
    if not q:
        return render(request, "records/find.html", context)

    here = chosen_organization(request)
    upto = chosen["upto"] or runs_of(request.user, here).aggregate(newest=Max("pk"))["newest"] or 0
    search = _search(request.user, here, q, begins=begins, upto=upto, after=chosen["after"] or upto + 1)
    found = (chosen["found"] or 0) + len(search.rows)
    kept = {"q": q, "how": chosen["how"]}
    context |= {
        "search": search,
        "found": found,
        "on": address_of(kept, upto=upto, after=search.after, found=found),
        "beginning": address_of({"q": q, "how": "beginning"}),
    }
    return render(request, "records/find.html", context)


def _search(user: User, here: Organization | None, q: str, *, begins: bool, upto: int, after: int) -> Search:
    syncs = _syncs(user, here, upto)
    total = syncs.count()
    search = Search(total, total - syncs.filter(newest__lt=after).count())
    until = time.monotonic() + SECONDS

    for sync in syncs.filter(newest__lt=after).iterator(chunk_size=100):
        try:
            things = list(_newest_things(sync, q, begins, search))
            if things:  # a search that finds nothing reads nothing
                reads.of_sync(user, "find_records", sync, q, len(things), **({"begins": True} if begins else {}))
            search.rows += things
        except OndatraError as error:
            search.problems.append(f"{sync.name}: {error}")
        search.searched += 1
        search.after = sync.newest
        if time.monotonic() > until or len(search.rows) >= MOST_ROWS:
            break

    search.rows = sorted(_told(user, q, search.rows), key=lambda row: str(row["batch_ended_at"]), reverse=True)
    return search


def _syncs(user: Person, here: Organization | None, upto: int) -> QuerySet[Any]:
    """Those that have run, the last first; `newest` is that run, as things stood when the search began."""
    kept = Run.objects.filter(sync=OuterRef("pk"), rows_expired_at=None, pk__lte=upto).order_by("-pk").values("pk")[:1]
    found = syncs_of(user, here, PAYLOADS).annotate(newest=Subquery(kept)).filter(newest__isnull=False)
    return found.select_related("workspace").order_by("-newest")


def _newest_things(sync: Sync, q: str, begins: bool, search: Search) -> Iterator[dict[str, Any]]:
    """The newest record of each thing that matches."""
    newest: dict[str, dict[str, Any]] = {}
    for record in history_of(sync, q, begins=begins, limit=_LOOKED_AT if begins else 1):
        newest.setdefault(record["identifier"], record)
    if len(newest) > MOST_OF_A_SYNC:
        search.more_in.append(sync)

    for record in list(newest.values())[:MOST_OF_A_SYNC]:
        yield {**record, "sync": sync}


def _told(user: Person, q: str, found: list[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """The records with their runs, as the page shows them."""
    runs = runs_of(user).in_bulk({int(record["sync_run_id"]) for record in found})
    for record in found:
        run = runs.get(int(record["sync_run_id"]))
        if run is not None:
            query = address_of({"q": record["identifier"]})
            yield {**record, "run": run, "shown": record_status(record), "query": query}
