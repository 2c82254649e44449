"""View Records for who may see what became of rows but not the rows: no identifier, payload or message of any."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import pyarrow as pa

from ondatra_web.models import MessageGroup, Run
from ondatra_web.tracking.unsent import WAITING
from runtime.tracking.messages import patterns

#: What of the address would tell rows apart; it takes the right to read them.
TELLING = ("q", "record")
#: What is shown of a record.
SHOWN = ("operation", "change_type", "outcome", "attempt", "batch_number", "batch_ended_at")


def rows_of(run: Run, rows: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Status, the pattern of the reason and what the push function did; nothing else leaves the files."""
    found = list(rows)
    reasons = _reasons(run, found)
    return [
        {"shown": row["shown"], "reason": reason, **{name: row.get(name) for name in SHOWN}}
        for row, reason in zip(found, reasons, strict=True)
    ]


def _reasons(run: Run, rows: list[Mapping[str, Any]]) -> list[str]:
    """The group of each message, as the run's page lists it; why a row waits are the product's own words."""
    said = pa.array([row.get("status_message") for row in rows], pa.string())
    payloads = pa.array([row.get("record_payload") for row in rows], pa.string())
    found = patterns(said, payloads).to_pylist()
    known = set(MessageGroup.objects.filter(run=run, pattern__in=set(found) - {None}).values_list("pattern", flat=True))
    return [
        str(row.get("status_message") or "") if row.get("status") == WAITING else pattern if pattern in known else ""
        for row, pattern in zip(rows, found, strict=True)
    ]
