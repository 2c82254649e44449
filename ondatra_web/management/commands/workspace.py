"""`manage.py workspace SLUG --project DIR`: creates a workspace or points it elsewhere."""

from __future__ import annotations

from typing import Any

from django.core.management.base import BaseCommand, CommandParser

from ondatra_web import workspaces
from ondatra_web.workspaces import Wanted
from runtime.errors import ConfigError


class Command(BaseCommand):
    help = "Creates a workspace, or points an existing one at another project folder."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("slug", metavar="SLUG")
        parser.add_argument("--project", required=True, metavar="DIR", help="the folder with models/ and lib/")
        parser.add_argument(
            "--env-file",
            metavar="F",
            help="NAME=value lines: push functions then see only these; keep it outside the project",
        )
        parser.add_argument(
            "--allow-path", action="append", default=[], metavar="DIR", help="SQL may read files below it, too"
        )

    def handle(self, *args: Any, **options: Any) -> None:
        wanted = Wanted(options["slug"], options["project"], options["env_file"] or "", tuple(options["allow_path"]))
        try:
            saved, made = workspaces.save(wanted)
        except ConfigError as error:
            self.stderr.write(str(error))
            raise SystemExit(2) from None
        self.stdout.write(f"workspace {saved.slug} {'created' if made else 'now'}: {saved.project_dir}")
