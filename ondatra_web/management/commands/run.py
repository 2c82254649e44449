"""`manage.py run`: build, deliver and wait, in one process; `management.running` has what a worker makes instead."""

from __future__ import annotations

from typing import Any

from django.core.management.base import BaseCommand, CommandParser

from ondatra_web import projects
from ondatra_web.management import running
from ondatra_web.runs import engine, printed
from ondatra_web.runs.asking import Report
from ondatra_web.runs.watch import Watch


class Command(BaseCommand):
    help = "Runs the models (and what they need) in order, delivers what changed, waits."

    def add_arguments(self, parser: CommandParser) -> None:
        running.add_arguments(parser)

    def handle(self, *args: Any, **options: Any) -> None:
        if problem := running.problem(options):
            self.stderr.write(problem)
            raise SystemExit(2)
        code = running.told(
            lambda watch: _made(options, watch), options["json"], out=self.stdout.write, error=self.stderr.write
        )
        raise SystemExit(code)


def _made(options: dict[str, Any], watch: Watch) -> Report:
    workspace = projects.workspace_of(options["workspace"])
    engine.expect(workspace)
    return printed.made(workspace, options["models"], running.chosen(options), watch, as_json=options["json"])
