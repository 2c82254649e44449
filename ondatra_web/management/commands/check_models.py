"""`manage.py check_models`: everything that can be known before a run, all at once."""

from __future__ import annotations

import json
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandParser

from ondatra_web import projects
from runtime.errors import ConfigError
from runtime.lake import spark
from runtime.sources.columns import WithSpark


class Command(BaseCommand):
    help = "Checks models and push functions; starts no destination and touches no data."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--workspace", default="default", metavar="SLUG")
        parser.add_argument("--json", action="store_true", help="print one object")
        parser.add_argument(
            "--deep",
            action="store_true",
            help="also ask Spark's analyser, and connections for their columns; reads no data",
        )

    def handle(self, *args: Any, **options: Any) -> None:
        try:
            analyse = WithSpark(lambda: spark.isolated(settings.ONDATRA), deep=True) if options["deep"] else None
            project, problems = projects.check(projects.workspace_of(options["workspace"]), analyse=analyse)
        except ConfigError as error:
            if options["json"]:
                self.stdout.write(json.dumps({"status": "failed", "error": str(error), "problems": []}))
            self.stderr.write(str(error))
            raise SystemExit(2) from None
        warnings = project.warnings
        if options["json"]:
            self.stdout.write(
                json.dumps(
                    {
                        "status": "failed" if problems else "ok",
                        "problems": [vars(p) for p in problems],
                        "warnings": [vars(p) for p in warnings],
                    },
                    ensure_ascii=False,
                )
            )
        else:
            for problem in problems:
                self.stdout.write(str(problem))
            for warning in warnings:
                self.stdout.write(f"{warning} (warning)")
            self.stdout.write(f"{len(problems)} problem(s)" if problems else f"{len(project.models)} model(s) are fine")
        raise SystemExit(2 if problems else 0)
