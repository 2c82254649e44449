"""`manage.py push_test`: tries a push function on some rows; nothing is sent."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandParser

from ondatra_web import projects
from runtime.delivery import rehearsal
from runtime.errors import ConfigError, ProjectError
from runtime.model import KINDS


class Command(BaseCommand):
    help = (
        "Calls the push function LIB with the rows of a file against a stub, and prints its requests and statuses. "
        "Nothing is sent."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("lib", metavar="LIB", help="crm for lib/crm.star")
        parser.add_argument(
            "--rows", required=True, type=Path, metavar="FILE", help="JSON list, JSON lines, CSV or Parquet"
        )
        parser.add_argument("--workspace", default="default", metavar="SLUG")
        parser.add_argument("--kind", default="merge", choices=KINDS)
        parser.add_argument("--key", default="", metavar="COLUMNS", help="key columns, separated by commas")
        parser.add_argument(
            "--args",
            dest="sink_args",
            nargs="*",
            default=[],
            metavar="VALUE",
            help="what @sink would give for push.args",
        )
        parser.add_argument("--status", type=int, default=200, help="what the stub answers (200)")
        parser.add_argument("--answer", metavar="JSON", help="the body that the stub answers ({})")

    def handle(self, *args: Any, **options: Any) -> None:
        name = str(options["lib"]).removeprefix("lib/").removesuffix(".star")
        key = [column.strip() for column in options["key"].split(",") if column.strip()]
        try:
            workspace = projects.workspace_of(options["workspace"])
            found = rehearsal.rehearse(
                Path(workspace.project_dir),
                name,
                rehearsal.read_rows(options["rows"]),
                secrets=projects.secrets_of(workspace),
                kind=options["kind"],
                key_columns=key,
                args=options["sink_args"],
                answer=rehearsal.parse_answer(options["status"], options["answer"]),
            )
        except (ProjectError, ConfigError) as error:
            self.stderr.write(str(error))
            raise SystemExit(2) from None
        self.stdout.write(rehearsal.told(found))
        raise SystemExit(1 if found.failed else 0)
