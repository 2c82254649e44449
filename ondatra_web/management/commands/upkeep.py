"""`manage.py upkeep`: looks after the lake's tables now; the scheduler does it as ONDATRA_UPKEEP says."""

from __future__ import annotations

from typing import Any

from django.core.management.base import BaseCommand, CommandParser

from ondatra_web import projects
from ondatra_web.clock import upkeep
from ondatra_web.management.terminal import live
from runtime.errors import ConfigError
from runtime.lake import spark
from runtime.lake.upkeep import Kept


class Command(BaseCommand):
    help = "Puts little files of the lake's tables together and removes files that no sync needs any more."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--workspace", default="default", metavar="SLUG")

    def handle(self, *args: Any, **options: Any) -> None:
        tables = 0
        try:
            with live("looking after the lake") as line:
                begins = lambda name: line.doing(f"looking after {name}")  # noqa: E731
                for name, kept in upkeep.keep_lake(projects.workspace_of(options["workspace"]), spark.isolated, begins):
                    tables += 1
                    line.print(f"{name}: {_told(kept)}")
        except ConfigError as error:
            self.stderr.write(str(error))
            raise SystemExit(2) from None
        if not tables:
            self.stdout.write("there was no table to look after, or a run is working")


def _told(kept: Kept) -> str:
    if kept.removed is None:
        removed = "nothing removed: what its sync has not read yet is needed"
    else:
        removed = f"{kept.removed} files removed"
    return f"files put together, {removed}" if kept.after != kept.before else removed
