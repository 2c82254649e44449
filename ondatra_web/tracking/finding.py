"""One identifier, or the beginning of one, looked for in every sync whose records a person may read.

The index of the organization's histories is asked once for all syncs. Record files that it does not cover yet are asked
sync by sync, those that ran last first: a request asks as many as fit into its time, and says how far it came; the next
one goes on behind that sync.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from django.contrib.auth.models import User
from django.db.models import Max, OuterRef, Subquery

from ondatra_web.access import PAYLOADS, Person, syncs_of
from ondatra_web.models import Organization, Run, Sync, Workspace
from ondatra_web.tracking import history, reads
from ondatra_web.tracking.records import forms
from runtime.errors import OndatraError
from runtime.records import unindexed
from runtime.records.filter import FileRef, Filter
from runtime.records.newest import Asked

#: A request that asked record files for this long ends with the sync at hand.
SECONDS = 0.05
#: Things of one sync, where a beginning is looked for.
MOST_OF_A_SYNC = 10
#: A request that found this many ends with the sync at hand.
MOST_ROWS = 50
#: Records of one sync that are looked at to find its newest things.
_LOOKED_AT = 200
_CUT = "so many begin so that only the first of the alphabet were looked at: give more of the identifier"

Row = dict[str, Any]


@dataclass
class Search:
    """What one request looked at, and what it found."""

    total: int  # syncs that have run
    searched: int  # of them, with those of the requests before
    rows: list[Row] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)
    more_in: list[Sync] = field(default_factory=list)  # syncs with more things than are shown
    after: int = 0  # behind which sync it goes on

    @property
    def ended(self) -> bool:
        return self.searched >= self.total


class _Ran(NamedTuple):
    """A sync that has run, and its newest run, as things stood when the search began."""

    pk: int
    name: str
    workspace: int
    newest: int


@dataclass(frozen=True)
class _Looked:
    """What is looked for, and where."""

    organization: int
    q: str
    begins: bool
    upto: int
    syncs: Sequence[_Ran]
    workspaces: dict[int, Workspace]

    @property
    def prefix(self) -> str | None:
        return self.q if self.begins else None

    @property
    def called(self) -> list[str]:
        """Plain, and as each workspace masks it."""
        return list(dict.fromkeys(form for place in self.workspaces.values() for form in forms(place, self.q)))


def newest_run() -> int:
    """As things stand when a search begins: what runs later is not in it. 0 where nothing ran."""
    return int(Run.objects.aggregate(newest=Max("pk"))["newest"] or 0)


def search(
    user: User, here: Organization | None, q: str, *, begins: bool, upto: int, after: int = 0, **told: Any
) -> Search:
    """What is found behind the sync whose newest run is `after` (0 is the beginning), newest first; `told` goes into
    the audit log."""
    ran = _syncs(user, here, upto) if here else []
    behind = [one for one in ran if one.newest < (after or upto + 1)]
    found = Search(len(ran), len(ran) - len(behind))
    if here is None or not behind:
        return found

    workspaces = Workspace.objects.in_bulk({one.workspace for one in behind})
    things = _things(_Looked(here.pk, q, begins, upto, behind, workspaces), found)
    syncs = Sync.objects.select_related("workspace").in_bulk(things)
    shown = list(_kept({syncs[pk]: rows for pk, rows in things.items()}))
    found.more_in = [sync for sync, rows in shown if len(rows) > MOST_OF_A_SYNC]
    found.rows = [{**row, "sync": sync} for sync, rows in shown for row in rows[:MOST_OF_A_SYNC]]
    found.rows.sort(key=lambda row: str(row["batch_ended_at"]), reverse=True)

    read = [(sync, min(len(rows), MOST_OF_A_SYNC)) for sync, rows in shown if rows]
    reads.of_syncs(user, "find_records", read, q, **({"begins": True} if begins else {}), **told)
    return found


def _syncs(user: Person, here: Organization, upto: int) -> list[_Ran]:
    """Those that have run, the last first."""
    kept = Run.objects.filter(sync=OuterRef("pk"), rows_expired_at=None, pk__lte=upto).order_by("-pk").values("pk")[:1]
    told = (
        syncs_of(user, here, PAYLOADS)
        .annotate(newest=Subquery(kept))
        .values_list("pk", "name", "workspace_id", "newest")
    )
    return sorted((_Ran(*one) for one in told if one[-1]), key=lambda one: -one.newest)


def _things(looked: _Looked, found: Search) -> dict[int, list[Row]]:
    """The newest records by sync, of as many syncs as one request takes; `found` says how far that was."""
    indexed = _indexed(looked, found)
    syncs = {one.pk for one in looked.syncs}
    files = history.unindexed(
        looked.organization, syncs, looked.called, looked.prefix, looked.upto, problems=found.problems
    )
    things: dict[int, list[Row]] = {}
    rows, until = 0, time.monotonic() + SECONDS
    for sync in looked.syncs:
        if mine := [*indexed.get(sync.pk, ()), *_asked(sync, looked, files.get(sync.pk, ()), found)]:
            things[sync.pk] = _newest(mine)
            rows += min(len(things[sync.pk]), MOST_OF_A_SYNC)

        found.searched += 1
        found.after = sync.newest
        if rows >= MOST_ROWS or sync.pk in files and time.monotonic() > until:
            break
    return things


def _indexed(looked: _Looked, found: Search) -> dict[int, list[Row]]:
    """By sync, of the first syncs that have some."""
    asked = Asked(
        looked.called,
        [one.pk for one in looked.syncs],
        looked.upto,
        most=MOST_OF_A_SYNC + 1,
        limit=2 * (MOST_ROWS + MOST_OF_A_SYNC),
        prefix=looked.prefix,
    )
    try:
        told = history.index_of(looked.organization).things(asked)
    except OndatraError as error:
        found.problems.append(f"the index of histories: {error}")
        return {}

    if told.cut:
        found.problems.append(_CUT)
    by_sync: dict[int, list[Row]] = {}
    for row in told.rows:
        by_sync.setdefault(int(row["sync_configuration_id"]), []).append(row)
    return by_sync


def _asked(sync: _Ran, looked: _Looked, files: Sequence[FileRef], found: Search) -> list[Row]:
    """Of record files that the index does not cover."""
    if not files:
        return []
    chosen = [Filter(identifiers=tuple(forms(looked.workspaces[sync.workspace], looked.q)))]
    chosen += [Filter(prefix=looked.prefix)] if looked.prefix else []
    try:
        return [row for one in chosen for row in unindexed.ask(files, one, _LOOKED_AT)]
    except OndatraError as error:
        found.problems.append(f"{sync.name}: {error}")
        return []


def _newest(rows: Sequence[Row]) -> list[Row]:
    """The newest record of each thing, those that ran last first."""
    newest: dict[str, Row] = {}
    for row in sorted(rows, key=lambda r: (int(r["sync_run_id"]), str(r["batch_ended_at"]), r["place"]), reverse=True):
        newest.setdefault(row["identifier"], row)
    return list(newest.values())


def _kept(things: dict[Sync, list[Row]]) -> Iterator[tuple[Sync, list[Row]]]:
    """The index may name runs that are no longer kept; of those things the history tells the newest that is."""
    named = {int(row["sync_run_id"]) for rows in things.values() for row in rows}
    kept = set(Run.objects.filter(pk__in=named, rows_expired_at=None).values_list("pk", flat=True))
    for sync, rows in things.items():
        told = ([row] if int(row["sync_run_id"]) in kept else _before(sync, row) for row in rows)
        yield sync, [row for each in told for row in each]


def _before(sync: Sync, row: Row) -> list[Row]:
    return history.history_of(sync, row["identifier"], limit=1)
