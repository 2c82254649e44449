"""What several pages say of runs and records, computed once, so that templates only place it."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from typing import Any

from django.contrib.auth.models import User
from django.core.paginator import Page, Paginator
from django.db.models import QuerySet
from django.http import HttpRequest
from django.utils import timezone

from ondatra_web.models import Run
from runtime.records import exact
from runtime.records.filter import SHOWN

#: Characters of a message, a value or a body that a page shows.
MOST_TEXT = 64 * 1024


class SignedIn(HttpRequest):
    """A request behind login_required."""

    user: User  # type: ignore[assignment]


def progress(run: Run) -> int | None:
    """Percent of the records that have an answer, while a run pushes."""
    if run.status not in Run.ACTIVE or not run.planned or run.step not in ("push", "finish"):
        return None
    return min(99, 100 * answered(run) // run.planned)


def answered(run: Run) -> int:
    return run.succeeded + run.rejected + run.retrying


def record_status(record: Mapping[str, Any]) -> str:
    """`Due again` marks a rejected record that the next run sends by itself."""
    if record["status"] == "rejected" and record.get("outcome") == "error":
        return "Due again"
    return SHOWN.get(record["status"], record["status"])


def run_took(run: Run) -> timedelta | None:
    if not run.started_at:
        return None
    return (run.ended_at or timezone.now()) - run.started_at


def cut(text: str, most: int = MOST_TEXT) -> str:
    """The text, or its beginning and how long it is: a page is no place for megabytes."""
    if len(text) <= most:
        return text
    return f"{text[:most]}…\n(cut: the whole has {len(text):,} characters)"


def object_of(text: str | None) -> dict[str, Any]:
    """A payload by field, numbers as `exact.Number`; what is no object stands as one field."""
    try:
        value = exact.loads(text) if text else {}
    except ValueError:
        return {"payload": text}
    return value if isinstance(value, dict) else {"payload": value}


def page_of(rows: QuerySet[Any], number: int, size: int) -> Page[Any]:
    return Paginator(rows, size).get_page(number)
