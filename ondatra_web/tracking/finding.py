"""One identifier, or the beginning of one, looked for in every sync whose records a person may read.

Syncs are searched one after the other, those that ran last first, each by the index of its history. A request searches
as many as fit into its time, and says how many that were; the next one goes on behind them.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from django.contrib.auth.models import User
from django.db.models import Max, OuterRef, QuerySet, Subquery

from ondatra_web.access import PAYLOADS, Person, runs_of, syncs_of
from ondatra_web.models import Organization, Run, Sync
from ondatra_web.tracking import reads
from ondatra_web.tracking.records import history_of
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


def newest_run(user: Person, here: Organization | None) -> int:
    """As things stand when a search begins: what runs later is not in it. 0 where nothing ran."""
    return int(runs_of(user, here).aggregate(newest=Max("pk"))["newest"] or 0)


def search(
    user: User, here: Organization | None, q: str, *, begins: bool, upto: int, after: int = 0, **told: Any
) -> Search:
    """What is found behind the sync whose newest run is `after` (0 is the beginning), newest first; `told` goes into
    the audit log."""
    after = after or upto + 1
    syncs = _syncs(user, here, upto)
    total = syncs.count()
    found = Search(total, total - syncs.filter(newest__lt=after).count())
    until = time.monotonic() + SECONDS

    for sync in syncs.filter(newest__lt=after).iterator(chunk_size=100):
        try:
            things = list(_newest_things(sync, q, begins, found))
            if things:  # a search that finds nothing reads nothing
                reads.of_sync(
                    user, "find_records", sync, q, len(things), **({"begins": True} if begins else {}), **told
                )
            found.rows += things
        except OndatraError as error:
            found.problems.append(f"{sync.name}: {error}")
        found.searched += 1
        found.after = sync.newest
        if time.monotonic() > until or len(found.rows) >= MOST_ROWS:
            break

    found.rows.sort(key=lambda row: str(row["batch_ended_at"]), reverse=True)
    return found


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
