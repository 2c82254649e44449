"""`manage.py discard SYNC`: drops what waits."""

from __future__ import annotations

from typing import Any

from django.core.management.base import CommandParser

from ondatra_web import actions
from ondatra_web.management.commands._runs import SyncCommand, agreed
from ondatra_web.models import Sync
from ondatra_web.runs import waiting


class Command(SyncCommand):
    help = "Counts what of a sync waits (due again, rejected, in open jobs), then drops it as if it had been delivered."

    def add_arguments(self, parser: CommandParser) -> None:
        super().add_arguments(parser)
        parser.add_argument("--yes", action="store_true", help="drop without asking")

    def act(self, sync: Sync, options: dict[str, Any]) -> int:
        found = waiting.counted(sync)
        self.stdout.write(
            f"{sum(found.values()):,} records of {sync.name} wait: {found['due']:,} due, {found['rejected']:,} "
            f"rejected, "
            f"{found['blocked']:,} in open jobs"
        )
        if sum(found.values()) and (options["yes"] or agreed("Drop them? They will not be sent.")):
            dropped = actions.discard(sync)
            self.stdout.write(
                f"{sum(dropped.values()):,} records dropped; a row that changes from here on is sent as usual"
            )
        return 0
