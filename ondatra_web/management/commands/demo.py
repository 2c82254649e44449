"""`manage.py demo load|next`: the demo's data, and its next day."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandParser

from ondatra_web import projects
from ondatra_web.demo import data
from runtime.errors import ConfigError


class Command(BaseCommand):
    help = (
        "Writes the demo's data (load), or reveals the next day of flights (next), so that the next run has true "
        "changes."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("what", choices=["load", "next"])
        parser.add_argument("--workspace", default="default", metavar="SLUG")

    def handle(self, *args: Any, **options: Any) -> None:
        try:
            project = Path(projects.workspace_of(options["workspace"]).project_dir)
        except ConfigError as error:
            self.stderr.write(str(error))
            raise SystemExit(2) from None
        if options["what"] == "load":
            days = data.load(project)
            self.stdout.write(f"{len(days)} days of flights, {days[0]} to {days[-1]}, in {data.folder(project)}")
            return
        day = data.reveal_next(project)
        if day is None:
            self.stdout.write(
                f"the year is over: {data.LAST} is revealed already; remove {data.folder(project) / 'flights'} to "
                f"begin anew"
            )
            raise SystemExit(1)
        self.stdout.write(f"revealed {day}; `{settings.ONDATRA.command('run')}` sends what it changed")
