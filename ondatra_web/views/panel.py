"""One record in one place: payload, what changed, the requests of its batch, its history over the runs."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

import orjson

from ondatra_web.models import Run
from ondatra_web.tracking.records import calls_of, history_of
from ondatra_web.views.shown import record_status
from runtime.errors import OndatraError
from runtime.records import query
from runtime.records.query import FileRef

MOST_CALLS = 20
MOST_RUNS = 20
#: A body longer than this is cut on the page; the file has up to 64 KiB of it.
MOST_TEXT = 8_000


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
    payload = _object(record.get("record_payload"))
    changed = {name: (old, new) for name, old, new in query.difference(record)}
    before = _object(record.get("previous_payload"))
    found = [
        Field(name, _text(value), _text(changed[name][0]) if name in changed else None)
        for name, value in payload.items()
    ]
    found += [Field(name, "", _text(value), gone=True) for name, value in before.items() if name not in payload]
    return found, len(changed)


def _object(text: str | None) -> dict[str, Any]:
    try:
        value = orjson.loads(text) if text else {}
    except orjson.JSONDecodeError:
        return {"payload": text}
    return value if isinstance(value, dict) else {"payload": value}


def _text(value: Any) -> str:
    return orjson.dumps(
        value, option=orjson.OPT_INDENT_2 if isinstance(value, dict | list) and value else None
    ).decode()


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
    if not text:
        return ""
    with suppress(orjson.JSONDecodeError):
        text = orjson.dumps(orjson.loads(text), option=orjson.OPT_INDENT_2).decode()
    return text if len(text) <= MOST_TEXT else text[:MOST_TEXT] + "\n…"


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
