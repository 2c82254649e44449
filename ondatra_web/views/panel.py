"""One record in one place: payload, what changed, the requests of its batch, its history over the runs."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from ondatra_web.models import Run
from ondatra_web.tracking.records import calls_of, history_of
from ondatra_web.views.shown import cut, record_status
from runtime.errors import OndatraError
from runtime.records import exact, query
from runtime.records.query import FileRef

MOST_CALLS = 20
MOST_RUNS = 20
#: Characters of a request or an answer on the page; the file has up to 64 KiB of it.
MOST_OF_A_BODY = 8_000


@dataclass(frozen=True)
class Field:
    """One field of the payload, as JSON texts."""

    name: str
    new: str
    old: str | None = None  # None: did not change
    gone: bool = False  # only the old state has it


@dataclass(frozen=True)
class Panel:
    record: dict[str, Any]
    shown: str
    fields: list[Field]
    changes: int
    calls: list[dict[str, Any]] = field(default_factory=list)
    history: list[dict[str, Any]] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)

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
    fields, changes = _fields(record)
    return Panel(record, record_status(record), fields, changes, calls, past, problems)


def _fields(record: dict[str, Any]) -> tuple[list[Field], int]:
    payload, before = _object(record.get("record_payload")), _object(record.get("previous_payload"))
    old = {name: value for name, value, _ in query.difference(record)}

    found = [
        Field(exact.readable(name), _value(value), _value(old[name]) if name in old else None)
        for name, value in payload.items()
    ]
    found += [
        Field(exact.readable(name), "", _value(value), gone=True)
        for name, value in before.items()
        if name not in payload
    ]
    return found, len(old)


def _value(value: Any) -> str:
    try:
        return cut(exact.dumps(value))
    except ValueError as error:
        return str(error)


def _object(text: str | None) -> dict[str, Any]:
    """A payload by field; what is no object stands as one field."""
    try:
        value = exact.loads(text) if text else {}
    except ValueError:
        return {"payload": text}
    return value if isinstance(value, dict) else {"payload": value}


def _calls(run: Run, record: dict[str, Any], place: str, problems: list[str]) -> list[dict[str, Any]]:
    if record.get("batch_number") is None or run.dry_run:
        return []

    try:
        calls = calls_of(run, record, place)[:MOST_CALLS]
    except OndatraError as error:
        problems.append(str(error))
        return []

    for call in calls:
        call["request_body"], call["response_text"] = _pretty(call["request_body"]), _pretty(call["response_text"])
        call["ms"] = round((call["ended_at"] - call["started_at"]).total_seconds() * 1000)
    return calls


def _pretty(text: str | None) -> str:
    """A body as it is, or one thing a line where it is JSON."""
    with suppress(ValueError):
        text = exact.dumps(exact.loads(text or ""))
    return cut(text or "", MOST_OF_A_BODY)


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
