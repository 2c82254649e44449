"""`@max_deletes`: a run that would delete more than a person expects is held before anything is written."""

from __future__ import annotations

from runtime.errors import HeldError
from runtime.kinds.build import Counts, Job
from runtime.model import MaxDeletes

DEFAULT = MaxDeletes(50, percent=True)
#: A percentage of little means little.
FROM_DELETES, FROM_DELIVERED = 1_000, 20


def can_hold(job: Job, most: int, source: int) -> bool:
    """Whether so many deletes at most could hold the run, so that it is worth counting them."""
    return job.model.sink is not None and _limit(job, most, source) is not None


def check(job: Job, counts: Counts) -> None:
    """Raises HeldError with what the run would do."""
    limit = _limit(job, counts.deleted, counts.source) if job.model.sink is not None else None
    if limit is None:
        return
    said = job.model.max_deletes or DEFAULT
    told = f"{said.number} % of {job.delivered_rows} rows delivered before" if said.percent else str(said.number)
    if job.options.confirmed_deletes is not None:
        told = f"{job.options.confirmed_deletes} that were confirmed"
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


def _limit(job: Job, deletes: int, source: int) -> int | None:
    """The limit that so many deletes exceed; None where they are allowed."""
    said = job.model.max_deletes or DEFAULT
    if job.options.confirmed_deletes is not None:
        limit = job.options.confirmed_deletes
    elif not said.percent:
        limit = said.number
    elif deletes >= FROM_DELETES or (source == 0 and job.delivered_rows >= FROM_DELIVERED):
        limit = said.number * job.delivered_rows // 100
    else:
        return None
    return limit if deletes > limit else None
