"""`manage.py resume SYNC`: its schedule starts it again."""

from __future__ import annotations

from typing import Any

from ondatra_web import actions
from ondatra_web.management.commands._runs import SyncCommand
from ondatra_web.models import Sync


class Command(SyncCommand):
    help = "Starts the schedule of a paused sync again."

    def act(self, sync: Sync, options: dict[str, Any]) -> int:
        actions.resume_sync(sync)
        self.stdout.write(f"the schedule of {sync.name} is on again")
        return 0
