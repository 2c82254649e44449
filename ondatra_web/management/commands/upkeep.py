"""`manage.py upkeep`: looks after the lake's tables now; the scheduler does it as ONDATRA_UPKEEP says."""

from __future__ import annotations

from typing import Any

from django.core.management.base import BaseCommand, CommandParser

from ondatra_web import projects
from ondatra_web.clock import upkeep
from runtime.errors import ConfigError
from runtime.lake import spark


class Command(BaseCommand):
    help = "Puts little files of the lake's tables together and removes files that no sync needs any more."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--workspace", default="default", metavar="SLUG")

    def handle(self, *args: Any, **options: Any) -> None:
        try:
            found = upkeep.keep_lake(projects.workspace_of(options["workspace"]), spark.isolated)
        except ConfigError as error:
            self.stderr.write(str(error))
            raise SystemExit(2) from None
        for name, kept in found.items():
            removed = (
                "nothing removed: what its sync has not read yet is needed"
                if kept.removed is None
                else f"{kept.removed} files removed"
            )
            self.stdout.write(f"{name}: {'files put together, ' if kept.after != kept.before else ''}{removed}")
        if not found:
            self.stdout.write("there was no table to look after, or a run is working")
