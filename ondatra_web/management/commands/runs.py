"""`manage.py runs [SYNC]`: the newest runs with their ids."""

from __future__ import annotations

from typing import Any

from django.core.management.base import BaseCommand, CommandParser

from ondatra_web.management.commands._runs import sync_named
from ondatra_web.models import Run
from runtime.errors import ConfigError


class Command(BaseCommand):
    help = "Lists the newest runs with their ids."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("sync", nargs="?", metavar="SYNC")
        parser.add_argument("--workspace", default="default", metavar="SLUG")
        parser.add_argument("--most", type=int, default=20, metavar="N")

    def handle(self, *args: Any, **options: Any) -> None:
        found = (
            Run.objects.select_related("sync", "started_by")
            .filter(sync__workspace__slug=options["workspace"])
            .order_by("-pk")
        )
        if options["sync"]:
            try:
                found = found.filter(sync=sync_named(options["sync"], options["workspace"]))
            except ConfigError as error:
                self.stderr.write(str(error))
                raise SystemExit(2) from None
        self.stdout.write(
            f"{'run':>7}  {'sync':<30} {'status':<22} {'started':<16} {'planned':>9} {'ok':>9} {'rejected':>9} "
            f"{'due':>7}  started by"
        )
        for run in found[: options["most"]]:
            started = run.started_at.strftime("%Y-%m-%d %H:%M") if run.started_at else ""
            self.stdout.write(
                f"{run.pk:>7}  {run.sync.name:<30} {run.status:<22} {started:<16} {run.planned:>9,} "
                f"{run.succeeded:>9,} "
                f"{run.rejected:>9,} {run.retrying + run.not_tried:>7,}  {run.starter}"
            )
