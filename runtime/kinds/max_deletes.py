"""`@max_deletes`: a run that would delete more than a person expects is held before anything is written."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import TYPE_CHECKING

import pyarrow as pa

from runtime.columns import CHANGE_TYPE, KEY, RECORD
from runtime.errors import HeldError
from runtime.kinds.build import Build
from runtime.kinds.counts import Counts
from runtime.model import MaxDeletes

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

log = logging.getLogger("ondatra.kinds")
#: So many of the rows that would go are shown to whoever decides.
MOST_SHOWN = 1_000
DEFAULT = MaxDeletes(50, percent=True)
#: A percentage of little means little.
FROM_DELETES, FROM_DELIVERED = 1_000, 20


def can_hold(build: Build, most: int, source: int) -> bool:
    """Whether so many deletes at most could hold the run, so that it is worth counting them."""
    return build.model.sink is not None and _limit(build, most, source) is not None


def check(build: Build, counts: Counts, gone: Callable[[], DataFrame]) -> None:
    """Raises HeldError with what the run would do. `gone` is asked only then: columns of the table by which the rows
    that would go are found in it, and nothing else."""
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
        rows=_first(build, gone),
    )


def _first(build: Build, gone: Callable[[], DataFrame]) -> pa.Table | None:
    """As they stand in the table, with its columns and those that staged rows have; the run is held in any case."""
    from pyspark.sql import functions as F

    try:
        told = gone().limit(MOST_SHOWN)
        found = build.target("*").join(F.broadcast(told), told.columns, "left_semi").limit(MOST_SHOWN)
        rows: pa.Table = found.toArrow()
    except Exception as error:  # a person can decide without them
        log.warning("the rows that %s would delete are not listed: %s", build.model.name, error)
        return None
    rows = rows.append_column(CHANGE_TYPE, pa.repeat("delete", rows.num_rows))
    rows = rows.append_column(RECORD, pa.repeat(True, rows.num_rows))
    return rows if KEY in rows.column_names else rows.append_column(KEY, pa.nulls(rows.num_rows, pa.string()))


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
