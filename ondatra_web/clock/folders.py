"""The projects' folders, looked at by the clock: a new or edited `@schedule` works without anybody who runs it."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from pathlib import Path

from ondatra_web import projects
from ondatra_web.clock.throttle import Throttle
from ondatra_web.models import Workspace
from ondatra_web.runs import declared
from runtime.errors import ConfigError
from runtime.model import Model
from runtime.project.directives import parse_model

log = logging.getLogger("ondatra.scheduler")
#: Seconds between two looks at a folder.
looked = Throttle(10.0)
#: By workspace: its folder's files as they were read last.
_read: dict[int, tuple[tuple[str, int, int], ...]] = {}


def read() -> None:
    """Looks which files changed, and saves what they say of their syncs; the SQL below the directives is not
    looked at."""
    for workspace in Workspace.objects.order_by("pk"):
        if looked.passes(workspace.pk):
            _look(workspace)


def _look(workspace: Workspace) -> None:
    try:
        folder = projects.folder_of(workspace)
        files = _files(folder)
    except (ConfigError, OSError) as error:
        log.warning("the files of workspace %s were not looked at: %s", workspace.slug, error)
        return
    if _read.get(workspace.pk) == files:
        return
    declared.save(workspace, _models(folder, [Path(path) for path, *_ in files]))
    _read[workspace.pk] = files


def _files(folder: Path) -> tuple[tuple[str, int, int], ...]:
    told = ((path, path.stat()) for path in sorted((folder / "models").rglob("*.sql")) if path.is_file())
    return tuple((str(path), stat.st_mtime_ns, stat.st_size) for path, stat in told)


def _models(folder: Path, paths: list[Path]) -> Iterator[Model]:
    """Those whose directives are right. One that was renamed waits for a run, which carries its history over."""
    for path in paths:
        model, problems = parse_model(path, folder)
        if model is not None and not problems and not model.renamed_from:
            yield model
