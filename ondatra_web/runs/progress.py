"""What a run tells people while it goes on: its step, and its log."""

from __future__ import annotations

from collections.abc import Sequence

from django.utils import timezone

from ondatra_web.models import Run, RunLog
from runtime.custody.redact import everywhere

MOST_LOG_LINES = 1_000
LONGEST_LINE = 10_000


def say(run_id: int, lines: Sequence[tuple[str, str]]) -> None:
    """Adds lines (level, text) to a run's log, which people read: it has its limit."""
    room = MOST_LOG_LINES - RunLog.objects.filter(run_id=run_id).count()
    RunLog.objects.bulk_create(
        [RunLog(run_id=run_id, level=level, text=_line(text)) for level, text in lines[: max(room, 0)]]
    )


def _line(text: str) -> str:
    """A log line as any database takes it: no NUL, no half surrogates, of a length that a page can show."""
    text = everywhere.text(text).replace("\0", "\ufffd").encode(errors="backslashreplace").decode()
    return text if len(text) <= LONGEST_LINE else text[: LONGEST_LINE - 1] + "…"


def set_step(run_id: int, name: str) -> None:
    """The run's step for the page, with the time at which it began; of the first that of what was built before it."""
    run = Run.objects.only("step_times", "started_at").get(pk=run_id)
    began = run.started_at if name == "build" and run.started_at else timezone.now()
    run.step_times[name] = began.isoformat()
    Run.objects.filter(pk=run_id).update(step=name, step_times=run.step_times)
