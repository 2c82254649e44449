"""`@max_deletes`: a run that would delete more than a person expects is held before anything is written."""

from __future__ import annotations

from runtime.errors import HeldError
from runtime.kinds.build import Build
from runtime.kinds.counts import Counts
from runtime.model import MaxDeletes

DEFAULT = MaxDeletes(50, percent=True)
#: A percentage of little means little.
FROM_DELETES, FROM_DELIVERED = 1_000, 20


def can_hold(build: Build, most: int, source: int) -> bool:
    """Whether so many deletes at most could hold the run, so that it is worth counting them."""
    return build.model.sink is not None and _limit(build, most, source) is not None


def check(build: Build, counts: Counts) -> None:
    """Raises HeldError with what the run would do."""
    limit = _limit(build, counts.deleted, counts.source) if build.model.sink is not None else None
    if limit is None:
        return
    said = build.model.max_deletes or DEFAULT
    told = f"{said.number} % of {build.delivered_rows} rows delivered before" if said.percent else str(said.number)
    if build.options.confirmed_deletes is not None:
        told = f"{build.options.confirmed_deletes} that were confirmed"
    raise HeldError(
        f"{counts.deleted} deletes are more than @max_deletes allows ({told}): nothing was written; confirm the run "
        f"to send them",
        source=counts.source,
        unchanged=counts.unchanged,
        invalid=counts.invalid,
        changed=counts.changed,
        deleted=counts.deleted,
        limit=limit,
    )


def _limit(build: Build, deletes: int, source: int) -> int | None:
    """The limit that so many deletes exceed; None where they are allowed."""
    said = build.model.max_deletes or DEFAULT
    if build.options.confirmed_deletes is not None:
        limit = build.options.confirmed_deletes
    elif not said.percent:
        limit = said.number
    elif deletes >= FROM_DELETES or (source == 0 and build.delivered_rows >= FROM_DELIVERED):
        limit = said.number * build.delivered_rows // 100
    else:
        return None
    return limit if deletes > limit else None
