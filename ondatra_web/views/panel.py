"""One record in one place: payload, what changed, the requests of its batch, its history over the runs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from ondatra_web.models import Run
from ondatra_web.tracking.history import history_of
from ondatra_web.tracking.records import calls_of
from ondatra_web.views import requests
from ondatra_web.views.payload_tree import Node, tree
from ondatra_web.views.shown import cut, record_status
from runtime.errors import OndatraError
from runtime.records import exact, query
from runtime.records.filter import FileRef

MOST_CALLS = 20
MOST_RUNS = 20


@dataclass(frozen=True)
class Panel:
    record: dict[str, Any]
    shown: str
    fields: list[Node]
    changes: int
    calls: list[dict[str, Any]] = field(default_factory=list)
    history: list[dict[str, Any]] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)

    @property
    def as_json(self) -> str:
        """The payload, every digit as it is."""
        text = self.record.get("record_payload") or ""
        try:
            return cut(exact.dumps(exact.loads(text)))
        except ValueError:
            return cut(text)

    @property
    def about(self) -> str:
        """`upsert · update_postimage · call 3 · attempt 1`, as far as the record says."""
        told = self.record
        parts = [told.get("operation"), told.get("change_type")]
        parts += [
            f"{word} {told[name]}"
            for word, name in (("call", "batch_number"), ("attempt", "attempt"))
            if told.get(name)
        ]
        return " · ".join(part for part in parts if part)


def panel_of(run: Run, files: Sequence[FileRef], place: str) -> Panel | None:
    """None where the run has no record there."""
    record = query.record(files, place)
    if record is None:
        return None
    problems: list[str] = []
    calls = _calls(run, record, place, problems)
    past = _history(run, record, problems)
    fields, changes = tree(record)
    return Panel(record, record_status(record), fields, changes, calls, past, problems)


def _calls(run: Run, record: dict[str, Any], place: str, problems: list[str]) -> list[dict[str, Any]]:
    if record.get("batch_number") is None or run.dry_run:
        return []

    try:
        calls = calls_of(run, record, place)[:MOST_CALLS]
    except OndatraError as error:
        problems.append(str(error))
        return []

    return [requests.shown(call) for call in calls]


def _history(run: Run, record: dict[str, Any], problems: list[str]) -> list[dict[str, Any]]:
    if record.get("identifier") is None or run.dry_run:
        return []

    try:
        found = history_of(run.sync, record["identifier"], limit=MOST_RUNS)
    except OndatraError as error:
        problems.append(str(error))
        return []

    for entry in found:
        entry["shown"] = record_status(entry)
        entry["here"] = str(entry["sync_run_id"]) == str(run.pk)
    return found
