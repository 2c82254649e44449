"""The newest record of each thing that is looked for in many syncs, from the files of an index: one question."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from runtime.records import duck
from runtime.records.unindexed import COLUMNS

#: The columns of an index file.
NAMES = (*COLUMNS, "place")
#: Comes after whatever may follow the beginning of a text.
LAST = "\U0010ffff"
#: Rows that are looked at where a beginning is looked for: so many may begin alike that nobody could wait for all.
MOST_ROWS = 50_000

_TOLD = [name for name in NAMES if name not in ("identifier", "sync_configuration_id")]
_WANTED = "SELECT unnest($syncs::VARCHAR[]) AS sync_configuration_id, generate_subscripts($syncs::VARCHAR[], 1) AS nth"
#: The newest record is that of the last run, and in it the last one: both are numbers.
_QUESTION = f"""
WITH wanted AS MATERIALIZED ({_WANTED}),
looked AS ({{rows}}),
things AS (
    SELECT sync_configuration_id, identifier, max(run) AS last, count(*) AS looked_at,
        max_by({{{{{", ".join(f"'{name}': {name}" for name in _TOLD)}}}}},
            CAST(run AS HUGEINT) * 10_000_000_000_000_000 + coalesce(epoch_us(batch_ended_at), 0)) AS told
    FROM looked GROUP BY sync_configuration_id, identifier
),
counted AS (SELECT *, sum(looked_at) OVER () AS all_looked_at FROM things)
SELECT {", ".join(name if name not in _TOLD else f"told.{name}" for name in NAMES)}, all_looked_at
FROM counted JOIN wanted USING (sync_configuration_id)
QUALIFY row_number() OVER (PARTITION BY sync_configuration_id ORDER BY last DESC, identifier DESC) <= $most
ORDER BY nth, last DESC, identifier DESC LIMIT $limit"""


@dataclass(frozen=True)
class Asked:
    """Things that are called one of these, or begin with `prefix`, in these syncs, up to a run; of a sync at most so
    many, those that ran last, and of all at most `limit`, those of the first syncs."""

    identifiers: Sequence[str]
    syncs: Sequence[int]
    upto: int
    most: int
    limit: int
    prefix: str | None = None


@dataclass(frozen=True)
class Newest:
    """`cut` where so many begin alike that only the first of the alphabet were looked at."""

    rows: list[dict[str, Any]]
    cut: bool = False


def ask(one: duck.Cursor, places: Sequence[str], asked: Asked, gone: Sequence[str]) -> list[tuple[Any, ...]]:
    """Rows of NAMES, and how many rows of the index were looked at; without the runs that are gone. Of the places the
    first are looked at first."""
    bound = {f"i{n}": text for n, text in enumerate(asked.identifiers)}
    found = is_one_of(bound) + (" OR (identifier >= $low AND identifier <= $high)" if asked.prefix else "")
    kept = "run <= $upto" + (" AND sync_run_id NOT IN (SELECT unnest($gone::VARCHAR[]))" if gone else "")
    rows = (
        f"SELECT CAST(sync_run_id AS BIGINT) AS run, {', '.join(NAMES)} "
        f"FROM read_parquet($files, hive_partitioning = false) WHERE ({found}) AND {kept}"
    )
    if asked.prefix:
        rows += f" AND sync_configuration_id IN (SELECT sync_configuration_id FROM wanted) LIMIT {MOST_ROWS}"

    values = {
        **bound,
        "low": asked.prefix,
        "high": f"{asked.prefix}{LAST}",
        "files": places,
        "syncs": list(map(str, asked.syncs)),
        "gone": list(gone),
        "upto": asked.upto,
        "most": asked.most,
        "limit": asked.limit,
    }
    return duck.tuples(one, _QUESTION.format(rows=rows), values)


def read(rows: Sequence[tuple[Any, ...]], asked: Asked) -> Newest:
    cut = bool(asked.prefix and rows) and rows[0][-1] >= MOST_ROWS
    return Newest([dict(zip(NAMES, row, strict=False)) for row in rows], cut)


def is_one_of(names: Iterable[str]) -> str:
    """The identifier is one of these bound values; such that row groups of files sorted by it are left out by their
    bounds."""
    return " OR ".join(f"identifier = ${name}" for name in names) or "false"
