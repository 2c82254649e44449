"""`manage.py pause SYNC`: its schedule starts it no longer."""

from __future__ import annotations

from typing import Any

from django.conf import settings

from ondatra_web import actions
from ondatra_web.management.commands._runs import SyncCommand
from ondatra_web.models import Sync


class Command(SyncCommand):
    help = "Stops the schedule of a sync; it can still be started by hand."

    def act(self, sync: Sync, options: dict[str, Any]) -> int:
        actions.pause_sync(sync)
        resume = settings.ONDATRA.command(f"resume {sync.name}")
        self.stdout.write(f"{sync.name} is paused; `{resume}` starts its schedule again")
        return 0
