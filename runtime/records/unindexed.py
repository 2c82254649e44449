"""What happened to one thing, asked of record files that no index covers yet: by their bounds and bloom filters."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any

from runtime.records import duck
from runtime.records.filter import FileRef, Filter
from runtime.records.opened import Opened, opened, roots

#: What a history says of each record; the rest is fetched by `place`.
COLUMNS = (
    "identifier",
    "sync_configuration_id",
    "sync_run_id",
    "status",
    "status_message",
    "operation",
    "change_type",
    "outcome",
    "batch_ended_at",
)


def key(file: FileRef) -> str:
    """A record file within its sync: `7/records_updated.0`."""
    return "/".join(file.path.removesuffix(".parquet").split("/")[-2:])


def ask(files: Sequence[FileRef], chosen: Filter, limit: int) -> list[dict[str, Any]]:
    """The records that match, with their `place`; where a beginning is looked for, the newest `limit` of them."""
    where, values = chosen.where()
    if chosen.prefix:
        where += f" ORDER BY TRY_CAST(sync_run_id AS BIGINT) DESC, batch_ended_at DESC LIMIT {limit}"
    candidates = [f for f in files if chosen.may_hold(f)]
    if not candidates:
        return []

    found = []
    with duck.cursor(roots(candidates)) as one:
        for part in opened(candidates, []):
            try:
                found += _asked_of(one, part, where, values)
            except duck.DAMAGED:
                for each in part.each() if len(part.files) > 1 else ():
                    with suppress(*duck.DAMAGED):
                        found += _asked_of(one, each, where, values)
    return found


def _asked_of(one: duck.Cursor, part: Opened, where: str, values: Mapping[str, Any]) -> list[dict[str, Any]]:
    keys = {str(p): key(f) for p, f in zip(part.places, part.files, strict=True)}
    file = "__file" if len(part.files) > 1 else duck.quoted(str(part.places[0]))
    sql = f"SELECT {', '.join(COLUMNS)}, __row, {file} FROM ({part.source(COLUMNS, position=True)}) WHERE {where}"
    return [
        {**dict(zip(COLUMNS, row, strict=False)), "place": f"{keys[row[-1]]}:{row[-2]}"}
        for row in duck.tuples(one, sql, {**values, **part.values})
    ]
