"""What the commands about one run or one sync share."""

from __future__ import annotations

import sys
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandParser

from ondatra_web.models import Run, Sync
from runtime.errors import ConfigError


class RunCommand(BaseCommand):
    """A command whose first argument is a run's id."""

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("run", type=int, metavar="RUN")

    def handle(self, *args: Any, **options: Any) -> None:
        run = Run.objects.select_related("sync__workspace").filter(pk=options["run"]).first()
        if run is None:
            self.stderr.write(f"there is no run {options['run']}; `{settings.ONDATRA.command('runs')}` lists them")
            raise SystemExit(2)
        try:
            code = self.act(run, options)
        except ConfigError as error:
            self.stderr.write(str(error))
            raise SystemExit(2) from None
        raise SystemExit(code)

    def act(self, run: Run, options: dict[str, Any]) -> int:
        raise NotImplementedError  # each command's own


class SyncCommand(BaseCommand):
    """A command whose first argument is a sync's name."""

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("sync", metavar="SYNC")
        parser.add_argument("--workspace", default="default", metavar="SLUG")

    def handle(self, *args: Any, **options: Any) -> None:
        try:
            code = self.act(sync_named(options["sync"], options["workspace"]), options)
        except ConfigError as error:
            self.stderr.write(str(error))
            raise SystemExit(2) from None
        raise SystemExit(code)

    def act(self, sync: Sync, options: dict[str, Any]) -> int:
        raise NotImplementedError  # each command's own


def sync_named(name: str, workspace: str) -> Sync:
    """Raises ConfigError that lists the syncs there are."""
    syncs = Sync.objects.select_related("workspace").filter(workspace__slug=workspace)
    found = syncs.filter(name=name.lower()).first()
    if found is None:
        known = ", ".join(syncs.order_by("name").values_list("name", flat=True)[:20]) or "none yet"
        raise ConfigError(f"there is no sync {name} in workspace {workspace}; there are: {known}")
    return found


def agreed(question: str) -> bool:
    """Whether a person at a terminal says yes; without one the answer is no."""
    return sys.stdin.isatty() and input(f"{question} [y/N] ").strip().lower() in ("y", "yes")
