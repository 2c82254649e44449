"""A sync's settings as its files say them now: the SQL with its directives, the push function, the next times."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from django.utils import timezone

from ondatra_web.models import ModelState, Sync
from ondatra_web.views.shown import cut
from runtime.errors import OndatraError
from runtime.project import schedules
from runtime.project.directives import parse_model

TIMES = 5
_DIRECTIVE = re.compile(r"^\s*--\s*@(\w+)\s*:\s*(.*?)\s*$", re.M)
#: What stands in a push function as text though it should come from the environment.
_SECRET = re.compile(r"""(["'](?:pass\w*|secret|token|api_?key|client_secret)["']\s*:\s*)(["']).*?\2""", re.I)


@dataclass(frozen=True)
class Files:
    """What the project folder holds of a sync."""

    file: str  # relative to the project folder
    directives: list[tuple[str, str]]
    sql: str
    function_file: str
    function: str  # its text; empty where it is not shown or not there
    times: list[datetime]
    problems: list[str]


def files_of(sync: Sync, *, with_function: bool) -> Files | None:
    """None where the model's file is not known or not there."""
    state = ModelState.objects.filter(workspace=sync.workspace, name=sync.name, gone_at=None).first()
    folder = Path(sync.workspace.project_dir)
    text = _text(folder, state.file) if state and state.file else None
    if state is None or text is None:
        return None

    model, problems = parse_model(folder / state.file, folder)
    name = model.sink.function if model and model.sink else sync.function
    function = _text(folder, f"lib/{name}.star") if with_function else None
    return Files(
        state.file,
        _DIRECTIVE.findall(text),
        cut(model.sql if model else text),
        f"lib/{name}.star",
        cut(_SECRET.sub(r'\1"***"', function or "")),
        times(sync, model.schedule if model else None),
        [f"{p.file}:{p.line}: {p.message}" for p in problems],
    )


def times(sync: Sync, schedule: str | None) -> list[datetime]:
    """The next ones at which the schedule starts it; none while it is paused."""
    if not schedule or sync.paused_at or sync.archived_at:
        return []
    found = [timezone.now()]
    try:
        for _ in range(TIMES):
            found.append(schedules.next_time(schedule, found[-1]))
    except OndatraError:
        return found[1:]
    return found[1:]


def _text(folder: Path, name: str) -> str | None:
    """A file of the project; None where it is not there or does not lie in it."""
    place = (folder / name).resolve()
    try:
        return place.read_text(encoding="utf-8") if place.is_relative_to(folder.resolve()) else None
    except (OSError, UnicodeDecodeError):
        return None
